"""An append that is refused only when the head is behind what was expected, and not when it is ahead of it."""

from __future__ import annotations

import pytest

from harness_hookspecs.errors import StoreConflict
from harness_store_memory.log import Stream
from harness_store_memory.store import MemoryStore

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(MemoryStore, "_check", _check)


def _check(self: MemoryStore, name: str, stream: Stream, expected_seq: int | None) -> None:
    if expected_seq is not None and expected_seq > stream.head.seq:
        raise StoreConflict("the head is behind", where=name)
