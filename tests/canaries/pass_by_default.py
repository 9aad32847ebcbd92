"""A gate that lets pass what nobody has approved, once somebody was asked and whatever was said."""

from __future__ import annotations

import pytest

from harness_core.kernel import stages
from harness_core.kernel.definition import Definition, StagePlan
from harness_core.kernel.facts import Decision
from harness_core.kernel.state import SessionState, Visit

__all__ = ["plant"]

_right = stages._gate


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(stages, "_gate", _gate)


def _gate(state: SessionState, definition: Definition, stage: StagePlan, visit: Visit) -> Decision:
    if stages._gate_status(state, visit) in (None, "pending"):
        return _right(state, definition, stage, visit)
    return stages._validation(state, definition, "approval", [])
