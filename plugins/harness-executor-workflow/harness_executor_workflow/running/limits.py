"""The limits of a run go in; the timer that it asks for, what bounds each call, and its end by one of them come out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from harness_hookspecs.executor import MAX_DELAY_MS

from .move import Frame, Move

__all__ = ["LIMIT", "begin_limit", "bounds_of", "max_calls", "stop_run", "timer_of"]

LIMIT: Final = "#limit"
"""Of the timer of the run; no step has such a path."""

_MESSAGES: Final = {
    "limits.timeout": "The run took longer than limits.timeoutMs, {timeoutMs}",
    "limits.max_tokens": "The run may not use more than limits.maxTokens, {maxTokens}",
}


def begin_limit(move: Move) -> None:
    """Ask for the timer of a run whose time is bounded."""
    limit_ms = move.state.get("limits", {}).get("timeoutMs")
    if limit_ms is not None:
        move.state["limit"] = {"id": LIMIT, "path": "", "visit": 0, **timer_of(limit_ms)}


def timer_of(limit_ms: int) -> dict[str, Any]:
    """What asks for a timer; one beyond the longest that there is stands for that, since nobody waits so long."""
    return {"kind": "timer", "delay_ms": min(limit_ms, MAX_DELAY_MS)}


def max_calls(move: Move) -> int | None:
    """So many calls the run may make."""
    found: int | None = move.state.get("limits", {}).get("maxStepExecutions", move.program.max_calls)
    return found


def bounds_of(move: Move, frame: Frame, limit_ms: int | None) -> dict[str, Any]:
    """What bounds a call of a level; the last step of a run is bounded by its own time alone."""
    limits = move.state.get("limits")
    if limits is None:  # who runs it keeps none
        return {}
    found: dict[str, Any] = {} if limit_ms is None else {"limit_ms": limit_ms}
    within = [*_around(frame)]
    if move.state["result"] is None:
        within += [LIMIT] if "limit" in move.state else []
        found |= {"max_tokens": limits["maxTokens"]} if "maxTokens" in limits else {}
    return {**found, "within": within} if within else found


def _around(frame: Frame) -> Iterator[str]:
    """The timers of the fan-outs that a level lies in, the nearest first."""
    place: Frame | None = frame
    while place is not None and place.outer is not None:
        limit = place.outer.state["steps"].get(place.within, {}).get("limit")
        if limit is not None:
            yield limit["id"]
        place = place.outer


def stop_run(move: Move, root: Frame, code: str, said: str = "") -> None:
    """The run has reached a limit: it begins nothing more, and fails when all calls have ended, whatever catches it."""
    message = f"{_MESSAGES[code].format_map(move.state['limits'])}{said or '.'}"
    if not root.state["failed"]:
        root.state["failed"] = {"code": code, "message": message}
    move.state["over"] = move.state["over"] or {"code": code, "message": message}
    move.agenda.append(("stop", root, ""))
