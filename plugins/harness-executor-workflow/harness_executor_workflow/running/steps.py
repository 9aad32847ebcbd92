"""The life of one step: it begins, asks, hears, tries again, is repaired, and settles or fails its level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema
from harness_hookspecs.workflow import StepOutput

from .held import hold
from .limits import bounds_of, max_calls
from .move import Frame, Move, step_state
from .program import StepPlan
from .tasks import ROLES, ask_id, delay_of, fix_task, path_of, step_task, with_feedback

__all__ = ["begin", "complete", "error_of", "fail", "fail_level", "give_up", "heard", "skip", "stop_waiting", "tell"]

_PASSING: Final = ("ask", "limit", "task", "fan", "fix", "attempt")
"""What is kept of a step only while it is under way."""


def begin(move: Move, frame: Frame, step: str) -> None:
    """A step that may begin does: it asks for its first attempt, or opens its branches."""
    if frame.state["failed"]:
        return
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    state |= {"status": "running", "attempt": 1}
    move.own(frame.state, "running")[step] = 1
    try:
        if plan.uses in ROLES:
            state["task"] = step_task(frame, plan, state["visit"])
    except HarnessError as error:  # an expression is no luck: it would fail again
        give_up(move, frame, step, error_of({"code": error.code, "message": error.message}))
        return
    _attempt(move, frame, step)


def skip(move: Move, frame: Frame, step: str) -> None:
    """A step that is not to run has settled."""
    _settle(move, frame, step, "skipped")


def complete(move: Move, frame: Frame, step: str, output: Any) -> None:
    """A step has its output; a decision its choice, and ``fail`` among the choices fails the level."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    over = None if plan.uses == "parallel" else hold(move, frame, output)  # of branches, each has been counted
    if over is not None:
        move.state["over"] = over
        fail_level(move, frame, step, over)
        return
    if plan.uses == "decision":
        chosen = output.get("chosen") if isinstance(output, Mapping) else output
        if chosen not in plan.targets or chosen == "fail":
            fail_level(move, frame, step, _choice_error(plan, chosen))
            return
        state["to"] = chosen
    elif plan.max_visits > 1:
        state["all"] = [*state.get("all", ()), output]
    else:
        state["output"] = output
    _settle(move, frame, step, "completed")


def fail(move: Move, frame: Frame, step: str, error: dict[str, Any]) -> None:
    """An attempt has failed: another one, or a repair, or the step has."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    if state["attempt"] >= plan.retry.get("maxAttempts", 1):
        if plan.fixes:
            state["fix"] = {"error": error, "prior": 0}
            _repair(move, frame, step, error)
        else:
            give_up(move, frame, step, error)
        return
    state["attempt"] += 1
    if plan.retry.get("strategy") == "corrective" and plan.uses == "ai.generate":  # others would take it for input
        state["task"] = with_feedback(state["task"], error["message"])
    identity = ask_id(frame, plan, state, ".delay")
    delay = delay_of(plan.retry, state["attempt"], f"{move.state['seed']}|{identity}")
    if delay:
        state.pop("fan", None)
        state["ask"] = move.new(_ask(frame, plan, state, ".delay", kind="timer", delay_ms=delay))
    else:
        _attempt(move, frame, step)


def give_up(move: Move, frame: Frame, step: str, error: dict[str, Any]) -> None:
    """A step has failed for good: it leads where ``onFailure`` says, or fails its level."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    if plan.to is None or plan.to == "fail":
        fail_level(move, frame, step, error)
        return
    state |= {"to": plan.to, "error": {"code": error["code"], "message": error["message"]}}
    _settle(move, frame, step, "failed")


def heard(move: Move, frame: Frame, step: str, value: Any, error: dict[str, Any] | None) -> None:
    """The outcome of what a step asked for; a level that has failed only waits for it."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    ask = state["ask"]
    if frame.state["failed"]:
        stop_waiting(move, frame, step)
    elif ask["kind"] == "told":
        _went_on(move, frame, step, ask["told"])
    elif ask["kind"] == "fix":
        _fixed(move, frame, step, value, error)
    elif error is not None:
        if "fix" in state:
            _repair(move, frame, step, error)
        else:
            fail(move, frame, step, error)
    elif ask["kind"] == "timer" and plan.uses != "wait":
        _attempt(move, frame, step)
    else:
        fault = _fault(plan.output, value) if ask["kind"] == "event" else None
        if fault is None:
            complete(move, frame, step, value if ask["kind"] != "timer" else None)
        else:
            message = f"What the event {ask['event']} brought is not what the step promises: {fault}"
            fail(move, frame, step, {"name": "ValidationFailed", "code": "wait.output_mismatch", "message": message})


def fail_level(move: Move, frame: Frame, step: str, error: Mapping[str, Any]) -> None:
    """Nothing caught the failure of a step: its level begins nothing more and fails when all calls have ended."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    path = error.get("stepPath") or path_of(frame, plan, state["visit"])
    attempt = error.get("attempt") or state.get("attempt", 1)
    if not frame.state["failed"]:
        where = {"stepPath": path, "visitIndex": error.get("visitIndex", state["visit"]), "attempt": attempt}
        frame.state["failed"] = {"code": error["code"], "message": error["message"], **where}
    stop_waiting(move, frame, step)
    move.agenda.append(("stop", frame, ""))


def stop_waiting(move: Move, frame: Frame, step: str) -> None:
    """A step of a level that has failed awaits nothing any more."""
    state = step_state(move, frame, step)
    for name in _PASSING:
        state.pop(name, None)
    state["status"] = "stopped"
    move.own(frame.state, "running").pop(step, None)
    move.ending.append(frame)


