"""A role call and all that bounds its time in, the bound that ends it first out, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.kernel.timers import seconds_left, timer_of
from harness_hookspecs.errors import RoleError

__all__ = ["TIME_LIMITS", "CallLimit", "first_limit"]

TIME_LIMITS: Final = frozenset({"limits.timeout", "role.timeout", "step.timeout"})
"""Codes of calls that took too long."""


class CallLimit(NamedTuple):
    """How long a call may take from now on, and what its failure then says."""

    seconds: float
    code: str
    message: str
    facts: Mapping[str, Any] = {}

    def error(self) -> RoleError:
        """The failure of a call that took longer."""
        return RoleError(self.message, code=self.code, **self.facts)


def first_limit(
    request: OpenRequest, stage_seconds: float | None, state: SessionState, now: Callable[[], datetime]
) -> CallLimit | None:
    """The bound that comes first: of the stage, of the step, or a timer that the call is to lie within.

    The first two count anew each time that the call runs; a timer goes on while a session rests, by the recorded time.
    """
    return min(_limits(request, stage_seconds, state, now), key=lambda limit: limit.seconds, default=None)


def _limits(
    request: OpenRequest, stage_seconds: float | None, state: SessionState, now: Callable[[], datetime]
) -> Iterator[CallLimit]:
    payload = request.payload
    for name in payload.get("within", ()):
        timer = timer_of(state, payload, name)
        left = 0.0 if timer is None else seconds_left(timer, now())
        message = "the call did not end within the time of what it is part of"
        yield CallLimit(left, "limits.timeout", message, {"timer": name})
    if (limit_ms := payload.get("limit_ms")) is not None:
        yield CallLimit(limit_ms / 1000, "step.timeout", f"the step took longer than its timeoutMs, {limit_ms}")
    if stage_seconds is not None:
        yield CallLimit(stage_seconds, "role.timeout", f"the attempt took longer than {stage_seconds:g} s")
