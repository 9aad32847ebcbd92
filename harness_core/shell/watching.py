"""A session that runs here in; its inbox looked into and its timers gone on with, until it is given back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from harness_core.kernel.commands import TimersElapsed
from harness_hookspecs.errors import Cancelled, HarnessError
from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.store import Store

from .loop import SessionLoop
from .timers import Timers

__all__ = ["INBOX_LOOK_SECONDS", "Watch"]

INBOX_LOOK_SECONDS: Final = 0.25
"""The change counter is looked at four times a second (D-8)."""


class Watch:
    """Who looks for commands of other processes, and for timers that are due.

    Args:
        ports: For time, and to wait.
        store: Whose change counter is looked at.
        loop: The session's.
        timers: The session's.
        leave: Set when the session is given back.
    """

    def __init__(
        self, ports: Ports, store: Store, loop: SessionLoop, timers: Timers, leave: CancelToken
    ) -> None:
        self._ports, self._store, self._loop, self._timers, self._leave = ports, store, loop, timers, leave

    def __call__(self, seen: int, take_inbox: Callable[[], None]) -> None:
        """Look until the session is given back; a worker of its own does.

        Args:
            seen: The change counter as it was before the inbox was last looked into, so that nothing posted since is
                missed.
            take_inbox: Takes what lies there.
        """
        idle, forget = self._idle()
        try:
            while True:
                woken = self._timers.wait(idle, INBOX_LOOK_SECONDS)
                if self._leave.cancelled() or self._loop.state.final:
                    return
                if woken:  # an earlier timer has come
                    forget()
                    idle, forget = self._idle()
                counter = self._store.change_counter()
                if counter != seen:
                    seen = counter
                    take_inbox()
                self._elapse()  # last: what was delivered within its limit is not too late
        except HarnessError as error:
            if not self._leave.cancelled():
                self._loop.stop(error)
        finally:
            forget()

    def _idle(self) -> tuple[Any, Callable[[], None]]:
        """A flag that is set when the session is given back, and how to have nobody set it then."""
        flag = self._ports.wait.event()
        return flag, self._leave.on_cancel(flag.set)

    def wait_here(self, timeout_seconds: float | None, take_inbox: Callable[[], None]) -> float | None:
        """With one thread nobody else looks: wait for the timers that are due soon; gives the time that is left.

        The inbox is looked into as well while something is waited for that comes from outside.
        """
        clock, loop, left = self._ports.clock, self._loop, timeout_seconds
        until = None if left is None else clock.monotonic() + left
        with suppress(Cancelled):
            while self._timers.keeps_here() and not loop.state.final and loop.state.status != "paused":
                if left is not None and left <= 0:
                    break
                from_outside = bool(loop.state.externals)
                seconds = min(self._timers.seconds() or 0.0, INBOX_LOOK_SECONDS if from_outside else float("inf"))
                clock.sleep(seconds if left is None else min(seconds, left), self._leave)
                if from_outside:
                    take_inbox()
                self._elapse()
                left = None if until is None else until - clock.monotonic()
        return None if left is None else max(0.0, left)

    def _elapse(self) -> None:
        if due := self._timers.take_due():
            self._loop.submit(TimersElapsed(due), durable=False)
