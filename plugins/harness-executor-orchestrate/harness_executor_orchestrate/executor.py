"""The executor ``orchestrate``: a stage's input and the outcome of its role call go in, what it asks for comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.executor import Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.one_call import asked, asks_nothing, requests_of, settled

__all__ = ["OrchestrateExecutor"]


class OrchestrateExecutor:
    """Asks one role call and ends with its output or its error. ``S`` is ``{request, end}``, plain JSON."""

    def start(self, stage_input: StageInput) -> Any:
        """The role call is open; ``executor.no_prompt`` for a stage that asks nothing, ``executor.no_workflows`` for
        one that has none to run."""
        given = stage_input.to_wire()
        if not stage_input.prompt.strip():
            return asks_nothing("executor.no_prompt", "The stage has no prompt.")
        if not given.get("workflows"):
            message = "There is no workflow that the stage could run; define one in stages.yaml, under workflows."
            return asks_nothing("executor.no_workflows", message)
        return asked(_request_id(given), _task(given))

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """The stage attempt is over; see :func:`harness_hookspecs.kit.one_call.settled`."""
        return settled(state, outcome)

    def next(self, state: Any) -> tuple[Request, ...]:
        """The role call while it is open, then ``Finish`` or ``Fail``."""
        return requests_of(state, _call)


def _call(request_id: str, task: Any) -> RoleCall:
    return RoleCall(request_id=request_id, role="orchestrator", task=task)


def _request_id(given: Mapping[str, Any]) -> str:
    """The id of the stage attempt's only request; the same for the same visit and attempt."""
    return f"{given['stage']}.visit[{given['visit_index']}].attempt[{given['attempt']}].orchestrate"


def _task(given: Mapping[str, Any]) -> dict[str, Any]:
    """The task: what the stage asks, its context and, after a failed attempt, why that failed."""
    told = {"prompt": given["prompt"], "context": given["context"]}
    if given.get("feedback"):
        told["feedback"] = given["feedback"]
    if given.get("output_schema") is not None:
        told["outputSchema"] = given["output_schema"]
    told["maxTurns"] = given["max_turns"]
    return {"kind": "orchestrate", "available": list(given["workflows"]), "input": told}
