"""Effects that should begin go in, one at a time they come out, and while any is left a worker is on its way to them.

Not each effect wakes a worker: whoever puts some in, and whoever comes to them, calls the next worker when more are due
than it takes itself, unless one was called that has not come yet. So effects that wait for something are all begun one
after another at once, and those that end at once are done by the few who are awake: waking somebody costs more than
many of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["DueEffects"]


class DueEffects:
    """What is due.

    Args:
        call: Has a worker come, which says so by ``arrived`` and then takes what is due; it may come at once.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._effects: deque[Any] = deque()
        self._called: deque[None] = deque((None,))  # its one item is there while nobody is on the way

    def put(self, effects: Iterable[Any]) -> None:
        """Add some; who does so calls a worker or takes one itself."""
        self._effects.extend(effects)

    def take(self) -> Any | None:
        """The one that waits longest, ``None`` when there is none."""
        try:
            return self._effects.popleft()  # atomic: each has one taker
        except IndexError:
            return None

    def call_worker(self, *, leave: int = 0) -> None:
        """Have a worker come when more than ``leave`` are due and none is on its way."""
        if len(self._effects) <= leave:
            return
        try:
            self._called.pop()  # atomic: one caller calls
        except IndexError:
            return
        try:
            self._call()
        except BaseException:
            self.arrived()
            raise

    def is_served(self) -> bool:
        """Whether something is due and a worker is on its way."""
        return bool(self._effects) and not self._called

    def arrived(self) -> None:
        """A worker that was called is there, so that the next one may be called."""
        self._called.append(None)
