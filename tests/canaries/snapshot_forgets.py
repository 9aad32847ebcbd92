"""A snapshot that is read back without what the session has spent."""

from __future__ import annotations

import pytest

from harness_core.kernel import snapshot
from harness_core.kernel.state import SessionState

__all__ = ["plant"]

_right = snapshot.state_of


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(snapshot, "state_of", _state_of)


def _state_of(content: bytes) -> SessionState:
    state = _right(content)
    state.spent_tokens = 0
    return state
