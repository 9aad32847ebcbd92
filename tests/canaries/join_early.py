"""A stage that goes on with what its executor has by now, while calls that it asked for are still open."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel import stages
from harness_core.kernel.definition import Definition
from harness_core.kernel.facts import Decision
from harness_core.kernel.state import SessionState, Visit

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(stages, "_ask_beside", _ask_beside)


def _ask_beside(state: SessionState, definition: Definition, visit: Visit, executor_state: Any) -> Decision:
    return stages._execute(state, definition, visit, executor_state)
