"""A store that links each event to the last one that it remembers having stored, whoever has stored since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness_hookspecs.store import Draft, Head, StoredEvent
from harness_store_memory.store import MemoryStore

__all__ = ["plant"]

_right = MemoryStore._append


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(MemoryStore, "_append", _append)


def _append(self: MemoryStore, name: str, drafts: Sequence[Draft], *rest: Any) -> tuple[StoredEvent, ...]:
    remembered: dict[str, bytes] = self.__dict__.setdefault("remembered", {})
    stream = self._open().streams.get(name)
    if stream is not None:
        stream.head = Head(stream.head.seq, remembered.get(name, stream.head.hash))
    events = _right(self, name, drafts, *rest)
    remembered[name] = events[-1].hash
    return events
