"""The branches of a ``parallel`` step: its items go in, a level for each key, a few at a time, an envelope each out.

How many are under way is bounded for each step by its plan, and for all steps of a run together (``Program.at_once``):
groups within groups would else have as many at once as the one bound times the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_executor_workflow.plan.paths import MAX_KEY_BYTES, format_path
from harness_hookspecs.errors import HarnessError, ValidationFailed
from harness_hookspecs.kit.canonical import canonical

from .expressions import Meter
from .held import hold, let_go
from .limits import timer_of
from .move import Frame, Move, new_level, put, step_state, taken
from .program import Fan
from .steps import error_of, fail, fail_level, give_up, stop_waiting, tell
from .tasks import ask_id, evaluate, path_of, scope_of, segment

__all__ = ["branch_frame", "branch_over", "open_fan", "progress", "stop", "time_over"]


def open_fan(move: Move, frame: Frame, step: str) -> None:
    """Read the items and their keys, and begin the first branches."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    assert plan.fan is not None
    if frame.state["failed"]:
        return
    try:
        items, keys = _items(frame, plan.fan, plan.readers, state["visit"])
    except HarnessError as error:  # the same items would be read again
        give_up(move, frame, step, error_of({"code": error.code, "message": error.message}))
        return
    index = {key: number for number, key in enumerate(keys)}
    fan = {"items": items, "keys": keys, "index": index, "next": 0, "active": {}, "done": None, "failed": None}
    state["fan"] = move.new(fan)
    if plan.limit_ms is not None and "limits" in move.state:
        where = {"path": path_of(frame, plan, state["visit"]), "visit": state["visit"]}
        limit = {"id": ask_id(frame, plan, state, ".limit"), **where, **timer_of(plan.limit_ms)}
        state["limit"] = move.new(limit)
    move.agenda.append(("progress", frame, step))


def progress(move: Move, frame: Frame, step: str) -> None:
    """Begin as many branches as may run side by side; settle the step when there is none left."""
    state, plan = step_state(move, frame, step), frame.level.steps[step].fan
    assert plan is not None
    if "fan" not in state:
        return
    fan = move.own(state, "fan")
    active, size = move.own(fan, "active"), len(fan["items"])
    stopped = bool(fan["failed"] or frame.state["failed"] or move.state["over"])
    while not stopped and fan["next"] < size and len(active) < plan.max_concurrency and _has_room(move, active):
        move.state["branches"] += _is_counted(frame, active)
        active[str(fan["next"])] = new_level(move, plan.body)
        branch = branch_frame(move, frame, step, fan["next"])
        fan["next"] += 1
        move.agenda += [("ready", branch, starter) for starter in plan.body.starters]
    if active or (not stopped and fan["next"] < size):
        return
    _ended(move, frame, step, fan, plan)


def _has_room(move: Move, active: Mapping[str, Any]) -> bool:
    """Whether the run may have one more branch. A group always has one: when that has ended, it is looked at again."""
    return not active or move.state["branches"] < move.program.at_once


def _is_counted(frame: Frame, others: Mapping[str, Any]) -> bool:
    """Whether a branch beside these others counts: the first within another branch takes that one's place."""
    return bool(others) or not frame.within


def time_over(move: Move, frame: Frame, step: str) -> None:
    """Its time is over: no branch begins anything more, and it has failed when their calls have ended."""
    state, plan = step_state(move, frame, step), frame.level.steps[step]
    state.pop("limit", None)
    fan = move.own(state, "fan")
    if not fan["failed"]:
        message = f"The branches of {step} took longer than its timeoutMs, {plan.limit_ms}."
        fan["failed"] = {"name": "Timeout", "code": "step.timeout", "message": message}
        _stop_branches(move, frame, step)
    move.agenda.append(("progress", frame, step))


def branch_frame(move: Move, frame: Frame, step: str, index: int) -> Frame:
    """The level of a branch that is under way."""
    plan, state = frame.level.steps[step], step_state(move, frame, step)
    assert plan.fan is not None
    fan = move.own(state, "fan")
    return Frame(
        level=plan.fan.body,
        state=move.own(move.own(fan, "active"), str(index)),
        roots={**frame.roots, "item": fan["items"][index]},
        way=(*frame.way, segment(plan, state["visit"], fan["keys"][index])),
        turn=f"{frame.turn}{state['attempt']}.",
        outer=frame,
        within=step,
        number=index,
    )


