"""The executor ``orchestrate``: a stage's input and the outcome of its role call go in, what it asks for comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall, StageInput

__all__ = ["OrchestrateExecutor"]


class OrchestrateExecutor:
    """Asks one role call and ends with its output or its error. ``S`` is ``{request, end}``, plain JSON."""

    def start(self, stage_input: StageInput) -> Any:
        """The role call is open; ``executor.no_prompt`` for a stage that asks nothing, ``executor.no_workflows`` for
        one that has none to run."""
        given = stage_input.to_wire()
        if not stage_input.prompt.strip():
            return {"request": None, "end": {"code": "executor.no_prompt", "message": "The stage has no prompt."}}
        if not given.get("workflows"):
            message = "There is no workflow that the stage could run; define one in stages.yaml, under workflows."
            return {"request": None, "end": {"code": "executor.no_workflows", "message": message}}
        return {"request": {"id": _request_id(given), "task": _task(given)}, "end": None}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """The stage attempt is over; a second outcome changes nothing.

        Raises:
            IllegalMove: ``executor.unknown_request`` for an outcome of something that was not asked.
        """
        request = state["request"]
        if request is None or outcome.request_id != request["id"]:
            message = f"Nothing was asked under the id {outcome.request_id}."
            raise IllegalMove(message, code="executor.unknown_request")
        if state["end"] is not None:
            return state
        end = {"output": outcome.value} if outcome.ok else _failure(outcome.error)
        return {**state, "end": end}

    def next(self, state: Any) -> tuple[Request, ...]:
        """The role call while it is open, then ``Finish`` or ``Fail``."""
        request, end = state["request"], state["end"]
        if end is None:
            return (RoleCall(request_id=request["id"], role="orchestrator", task=request["task"]),)
        if "output" in end:
            return (Finish(output=end["output"]),)
        return (Fail(code=end["code"], message=end["message"]),)


def _request_id(given: Mapping[str, Any]) -> str:
    """The id of the stage attempt's only request; the same for the same visit and attempt."""
    return f"{given['stage']}.visit[{given['visit_index']}].attempt[{given['attempt']}].orchestrate"


def _task(given: Mapping[str, Any]) -> dict[str, Any]:
    """The task: what the stage asks, its context and, after a failed attempt, why that failed."""
    asked = {"prompt": given["prompt"], "context": given["context"]}
    if given.get("feedback"):
        asked["feedback"] = given["feedback"]
    if given.get("output_schema") is not None:
        asked["outputSchema"] = given["output_schema"]
    asked["maxTurns"] = given["max_turns"]
    return {"kind": "orchestrate", "available": list(given["workflows"]), "input": asked}


def _failure(error: Any) -> dict[str, str]:
    known = error if isinstance(error, Mapping) else {}
    return {
        "code": str(known.get("code") or "role.failed"),
        "message": str(known.get("message") or "The role call failed."),
    }
