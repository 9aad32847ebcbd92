"""The timers a session asks for, and limits of waits, in, those that are due out; how long it is until the next one.

No thread waits for one: whoever looks at the inbox does. What this process asked for is due by monotonic time; of what
it found in the log, the rest by the wall clock is waited for so (I-10).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Final

from harness_core.kernel.projections.event import payload_of
from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.kernel.timers import seconds_left
from harness_hookspecs.host import Ports
from harness_hookspecs.store import StoredEvent

__all__ = ["Timers"]

_ASKED: Final = frozenset({"timer.requested", "external.requested"})


class Timers:
    """The open timers of one session that this process owns, and the limits of what it waits for from outside.

    Args:
        ports: For the time.
        state: Gives the state as it is; one that has ended there is nothing to wait for.
        park_after_seconds: For a timer that is due later nobody stays here.
    """

    def __init__(self, ports: Ports, state: Callable[[], SessionState], park_after_seconds: float) -> None:
        self._ports, self._state, self._park_after = ports, state, park_after_seconds
        self._lock = ports.wait.lock()
        self._heap: list[tuple[float, int, str]] = []
        self._at: dict[str, float] = {}  # when each is due that is not known to have ended
        self._given: list[str] = []  # as due, and not known to have ended
        self._count = 0
        self._wake: Any = None  # of who waits for the next one

    def found(self, timers: Iterable[OpenRequest]) -> None:
        """Take what the log has open: by the wall clock, and no longer than its delay."""
        timers = [one for one in timers if one.kind == "timer" or "limit_ms" in one.payload]
        if timers:  # else the clock is not looked at, nor below: most sessions have none
            now = self._ports.clock.now()
            self._add([(one.effect_id, seconds_left(one, now)) for one in timers])

    def committed(self, stored: Iterable[StoredEvent]) -> None:
        """Take what is asked for now."""
        payloads = [payload_of(event) for event in stored if event.type in _ASKED]
        delays = [(one["effect_id"], one.get("delay_ms", one.get("limit_ms"))) for one in payloads]
        if timed := [(effect_id, delay_ms / 1000) for effect_id, delay_ms in delays if delay_ms is not None]:
            self._add(timed)

    def _add(self, timers: list[tuple[str, float]]) -> None:
        with self._lock:
            self._forget_given()
            now = self._ports.clock.monotonic()
            first = self._heap[0][0] if self._heap else float("inf")
            for effect_id, seconds in timers:
                self._count += 1
                at = self._at.setdefault(effect_id, now + seconds)  # it stays, whatever a second look at the log says
                heapq.heappush(self._heap, (at, self._count, effect_id))
            wake = self._wake if self._heap[0][0] < first else None
        if wake is not None:
            wake.set()

    def take_due(self) -> tuple[str, ...]:
        """Those that are due, the longest due first, each given once."""
        if not self._heap:
            return ()
        due: list[str] = []
        with self._lock:
            self._forget_given()
            self._forget_ended()
            now = self._ports.clock.monotonic()
            while self._heap and self._heap[0][0] <= now:
                due.append(heapq.heappop(self._heap)[2])
            self._given += due
        open_ones = self._state().open
        return tuple(one for one in dict.fromkeys(due) if one in open_ones)

    def seconds(self) -> float | None:
        """Until the next one is due; ``None`` where none is open."""
        if not self._heap:
            return None
        with self._lock:
            self._forget_ended()
            return max(0.0, self._heap[0][0] - self._ports.clock.monotonic()) if self._heap else None

    def _forget_ended(self) -> None:
        open_ones = self._state().open
        while self._heap and self._heap[0][2] not in open_ones:
            self._at.pop(heapq.heappop(self._heap)[2], None)

    def _forget_given(self) -> None:
        """Of one that is still open the time is kept: a second look at the log does not ask the wall clock again."""
        open_ones = self._state().open
        for effect_id in self._given:
            if effect_id not in open_ones:
                self._at.pop(effect_id, None)
        self._given = [one for one in self._given if one in open_ones]

    def keeps_here(self) -> bool:
        """Whether the next one is due so soon that the session is not given back meanwhile."""
        seconds = self.seconds()
        return seconds is not None and seconds <= self._park_after

    def wait(self, wake: Any, at_most_seconds: float) -> bool:
        """Wait for a flag, the next timer or so many seconds; whether the flag is set, by an earlier timer for one."""
        self._wake = wake  # first, so that none that comes meanwhile is missed
        seconds = self.seconds()
        return bool(wake.wait(at_most_seconds if seconds is None else min(seconds, at_most_seconds)))
