"""What an executor waits for by the clock: its events in, the open timers of a state and when each is due out.

When the limit of another wait is due is told in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from .facts import Event, derive
from .state import OpenRequest, SessionState

__all__ = ["due_at", "seconds_left", "timer_cancelled", "timer_elapsed", "timer_of", "timer_requested"]


def timer_requested(state: SessionState, event: Event) -> None:
    """Fold the intent."""
    payload, visit = dict(event.payload), state.visit
    assert visit is not None, "a timer outside of a visit"
    effect_id = payload["effect_id"]
    timer = OpenRequest("timer", effect_id, payload, event.seq, event.id, asked_at=event.timestamp)
    state.open[effect_id] = state.timers[effect_id] = timer
    visit.requested[payload["request_id"]] = effect_id


def timer_elapsed(state: SessionState, event: Event) -> None:
    """Fold its end; the executor is told that it came, and nothing else."""
    timer = _ended(state, event)
    if timer is not None and state.visit is not None:
        state.visit.outcomes.append({"request_id": timer.payload["request_id"], "ok": True})


def timer_cancelled(state: SessionState, event: Event) -> None:
    """Fold its other end: the attempt is over, and nobody is told."""
    _ended(state, event)


def _ended(state: SessionState, event: Event) -> OpenRequest | None:
    effect_id = event.payload["effect_id"]
    state.timers.pop(effect_id, None)
    return state.open.pop(effect_id, None)


def timer_of(state: SessionState, asked: Mapping[str, Any], request_id: str) -> OpenRequest | None:
    """The open timer that the attempt of a role call has asked for under that id; ``None`` once it has ended."""
    effect_id = derive("eff", state.session_id, asked["visit_id"], asked["attempt"], "timer", request_id)
    return state.timers.get(effect_id)


def due_at(timer: OpenRequest) -> str:
    """The moment a timer is due, by the wall clock it was asked under, as stored text."""
    return _due(timer).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_left(timer: OpenRequest, now: datetime) -> float:
    """How long to wait from ``now`` on: nothing for one that is due, and never longer than its delay (I-10).

    A clock that was set back since then would say longer.
    """
    delay: float = _delay_ms(timer) / 1000
    return min(max(0.0, (_due(timer) - now).total_seconds()), delay)


def _delay_ms(timer: OpenRequest) -> int:
    delay_ms: int = timer.payload["limit_ms" if timer.kind == "external" else "delay_ms"]
    return delay_ms


def _due(timer: OpenRequest) -> datetime:
    try:
        return datetime.fromisoformat(timer.asked_at) + timedelta(milliseconds=_delay_ms(timer))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
