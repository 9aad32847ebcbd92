"""The run of a plan as three pure functions: a program and its input in, a state; with each outcome the next one.

``S`` is plain JSON. ``next_asks`` gives what is open in it, ``end_of`` how the run ended; between the two the last step
of the plan (``finally``) runs, whatever the end. The same outcomes give the same state; another order of them gives the
same steps, paths and visits, except that what a failure stops depends on how far the rest had come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from harness_executor_workflow.plan.paths import Segment, parse_path
from harness_hookspecs.errors import HarnessError, IllegalMove, ValidationFailed
from harness_hookspecs.executor import Outcome
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema

from .fan import branch_frame, branch_over, open_fan, progress, stop, time_over
from .flow import back_to, looked_at, verdict, visit_again
from .limits import LIMIT, begin_limit, stop_run
from .move import Frame, Move, new_level, step_state
from .program import Level, Program
from .steps import begin, error_of, fail_level, heard, skip
from .tasks import evaluate, scope_of

__all__ = ["apply", "end_of", "next_asks", "opened_asks", "start"]


def start(
    program: Program,
    given: Any,
    *,
    run: Mapping[str, Any],
    seed: str,
    tells: bool = False,
    limits: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The state in which the first steps are open, or the end if the input is not what the plan takes.

    Args:
        program: The plan.
        given: The input.
        run: What expressions read as ``run``: ``id`` and ``attempt``.
        seed: Decides what would else be chance.
        tells: Whether who runs it is told when a step of the runtime's own begins and ends.
        limits: How far it may go, by their names in the plan; ``None`` where who runs it keeps none.
    """
    state = {"input": given, "run": dict(run), "seed": seed, "calls": 0, "over": None, "result": None, "end": None}
    state |= {"tells": True} if tells else {}
    state |= {"limits": dict(limits)} if limits is not None else {}
    move = Move(program, {**state, "branches": 0, "root": None, "last": None, "opened": []})
    fault = best_fault(compiled_schema(program.plan.input.schema_), given)
    if fault is not None:
        message = f"The input is not what the plan takes: {fault.message} (at {fault.pointer or 'its top'})"
        move.state["end"] = {"error": {"code": "input.schema_mismatch", "message": message}}
        return move.state
    begin_limit(move)
    _enter(move, "root", program.root)
    return _moved(move)


