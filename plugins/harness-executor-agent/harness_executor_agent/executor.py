"""The executor ``agent``: a stage's input and the outcome of its one role call go in, what is asked for comes out."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.executor import Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.one_call import asked, asks_nothing, requests_of, settled

from .step import request_id, task

__all__ = ["AgentExecutor"]


class AgentExecutor:
    """Asks one role call and ends with its output or its error. ``S`` is ``{request, end}``, plain JSON."""

    def start(self, stage_input: StageInput) -> Any:
        """The role call is open; ``executor.no_prompt`` for a stage that asks nothing."""
        given = stage_input.to_wire()
        if not stage_input.prompt.strip():
            return asks_nothing("executor.no_prompt", "The stage has no prompt.")
        return asked(request_id(given), task(given))

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """The stage attempt is over; see :func:`harness_hookspecs.kit.one_call.settled`."""
        return settled(state, outcome)

    def next(self, state: Any) -> tuple[Request, ...]:
        """The role call while it is open, then ``Finish`` or ``Fail``."""
        return requests_of(state, _call)


def _call(request_id: str, task: Any) -> RoleCall:
    where = task["stepContext"]
    return RoleCall(
        request_id=request_id,
        role="worker.ai-generate",
        task=task,
        step_path=where["stepPath"],
        visit_index=where["visitIndex"],
    )
