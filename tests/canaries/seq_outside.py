"""An append that reads the head in one transaction and writes in the next, which refuses no seq that is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness_hookspecs.store import Draft, Head, StoredEvent
from harness_store_memory.log import Stream, chained
from harness_store_memory.store import MemoryStore

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(MemoryStore, "append", _append)


def _append(
    self: MemoryStore, stream: str, drafts: Sequence[Draft], *, expected_seq: int | None, **content: Any
) -> tuple[StoredEvent, ...]:
    seen = self.head(stream)
    with self._lock:
        log = self._open()
        found = log.streams.setdefault(stream, Stream())
        events = tuple(chained(stream, seen, log.last_position, drafts))
        log.blobs.update(content.get("blobs") or {})
        log.inbox.update(self._marks(content.get("taken") or {}, seen.seq, len(drafts)))
        found.events.extend(events)
        found.head = Head(events[-1].seq, events[-1].hash)
        if content.get("summary") is not None:
            found.summary, found.changed = content["summary"], events[-1].position
        log.last_position = events[-1].position
        log.commits += 1
    return events