def error_of(error: Any) -> dict[str, Any]:
    """What was recorded of a failure, as an envelope with at least a name, a code and a message."""
    known = error if isinstance(error, Mapping) else {}
    return {
        **known,
        "name": str(known.get("name") or "HarnessError"),
        "code": str(known.get("code") or "role.failed"),
        "message": str(known.get("message") or "The role call failed."),
    }


def _attempt(move: Move, frame: Frame, step: str) -> None:
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    if plan.uses == "parallel":
        tell(move, frame, step, event="started")
    elif plan.uses == "wait":
        settings = plan.wire["with"]
        if "durationMs" in settings:
            ask = _ask(frame, plan, state, "", kind="timer", delay_ms=settings["durationMs"])
        else:
            ask = _ask(frame, plan, state, "", kind="event", event=settings["event"])
            ask |= {"limit_ms": settings["limitMs"]} if "limitMs" in settings else {}
        state["ask"] = move.new(ask)
    else:
        _call(move, frame, step, "", kind="call", role=ROLES[plan.uses], task=state["task"])


def tell(move: Move, frame: Frame, step: str, **told: Any) -> None:
    """Have it recorded that a step of the runtime's own has begun, or what it gives; it goes on when that is heard."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    state.pop("fan", None)
    state.pop("limit", None)
    said = {"step_id": plan.id, "uses": plan.uses, "attempt": state["attempt"], **told}
    if move.state.get("tells"):
        state["ask"] = move.new(_ask(frame, plan, state, f".{told['event']}", kind="told", told=said))
    else:  # as it was run before that was recorded
        _went_on(move, frame, step, said)


def _went_on(move: Move, frame: Frame, step: str, told: Mapping[str, Any]) -> None:
    step_state(move, frame, step).pop("ask", None)
    if told["event"] == "started":
        move.agenda.append(("open", frame, step))
    else:
        complete(move, frame, step, told["output"])


def _call(move: Move, frame: Frame, step: str, tail: str, **asked: Any) -> None:
    """Ask for a role call, unless the run has had all that its plan allows; its last step is not counted."""
    plan, state, limit = frame.level.steps[step], step_state(move, frame, step), max_calls(move)
    if limit is not None and move.state["calls"] >= limit and move.state["result"] is None:
        message = f"The run has made {limit} calls, which is limits.maxStepExecutions of its plan."
        move.state["over"] = {"code": "limits.max_step_executions", "message": message}
        fail_level(move, frame, step, move.state["over"])
        return
    move.state["calls"] += 1
    bounds = bounds_of(move, frame, plan.limit_ms if asked["kind"] == "call" else None)
    state["ask"] = move.new(_ask(frame, plan, state, tail, **asked, **bounds))


def _ask(frame: Frame, plan: StepPlan, state: Mapping[str, Any], tail: str, **asked: Any) -> dict[str, Any]:
    where = {"path": path_of(frame, plan, state["visit"]), "visit": state["visit"]}
    return {"id": ask_id(frame, plan, state, tail), **where, **asked}


def _repair(move: Move, frame: Frame, step: str, error: dict[str, Any]) -> None:
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    fix = move.own(state, "fix")
    details = error.get("details") or {}
    if details.get("source") and details.get("error"):  # what a repair proposed, and what came of it
        fix["tried"] = [*fix.get("tried", ()), {"source": details["source"], "error": details["error"]}]
    if fix["prior"] >= plan.fixes:
        message = f"{plan.fixes} repairs did not help; the last attempt: {error['message']}"
        told = error if error["code"] == "fixer.exhausted" else {**error, "code": "fixer.exhausted", "message": message}
        give_up(move, frame, step, told)
        return
    fix["prior"] += 1
    task = fix_task(state["task"], fix)
    _call(move, frame, step, f".fix{fix['prior']}", kind="fix", role="fixer", task=task)


def _fixed(move: Move, frame: Frame, step: str, value: Any, error: dict[str, Any] | None) -> None:
    """A repair is only proposed: its source is run like the step's own, and what that gives is the output."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    source = value.get("fixedSource") if error is None and isinstance(value, Mapping) else None
    if not isinstance(source, str) or not source:
        _repair(
            move, frame, step, error or error_of({"code": "fixer.no_source", "message": "The fixer gave no source."})
        )
        return
    planned = state["task"]["step"]
    task = {**state["task"], "step": {**planned, "with": {**planned["with"], "source": source}}}
    _call(move, frame, step, f".fixed{state['fix']['prior']}", kind="call", role=ROLES[plan.uses], task=task)


def _settle(move: Move, frame: Frame, step: str, status: str) -> None:
    state = step_state(move, frame, step)
    for name in _PASSING:
        state.pop(name, None)
    state["status"] = status
    move.own(frame.state, "running").pop(step, None)
    frame.state["left"] -= 1
    move.agenda.append(("settled", frame, step))
    move.ending.append(frame)


def _choice_error(plan: StepPlan, chosen: Any) -> dict[str, Any]:
    if chosen == "fail" and "fail" in plan.targets:
        return {"code": "decision.fail", "message": f"The decision {plan.id} chose to fail."}
    targets = ", ".join(plan.targets)
    message = f"The decision {plan.id} has no target {str(chosen)[:80]!r}; its targets are {targets}."
    return {"code": "decision.unknown_target", "message": message}


def _fault(output: StepOutput | None, value: Any) -> str | None:
    """What is wrong with a value under an output contract, in one sentence."""
    if output is None:
        return None
    if output.mode == "text":
        return None if isinstance(value, str) else "it is no text."
    if output.mode == "choice":
        return None if value in (output.values or ()) else f"it is none of {', '.join(output.values or ())}."
    fault = best_fault(compiled_schema(True if output.schema_ is None else output.schema_), value)
    return None if fault is None else fault.message
