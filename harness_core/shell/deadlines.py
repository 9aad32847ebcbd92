"""Calls with a timeout in, their cancel tokens set in time out; one waiting worker for all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from harness_hookspecs.host import CancelToken, Ports

__all__ = ["HEED_SECONDS", "Deadlines", "Limit"]

HEED_SECONDS = 1.0
"""How long a call may take to end after its time is over: then nobody waits for an approver or a validator any more,
and of a tool a person is told."""


class Limit:
    """The time of one call, from its making to the end of its ``with``; a generator's costs three times as much.

    ``token`` is nothing once the call has ended, and that stays so, in whatever thread its time is looked at.
    """

    __slots__ = ("_forget", "cancelled", "timeout_seconds", "token", "what")

    def __init__(self, token: Any, forget: Callable[[], None], what: str, timeout_seconds: float) -> None:
        self.token, self._forget = token, forget
        self.what, self.timeout_seconds = what, timeout_seconds
        self.cancelled = False  # for its time is over

    def __enter__(self) -> CancelToken:
        return self.token  # type: ignore[no-any-return]  # a token of the ports

    def __exit__(self, *raised: object) -> None:
        self._forget()
        self.token = None
        del self._forget  # this lies in the heap until its time, and keeps nothing else


class Deadlines:
    """Cancels a call's token when its time is over. A call that ends in time costs two heap operations.

    With one thread nobody could look while a call goes on: it ends when it ends, and no time is waited for.

    Args:
        ports: For the time, and for the one worker.
        tell: Told, in a sentence, of a named call that goes on although its time is over; from that worker.
    """

    def __init__(self, ports: Ports, tell: Callable[[str], None] = lambda said: None) -> None:
        self._ports, self._tell = ports, tell
        self._watched = getattr(ports, "concurrent", True)  # with one thread nobody could cut a call short beside it
        self._lock = ports.wait.lock()
        self._heap: list[tuple[float, int, Limit]] = []
        self._count = 0
        self._closed = False
        self._wake: Any = None
        self._wakes_at = float("inf")

    def limit(self, parent: CancelToken, timeout_seconds: float, what: str = "") -> Limit:
        """A token that is cancelled with ``parent``, or with reason ``timeout`` when the time is over.

        ``what`` names a call that heeds its token at once, or somebody is told that it does not. Where no thread is
        left for the worker, that is raised, and the call must not begin.
        """
        token = self._ports.wait.token()
        forget = parent.on_cancel(lambda: token.cancel(parent.reason or "cancelled"))
        limit = Limit(token, forget, what, timeout_seconds)
        try:
            self._add(limit, self._ports.clock.monotonic() + timeout_seconds)
        except BaseException:  # its call never begins, so nobody is to cancel it and nobody to be told of it
            limit.__exit__()
            raise
        return limit

    def close(self) -> None:
        """End the worker; whoever still runs is cut short by nobody, its session is over."""
        with self._lock:
            self._closed = True
            self._heap.clear()
            waiting = self._wake
        if waiting is not None:
            waiting.set()

    def _add(self, limit: Limit, at: float) -> None:
        with self._lock:
            if self._closed or not self._watched:
                return
            self._push(limit, at)
            while self._heap and self._heap[0][2].token is None:
                heapq.heappop(self._heap)
            waiting = self._wake
            if waiting is not None and at >= self._wakes_at:
                return
            self._wake = self._ports.wait.event()
            if waiting is None:
                self._begin_watch(at)
                return
        waiting.set()

    def _begin_watch(self, at: float) -> None:
        """Call the worker, with the lock held: whoever comes meanwhile may have to do so in this one's place."""
        self._wakes_at = at
        try:
            self._ports.spawn(self._watch, name="deadlines")
        except BaseException:  # no thread is left; the next limit asks for one again
            self._wake, self._wakes_at = None, float("inf")
            raise

    def _push(self, limit: Limit, at: float) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, limit))

    def _watch(self) -> None:
        """Wait for the earliest deadline; ends when there is none, so that an idle host has no waiting worker.

        Not before the one that it was called for: that call has mostly ended by now, and so will those that follow,
        each of which would call a worker again.
        """
        while True:
            with self._lock:
                now = self._ports.clock.monotonic()
                due = self._take_due(now)
                if self._heap:
                    self._wakes_at = self._heap[0][0]
                elif not due and (self._closed or now >= self._wakes_at):
                    self._wake, self._wakes_at = None, float("inf")
                    return
                flag = self._wake
            for limit in due:
                self._over(limit)
            if not due:  # else what goes on is due again
                flag.wait(max(0.0, self._wakes_at - self._ports.clock.monotonic()))

    def _take_due(self, now: float) -> list[Limit]:
        due: list[Limit] = []
        while self._heap and (self._heap[0][2].token is None or self._heap[0][0] <= now):
            due.append(heapq.heappop(self._heap)[2])
        return due

    def _over(self, limit: Limit) -> None:
        """Cancel; then look once more a little later, and tell of what is still there."""
        token = limit.token
        if token is None:
            return
        if limit.cancelled:
            self._tell(f"{limit.what} was told to stop after {limit.timeout_seconds:g} s and goes on")
            return
        token.cancel("timeout")
        if limit.what and token.reason == "timeout":
            limit.cancelled = True
            with self._lock:
                if not self._closed:
                    self._push(limit, self._ports.clock.monotonic() + HEED_SECONDS)
