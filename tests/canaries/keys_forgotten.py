"""A store that does not know a key again, so that the same batch is stored as often as it comes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness_hookspecs.store import Draft, StoredEvent
from harness_store_memory import store
from harness_store_memory.log import Stream

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(store, "first_result", _first_result)


def _first_result(name: str, stream: Stream, drafts: Sequence[Draft]) -> tuple[StoredEvent, ...] | None:
    return None
