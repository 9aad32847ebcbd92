"""The executor ``workflow``: a stage's input and the outcomes of its calls go in, what is asked for comes out."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Fail, Outcome, Request, StageInput

__all__ = ["WorkflowExecutor"]


class WorkflowExecutor:
    """Runs the plan that its stage was given; ``S`` is plain JSON."""

    def start(self, stage_input: StageInput) -> Any:
        """The state before anything was asked; ``workflow.no_plan`` for a stage without a plan."""
        return {"end": {"code": "workflow.no_plan", "message": f"Stage {stage_input.stage} was given no plan to run."}}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """Refuse: nothing was asked.

        Raises:
            IllegalMove: ``executor.unknown_request``.
        """
        message = f"Nothing was asked under the id {outcome.request_id}."
        raise IllegalMove(message, code="executor.unknown_request")

    def next(self, state: Any) -> tuple[Request, ...]:
        """The end."""
        return (Fail(code=state["end"]["code"], message=state["end"]["message"]),)
