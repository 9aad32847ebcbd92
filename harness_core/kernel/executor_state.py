"""An executor, its input and the outcomes so far in, its state ``S`` out: a cache that may be thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_hookspecs.executor import Executor, Outcome, StageInput

from .guard import Guarded, guarded

__all__ = ["fold_outcomes"]


def fold_outcomes(executor: Executor, stage_input: StageInput, outcomes: Sequence[Outcome]) -> Guarded:
    """``start`` and one ``apply`` per outcome, through the guard."""

    def fold() -> Any:
        state = executor.start(stage_input)
        for outcome in outcomes:
            state = executor.apply(state, outcome)
        return state

    return guarded(fold)
