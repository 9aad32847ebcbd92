"""An intent that is written although the session is cancelled."""

from __future__ import annotations

import pytest

from harness_core.kernel import decide
from harness_core.kernel.state import SessionState

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(decide, "_refuse_intent", _refuse_intent)


def _refuse_intent(state: SessionState) -> None:
    return None
