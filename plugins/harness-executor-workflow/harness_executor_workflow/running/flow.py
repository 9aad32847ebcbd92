"""A step of a level has settled: which steps begin now, which are skipped, and what a back-edge visits again.

A step is looked at when every edge to it counts. It is skipped when nothing chose it although something could have, or
when it needs steps and none of them completed; a failure that led somewhere counts as a skip, except for the step that
it led to. So what a step may read has settled before it begins, in whatever order the outcomes came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from harness_executor_workflow.plan.graph import Edge

from .move import Frame, Move, step_state

__all__ = ["SETTLED", "back_to", "looked_at", "verdict", "visit_again"]

SETTLED: Final = frozenset({"completed", "skipped", "failed"})


def looked_at(frame: Frame, step: str) -> list[str]:
    """The steps that may begin because this one has settled, with those behind its loops if these are over."""
    found = list(frame.level.following[step])
    for number in frame.level.around[step]:
        if not _is_over(frame, number):
            break
        found += frame.level.behind[number]
    return sorted(dict.fromkeys(found), key=frame.level.place.__getitem__)


def back_to(frame: Frame, step: str) -> list[Edge]:
    """The back-edges that are taken now: those chosen in the innermost loop of the step all of which has settled."""
    for number in frame.level.around[step]:
        loop = frame.level.loops[number]
        if any(_status(frame, one) not in SETTLED for one in loop.steps):
            return []
        chosen = [edge for edge in loop.bodies if _is_live(frame, edge)]
        if chosen:
            return chosen
    return []


def visit_again(move: Move, frame: Frame, edges: list[Edge]) -> str | None:
    """Give a new visit to all that is visited again; the name of a step that has had its last one instead, if any."""
    bodies = [loop.bodies[edge] for loop in frame.level.loops for edge in edges if edge in loop.bodies]
    body = sorted(frozenset().union(*bodies), key=frame.level.place.__getitem__)
    for step in body:
        if _state(frame, step).get("visit", 0) + 1 >= frame.level.steps[step].max_visits:
            return step
    for step in body:
        state = step_state(move, frame, step)
        state["visit"] += 1
        state["status"] = ""
        for name in ("to", "error"):
            state.pop(name, None)
    frame.state["left"] += len(body)
    return None


def verdict(frame: Frame, step: str) -> Literal["", "begin", "skip"]:
    """Whether a step that has not begun may, must not, or (empty) cannot be said yet."""
    if _status(frame, step):
        return ""
    incoming = frame.level.incoming[step]
    if not all(_counts(frame, edge) for edge in incoming):
        return ""
    routes = [edge for edge in incoming if edge.kind != "needs"]
    live = {edge.source for edge in routes if _is_live(frame, edge)}
    if routes and not live:
        return "skip"
    needs = [edge for edge in incoming if edge.kind == "needs"]
    return "skip" if needs and not any(_is_live(frame, edge) or edge.source in live for edge in needs) else "begin"


def _counts(frame: Frame, edge: Edge) -> bool:
    if _status(frame, edge.source) not in SETTLED:
        return False
    return edge not in frame.level.leaves or _is_over(frame, frame.level.leaves[edge])


def _is_live(frame: Frame, edge: Edge) -> bool:
    state = _state(frame, edge.source)
    if edge.kind == "needs":
        return bool(state["status"] == "completed")
    wanted = "completed" if edge.kind == "decision" else "failed"
    return bool(state["status"] == wanted and state.get("to") == edge.target)


def _is_over(frame: Frame, number: int) -> bool:
    loop = frame.level.loops[number]
    if any(_status(frame, step) not in SETTLED for step in loop.steps):
        return False
    return not any(_is_live(frame, edge) for edge in loop.bodies)


def _status(frame: Frame, step: str) -> str:
    return str(_state(frame, step).get("status", ""))


def _state(frame: Frame, step: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = frame.state["steps"].get(step, {})
    return found
