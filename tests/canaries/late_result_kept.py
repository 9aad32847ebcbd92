"""A result that comes after its role call has ended and is recorded all the same."""

from __future__ import annotations

import pytest

from harness_core.kernel import decide
from harness_core.kernel.commands import Record
from harness_core.kernel.definition import Definition
from harness_core.kernel.facts import Decision
from harness_core.kernel.state import SessionState

__all__ = ["plant"]

_right = decide._record


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setitem(decide._RULES, Record, _record)


def _record(command: Record, state: SessionState, definition: Definition) -> Decision:
    if state.open_of(command.role_call_id) is None:
        return Decision(command.results, command.blobs)
    return _right(command, state, definition)
