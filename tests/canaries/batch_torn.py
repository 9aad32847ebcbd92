"""An append that stores its drafts one by one, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from harness_hookspecs.store import Draft, StoredEvent
from harness_store_memory.store import MemoryStore

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(MemoryStore, "append", _append)


def _append(
    self: MemoryStore,
    stream: str,
    drafts: Sequence[Draft],
    *,
    expected_seq: int | None,
    blobs: Mapping[str, bytes] | None = None,
    taken: Mapping[str, int] | None = None,
    summary: bytes | None = None,
) -> tuple[StoredEvent, ...]:
    events: tuple[StoredEvent, ...] = ()
    for index, draft in enumerate(drafts):
        expected = None if index else expected_seq
        marks = {command_id: 0 for command_id, place in (taken or {}).items() if place == index}
        with self._lock:
            events += self._append(stream, [draft], expected, dict(blobs or {}), marks, summary)
    return events