def branch_over(move: Move, branch: Frame) -> None:
    """Keep of a branch that has ended what the envelope holds, and nothing else."""
    frame, step = branch.outer, branch.within
    assert frame is not None
    plan, fan = frame.level.steps[step].fan, move.own(step_state(move, frame, step), "fan")
    assert plan is not None
    active = move.own(fan, "active")
    active.pop(str(branch.number))
    move.state["branches"] -= _is_counted(frame, active)
    failed = branch.state["failed"]
    envelope = {
        "itemKey": fan["keys"][branch.number],
        "status": "failed" if failed else "completed",
        "output": None if failed else _output(branch, plan),
        "error": failed and {name: failed[name] for name in ("code", "message", "stepPath")},
        "artifacts": [],
    }
    put(move, fan, "done", len(fan["items"]), branch.number, envelope)
    let_go(move, branch)
    move.state["over"] = move.state["over"] or hold(move, frame, envelope["output"])
    if failed and plan.stops_at_failure and not fan["failed"]:
        fan["failed"] = failed
        _stop_branches(move, frame, step)
    move.agenda.append(("progress", frame, step))


def stop(move: Move, frame: Frame) -> None:
    """A level has failed: whatever only waits in it waits no more, and its branches begin nothing."""
    for step in [*frame.state["running"]]:
        state = step_state(move, frame, step)
        if "fan" in state:
            _stop_branches(move, frame, step)
            move.agenda.append(("progress", frame, step))
        elif state.get("ask", {}).get("kind") not in ("call", "fix"):
            stop_waiting(move, frame, step)
    move.ending.append(frame)


def _stop_branches(move: Move, frame: Frame, step: str) -> None:
    fan = step_state(move, frame, step)["fan"]
    for index in [*fan["active"]]:
        branch = branch_frame(move, frame, step, int(index))
        if not branch.state["failed"]:
            path = format_path(branch.way)
            reason = {"code": "parallel.stopped", "message": "Another failure stopped this branch."}
            branch.state["failed"] = {**reason, "stepPath": path, "visitIndex": 0, "attempt": 1}
        move.agenda.append(("stop", branch, ""))


def _ended(move: Move, frame: Frame, step: str, fan: dict[str, Any], plan: Fan) -> None:
    if frame.state["failed"]:
        stop_waiting(move, frame, step)
    elif move.state["over"]:
        fail_level(move, frame, step, move.state["over"])
    elif fan["failed"]:
        failed = fan["failed"]
        for name in ("fan", "limit"):
            step_state(move, frame, step).pop(name, None)
        said = f"A branch failed: {failed['message']}" if "stepPath" in failed else failed["message"]
        fail(move, frame, step, {**error_of(failed), "message": said})
    else:
        envelopes = taken(fan["done"], len(fan["items"]))
        if plan.by_key:
            envelopes.sort(key=lambda one: one["itemKey"])
        failed = sum(one["status"] == "failed" for one in envelopes)
        mode = "fail_fast" if plan.stops_at_failure else "all_settled"
        branches = {"failureMode": mode, "completed": len(envelopes) - failed, "failed": failed}
        tell(move, frame, step, event="succeeded", output=envelopes, branches=branches)


def _output(branch: Frame, plan: Fan) -> Any:
    state = branch.state["steps"].get(plan.output_step, {})
    return state["all"][-1] if "all" in state else state.get("output")


def _items(frame: Frame, plan: Fan, readers: Any, visit: int) -> tuple[list[Any], list[str]]:
    items = evaluate(readers, scope_of(frame, visit), plan.items)
    if not isinstance(items, list):
        raise ValidationFailed("The items of a parallel step are no array.", code="parallel.items_not_array")
    if len(items) > plan.max_branches:
        message = f"There are {len(items)} items, and maxBranches is {plan.max_branches}."
        raise ValidationFailed(message, code="parallel.too_many_items")
    keys: dict[str, None] = {}
    meter = Meter()
    for number, item in enumerate(items):
        key = evaluate(readers, scope_of(frame, visit, item), plan.key, meter)
        text = key if isinstance(key, str) else canonical(key).decode()
        size = len(text.encode())
        if size > MAX_KEY_BYTES:
            message = f"The key of item {number}, {text[:40]!r}..., has {size} bytes; the limit is {MAX_KEY_BYTES}."
            raise ValidationFailed(message, code="parallel.key_too_long")
        if text in keys:
            message = f"Item {number} has the key {text[:80]!r}, which another one has; keys tell branches apart."
            raise ValidationFailed(message, code="parallel.duplicate_key")
        keys[text] = None
    return items, list(keys)