def apply(program: Program, state: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The state after one outcome; the old one is not touched, and what came late changes nothing.

    Raises:
        IllegalMove: ``executor.unknown_request`` for an outcome of something that was not asked.
    """
    move = Move(program, state)
    if outcome.request_id == LIMIT and "limit" in state:
        if state["result"] is None and state["end"] is None:
            stop_run(move, _frame(move, "root"), "limits.timeout")
            return _moved(move)
        return {**state, "opened": []}
    found = None if state["end"] is not None else _asked(move, outcome.request_id)
    if found is None:
        _known(program, outcome.request_id)
        return {**state, "opened": []}
    frame, step = found
    if frame.state["steps"][step].get("limit", {}).get("id") == outcome.request_id:
        time_over(move, frame, step)
        return _moved(move)
    _beyond(move, outcome)
    heard(move, frame, step, outcome.value if outcome.ok else None, None if outcome.ok else error_of(outcome.error))
    return _moved(move)


def next_asks(program: Program, state: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Everything that is open: dicts with ``id``, ``kind`` (call, fix, timer, event, told), ``path``, ``visit`` ..."""
    if state["end"] is not None:
        return ()
    limit = [state["limit"]] if "limit" in state and state["result"] is None else []
    return (*limit, *(ask for name in ("root", "last") if state[name] for ask in _open(state[name])))


def opened_asks(state: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Of ``next_asks`` what the last outcome has opened, in the same order; it costs nothing to say."""
    return tuple(state["opened"])


def end_of(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """``{output}``, or ``{error}`` with code and message, when the run is over."""
    end: dict[str, Any] | None = state["end"]
    return end


def _open(level: Mapping[str, Any], counts: Callable[[Any], bool] = lambda part: True) -> Iterator[dict[str, Any]]:
    """What a level asks for, in as far as the parts of the state that lead there count, and the ask itself."""
    if not counts(level):
        return
    for step in level["running"]:
        state = level["steps"][step]
        if not counts(state):
            continue
        if "limit" in state and counts(state["limit"]):
            yield state["limit"]
        if "fan" in state:
            for branch in state["fan"]["active"].values():
                yield from _open(branch, counts)
        elif "ask" in state and counts(state["ask"]):
            yield state["ask"]


def _frame(move: Move, name: str) -> Frame:
    roots = {"input": move.state["input"], "run": move.state["run"]}
    root = Frame(move.program.root, move.own(move.state, "root"), roots)
    if name == "root":
        return root
    assert move.program.last is not None
    return Frame(move.program.last, move.own(move.state, "last"), roots, outer=root)


def _enter(move: Move, name: str, level: Level) -> None:
    move.state[name] = new_level(move, level)
    frame = _frame(move, name)
    move.agenda += [("ready", frame, step) for step in level.starters]
    move.ending.append(frame)


def _moved(move: Move) -> dict[str, Any]:
    """Do all that follows, to the end of the run if it has come."""
    _work(move)
    root = _frame(move, "root")
    if root.state["over"] and move.state["result"] is None:
        move.state["result"] = _result(move, root)
        move.state["over"] = None  # what stopped the others does not stop the last step
        if move.program.last is not None:
            _enter(move, "last", move.program.last)
            _work(move)
    if move.state["result"] is not None:
        _end(move)
    levels = (move.state[name] for name in ("root", "last") if move.state[name] and move.state["end"] is None)
    move.state["opened"] = [ask for level in levels for ask in _open(level, move.made)]
    return move.state


def _end(move: Move) -> None:
    result, last = move.state["result"], move.state["last"]
    if last is not None and not last["over"]:
        return
    failed = last["failed"] if last is not None else None
    if failed and "error" in result:
        message = f"{result['error']['message']} The last step failed too: {_told(failed)}"
        result = {"error": {**result["error"], "message": message}}
    elif failed:
        result = {"error": {"code": failed["code"], "message": f"The last step of the run failed. {_told(failed)}"}}
    move.state["end"] = result


def _result(move: Move, root: Frame) -> dict[str, Any]:
    failed = root.state["failed"]
    if failed:
        return {"error": {"code": failed["code"], "message": _told(failed)}}
    output = move.program.plan.output
    try:
        value = evaluate(move.program.output, scope_of(root), move.program.plan.to_wire()["output"]["value"])
        fault = best_fault(compiled_schema(output.schema_), value)
    except HarnessError as error:
        message = f"The output of the run cannot be put together: {error.message}"
        return {"error": {"code": error.code, "message": message}}
    if fault is not None:
        message = f"The output is not what the plan promises: {fault.message} (at {fault.pointer or 'its top'})"
        return {"error": {"code": "output.schema_mismatch", "message": message}}
    return {"output": value}


def _beyond(move: Move, outcome: Outcome) -> None:
    """A call that was ended since a limit is reached: what it is part of is over, whichever of both is heard first."""
    error = outcome.error if isinstance(outcome.error, Mapping) else {}
    timer = (error.get("details") or {}).get("timer")
    if move.state["result"] is not None or "limits" not in move.state:
        return
    if error.get("code") == "limits.max_tokens":
        stop_run(move, _frame(move, "root"), "limits.max_tokens", f": {error['message']}")
    elif error.get("code") == "limits.timeout" and timer == LIMIT:
        stop_run(move, _frame(move, "root"), "limits.timeout")
    elif error.get("code") == "limits.timeout" and isinstance(timer, str) and (found := _asked(move, timer)):
        time_over(move, *found)
    _work(move)  # before the call is heard, or its step would try again


def _told(failed: Mapping[str, Any]) -> str:
    if "stepPath" not in failed:  # no step is to blame
        return str(failed["message"])
    where = f"Step {failed['stepPath']} (visit {failed['visitIndex']}, attempt {failed['attempt']})"
    return f"{where} failed: {failed['message']}"


def _work(move: Move) -> None:
    while move.agenda or move.ending:
        if move.agenda:
            what, frame, step = move.agenda.popleft()
            _DO[what](move, frame, step)
        else:
            _check(move, move.ending.popleft())


def _ready(move: Move, frame: Frame, step: str) -> None:
    if not frame.state["failed"]:
        begin(move, frame, step)


def _settled(move: Move, frame: Frame, step: str) -> None:
    if frame.state["failed"]:
        return
    edges = back_to(frame, step)
    if edges:
        spent = visit_again(move, frame, edges)
        if spent is not None:
            times = frame.level.steps[spent].max_visits
            message = f"{edges[0].source} leads back to {edges[0].target}, and {spent} has had its {times} visits."
            fail_level(move, frame, spent, {"code": "max_visits_exceeded", "message": message})
            return
    for target in looked_at(frame, step):
        found = verdict(frame, target)
        if found == "skip":
            skip(move, frame, target)
        elif found:
            _queue(move, frame, target)
    for head in sorted({edge.target for edge in edges}, key=frame.level.place.__getitem__):
        _queue(move, frame, head)


def _queue(move: Move, frame: Frame, step: str) -> None:
    step_state(move, frame, step)["status"] = "ready"
    move.agenda.append(("ready", frame, step))


def _check(move: Move, frame: Frame) -> None:
    """A level is over when all of it has settled, or when it has failed and awaits nothing more."""
    level = frame.state
    if level["over"] or (level["running"] if level["failed"] else level["left"]):
        return
    level["over"] = True
    if frame.within:
        branch_over(move, frame)


_DO: Final[Mapping[str, Callable[[Move, Frame, str], None]]] = {
    "open": open_fan,
    "progress": progress,
    "ready": _ready,
    "settled": _settled,
    "stop": lambda move, frame, _: stop(move, frame),
}


def _asked(move: Move, request_id: str) -> tuple[Frame, str] | None:
    """The level and the step that asked, if it still waits for this."""
    way = _way(request_id)
    frame = _frame(move, "last" if move.state["last"] is not None else "root")
    for one in way[:-1]:
        fan = frame.state["steps"].get(one.step, {}).get("fan", {})
        index = fan.get("index", {}).get(one.key)
        if str(index) not in fan.get("active", {}):
            return None
        frame = branch_frame(move, frame, one.step, index)
    state = frame.state["steps"].get(way[-1].step, {})
    asks = (state[name]["id"] for name in ("ask", "limit") if name in state)
    return (frame, way[-1].step) if request_id in asks else None


def _known(program: Program, request_id: str) -> None:
    """Refuse an outcome of what no run of this plan asks for; anything else of it has been answered."""
    way = _way(request_id)
    last = program.last is not None and way[0].step in program.last.steps
    level: Level | None = program.last if last else program.root
    for one in way:
        plan = level.steps.get(one.step) if level is not None else None
        if plan is None or (one.key is not None) != (one is not way[-1]):
            raise _unknown(request_id)
        level = plan.fan.body if plan.fan is not None else None


def _way(request_id: str) -> tuple[Segment, ...]:
    try:
        return parse_path(request_id.partition("#")[0])
    except ValidationFailed as error:
        raise _unknown(request_id) from error


def _unknown(request_id: str) -> IllegalMove:
    return IllegalMove(f"Nothing was asked under the id {request_id}.", code="executor.unknown_request")
