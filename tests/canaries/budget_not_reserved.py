"""A call of a model that reserves nothing of the budget before it is made."""

from __future__ import annotations

import pytest

from harness_core.kernel import decide
from harness_core.kernel.commands import Record
from harness_core.kernel.definition import Definition
from harness_core.kernel.facts import Decision
from harness_core.kernel.state import SessionState

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(decide, "_reserve", _reserve)


def _reserve(command: Record, state: SessionState, definition: Definition) -> Decision:
    return Decision((*command.results, *command.intent), command.blobs)
