"""A stage that asks one role call: the call or why there is none goes in, its state, its requests and its end come out.

``S`` is ``{request, end}``, plain JSON. An executor of this kind says only what it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall

__all__ = ["asked", "asks_nothing", "requests_of", "settled"]


def asked(request_id: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """The state in which the call is open."""
    return {"request": {"id": request_id, "task": task}, "end": None}


def asks_nothing(code: str, message: str) -> dict[str, Any]:
    """The state of a stage that asks nothing and fails."""
    return {"request": None, "end": {"code": code, "message": message}}


def settled(state: Any, outcome: Outcome) -> Any:
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


def requests_of(state: Any, call: Callable[[str, Any], RoleCall]) -> tuple[Request, ...]:
    """The role call while it is open, then ``Finish`` or ``Fail``.

    Args:
        state: The state.
        call: Makes the role call of its id and its task.
    """
    request, end = state["request"], state["end"]
    if end is None:
        return (call(request["id"], request["task"]),)
    if "output" in end:
        return (Finish(output=end["output"]),)
    return (Fail(code=end["code"], message=end["message"]),)


def _failure(error: Any) -> dict[str, str]:
    known = error if isinstance(error, Mapping) else {}
    return {
        "code": str(known.get("code") or "role.failed"),
        "message": str(known.get("message") or "The role call failed."),
    }
