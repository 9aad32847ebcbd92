"""A store that acknowledges the result of a tool without keeping it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness_hookspecs.store import Draft, StoredEvent
from harness_store_memory.log import Stream
from harness_store_memory.store import MemoryStore

__all__ = ["plant"]

_right = MemoryStore._extend


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(MemoryStore, "_extend", _extend)


def _extend(self: MemoryStore, stream: Stream, drafts: Sequence[Draft], events: tuple[StoredEvent, ...]) -> None:
    if drafts[-1].type != "harness.tool_call.succeeded":
        _right(self, stream, drafts, events)
