"""The executor ``agent``: a stage's input and the outcome of its one role call go in, what is asked for comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall, StageInput

from .step import request_id, task

__all__ = ["AgentExecutor"]


class AgentExecutor:
    """Asks one role call and ends with its output or its error. ``S`` is ``{request, end}``, plain JSON."""

    def start(self, stage_input: StageInput) -> Any:
        """The role call is open; ``executor.no_prompt`` for a stage that asks nothing."""
        given = stage_input.to_wire()
        if not stage_input.prompt.strip():
            return {"request": None, "end": {"code": "executor.no_prompt", "message": "The stage has no prompt."}}
        return {"request": {"id": request_id(given), "task": task(given)}, "end": None}

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
            task = request["task"]
            where = task["stepContext"]
            return (
                RoleCall(
                    request_id=request["id"],
                    role="worker.ai-generate",
                    task=task,
                    step_path=where["stepPath"],
                    visit_index=where["visitIndex"],
                ),
            )
        if "output" in end:
            return (Finish(output=end["output"]),)
        return (Fail(code=end["code"], message=end["message"]),)


def _failure(error: Any) -> dict[str, str]:
    known = error if isinstance(error, Mapping) else {}
    return {
        "code": str(known.get("code") or "role.failed"),
        "message": str(known.get("message") or "The role call failed."),
    }
