"""Calls come in, at most so many go on at once; the others wait in the order in which they came."""

from __future__ import annotations

from collections import deque

from harness_hookspecs.host import CancelToken, Ports, WaitEvent

__all__ = ["Slots"]


class Slots:
    """The places at one model. Each waiter has a flag of its own, so a cancelled one disturbs nobody."""

    def __init__(self, ports: Ports, count: int) -> None:
        self._ports = ports
        self._lock = ports.wait.lock()
        self._free = count
        self._waiting: deque[WaitEvent] = deque()

    def take(self, timeout_seconds: float | None, cancel: CancelToken) -> bool:
        """Wait for a place; ``False`` on timeout.

        Raises:
            Cancelled: The token was set.
        """
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            turn = self._ports.wait.event()
            self._waiting.append(turn)
        taken = False
        try:
            taken = turn.wait(timeout_seconds, cancel)
        finally:
            if not taken:
                self._leave(turn)
        return taken

    def give(self) -> None:
        """Give a place back: to who has waited longest, if anybody waits."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def _leave(self, turn: WaitEvent) -> None:
        """Stop waiting; a place that was given in this very moment goes to the next."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        self.give()
