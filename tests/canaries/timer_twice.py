"""A timer that is due and is told of twice, for whoever is told does not ask whether it is open."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel import decide
from harness_core.kernel.commands import TimersElapsed
from harness_core.kernel.facts import Decision, Fact

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setitem(decide._RULES, TimersElapsed, _timers_elapsed)


def _timers_elapsed(command: TimersElapsed, state: Any, definition: Any) -> Decision:
    elapsed = [Fact("timer.elapsed", {"effect_id": one}) for one in command.effect_ids]
    return Decision((*elapsed, *elapsed))
