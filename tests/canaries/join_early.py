"""A stage that goes on with what its executor has by now, while calls that it asked for are still open."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel import stages
from harness_core.kernel.commands import Advance
from harness_core.kernel.definition import Definition
from harness_core.kernel.facts import Decision
from harness_core.kernel.state import SessionState

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(stages, "ask_beside", _ask_beside)


def _ask_beside(state: SessionState, definition: Definition, command: Advance, executor_state: Any) -> Decision:
    assert state.visit is not None
    return stages._execute(state, definition, state.visit, executor_state)
