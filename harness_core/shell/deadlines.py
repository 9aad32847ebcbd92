"""Calls with a timeout in, their cancel tokens set in time out; one waiting worker for all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

from harness_hookspecs.host import CancelToken, Ports

__all__ = ["HEED_SECONDS", "Deadlines", "Limit"]

HEED_SECONDS = 1.0
"""How long a call may take to end after its time is over: then nobody waits for an approver or a validator any more,
and of a tool a person is told."""


class _Due(NamedTuple):
    """What is to be cancelled in time out, or nothing more, and who is said to go on then."""

    token: Any
    what: str
    timeout_seconds: float


class Limit:
    """The time of one call, from its making to the end of its ``with``; a generator's costs three times as much."""

    __slots__ = ("_entry", "_forget", "_token")

    def __init__(self, token: CancelToken, forget: Callable[[], None], entry: list[Any]) -> None:
        self._token, self._forget, self._entry = token, forget, entry

    def __enter__(self) -> CancelToken:
        return self._token

    def __exit__(self, *raised: object) -> None:
        self._forget()
        self._entry.clear()


class Deadlines:
    """Cancels a call's token when its time is over. A call that ends in time costs two heap operations.

    Args:
        ports: For the time, and for the one worker.
        tell: Told, in a sentence, of a named call that goes on although its time is over; from that worker.
    """

    def __init__(self, ports: Ports, tell: Callable[[str], None] = lambda said: None) -> None:
        self._ports, self._tell = ports, tell
        self._lock = ports.wait.lock()
        self._heap: list[tuple[float, int, Any]] = []
        self._count = 0
        self._wake: Any = None
        self._wakes_at = float("inf")

    def limit(self, parent: CancelToken, timeout_seconds: float, what: str = "") -> Limit:
        """A token that is cancelled with ``parent``, or with reason ``timeout`` when the time is over.

        ``what`` names a call that heeds its token at once, or somebody is told that it does not.
        """
        token = self._ports.wait.token()
        forget = parent.on_cancel(lambda: token.cancel(parent.reason or "cancelled"))
        entry = [_Due(token, what, timeout_seconds)]
        return Limit(token, forget, self._add(entry, self._ports.clock.monotonic() + timeout_seconds))

    def _add(self, entry: list[_Due], at: float) -> list[_Due]:
        with self._lock:
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, entry))
            while self._heap and not self._heap[0][2]:
                heapq.heappop(self._heap)
            waiting = self._wake
            if waiting is None or at < self._wakes_at:
                self._wake = self._ports.wait.event()
            else:
                return entry
        if waiting is None:
            self._ports.spawn(self._watch, name="deadlines")
        else:
            waiting.set()
        return entry

    def _watch(self) -> None:
        """Wait for the earliest deadline; ends when there is none, so that an idle host has no waiting worker."""
        while True:
            with self._lock:
                due = self._take_due(self._ports.clock.monotonic())
                if not self._heap and not due:
                    self._wake, self._wakes_at = None, float("inf")
                    return
                self._wakes_at = self._heap[0][0] if self._heap else float("inf")
                flag = self._wake
            for entry in due:
                self._over(entry)
            if not due:  # else what goes on is due again
                flag.wait(max(0.0, self._wakes_at - self._ports.clock.monotonic()))

    def _take_due(self, now: float) -> list[list[_Due]]:
        due: list[list[_Due]] = []
        while self._heap and (not self._heap[0][2] or self._heap[0][0] <= now):
            due.append(heapq.heappop(self._heap)[2])
        return due

    def _over(self, entry: list[_Due]) -> None:
        """Cancel; then look once more a little later, and tell of what is still there. What has ended is empty."""
        for token, what, seconds in entry[:]:
            if token is None:
                self._tell(f"{what} was told to stop after {seconds:g} s and goes on")
                continue
            token.cancel("timeout")
            if what and token.reason == "timeout":
                with self._lock:
                    if entry:  # else it has ended meanwhile
                        entry[:] = [_Due(None, what, seconds)]
                        self._count += 1
                        heapq.heappush(self._heap, (self._ports.clock.monotonic() + HEED_SECONDS, self._count, entry))
