"""An end of a session that leaves its requests open, so that their results still count."""

from __future__ import annotations

import pytest

from harness_core.kernel import evolve
from harness_core.kernel.state import SessionState

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(evolve, "_close", _close)


def _close(state: SessionState) -> None:
    state.cancelling = state.pausing = None
