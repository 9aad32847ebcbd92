"""A baton in; locks, events, queues and tasks out whose every call is a switch point."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from harness_hookspecs.host import CancelToken

from .baton import Baton
from .cancel import Token
from .strand import Strand

__all__ = ["SimulatedTask", "SimulatedWaiting", "wait_here"]


class SimulatedWaiting:
    """``Waiting`` in virtual time. Calls that wake somebody switch before and after: he may run at once."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton

    def lock(self) -> Any:
        return _Lock(self._baton)

    def event(self) -> _Event:
        return _Event(self._baton)

    def queue(self) -> _Queue:
        return _Queue(self._baton)

    def token(self) -> Token:
        return Token(after=lambda: self._baton.call("token.cancelled"))

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        """Nobody types in a simulation: ``False`` at the timeout or when the token is set; at once without either."""
        self._baton.call("readable")
        if timeout_seconds is not None or cancel is not None:
            wait_here(self._baton, "readable", timeout_seconds, cancel)
        return False


def wait_here(
    baton: Baton, what: str, timeout_seconds: float | None, cancel: CancelToken | None, waiters: Any = None
) -> None:
    """Block until somebody wakes this strand, the token is set or the time is over."""
    me = baton.holder
    if cancel is not None and cancel.cancelled():
        return
    if waiters is not None:
        waiters.append(me)
    forget = cancel.on_cancel(lambda: baton.wake(me)) if cancel is not None else None
    try:
        baton.block(what, timeout_seconds)
    finally:
        if forget is not None:
            forget()
        if waiters is not None and me in waiters:
            waiters.remove(me)


class _Lock:
    """A lock that whoever comes first may take, the waiting or the newcomer, as with a real one."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._name = f"lock-{baton.number()}"
        self._holder: Strand | None = None
        self._waiters: list[Strand] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._baton.call(f"{self._name}.acquire")
        end_ns = None if timeout < 0 else self._baton.now_ns + timeout * 1e9
        while self._holder is not None:
            left = None if end_ns is None else (end_ns - self._baton.now_ns) / 1e9
            if not blocking or (left is not None and left <= 0):
                return False
            wait_here(self._baton, f"{self._name} held by {self._holder.name}", left, None, self._waiters)
        self._holder = self._baton.holder
        return True

    def release(self) -> None:
        self._baton.call(f"{self._name}.release")
        if self._holder is None:
            raise RuntimeError("release unlocked lock")
        self._holder = None
        _wake_one(self._baton, self._waiters)
        self._baton.call(f"{self._name}.released")

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


def _wake_one(baton: Baton, waiters: list[Strand]) -> None:
    if waiters:
        chosen = baton.choose(tuple(waiters))
        waiters.remove(chosen)
        baton.wake(chosen)


class _Event:
    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._name = f"event-{baton.number()}"
        self._set = False
        self._waiters: list[Strand] = []

    def set(self) -> None:
        self._baton.call(f"{self._name}.set")
        self._set = True
        for waiter in self._waiters:
            self._baton.wake(waiter)
        self._baton.call(f"{self._name}.was_set")

    def is_set(self) -> bool:
        self._baton.call(f"{self._name}.is_set")
        return self._set

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        self._baton.call(f"{self._name}.wait")
        if not self._set:
            wait_here(self._baton, self._name, timeout_seconds, cancel, self._waiters)
        if cancel is not None and not self._set:
            cancel.raise_if_cancelled()
        return self._set


class _Queue:
    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._name = f"queue-{baton.number()}"
        self._items: deque[Any] = deque()
        self._waiters: list[Strand] = []

    def put(self, item: Any) -> None:
        self._baton.call(f"{self._name}.put")
        self._items.append(item)
        _wake_one(self._baton, self._waiters)
        self._baton.call(f"{self._name}.was_put")

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        self._baton.call(f"{self._name}.get")
        end_ns = None if timeout_seconds is None else self._baton.now_ns + timeout_seconds * 1e9
        while not self._items:
            if cancel is not None:
                cancel.raise_if_cancelled()
            left = None if end_ns is None else (end_ns - self._baton.now_ns) / 1e9
            if left is not None and left <= 0:
                return None
            wait_here(self._baton, self._name, left, cancel, self._waiters)
        return self._items.popleft()


class SimulatedTask:
    """Work on a strand of its own."""

    def __init__(self, baton: Baton, function: Callable[..., object], args: tuple[object, ...], name: str) -> None:
        self._baton = baton
        baton.call(f"spawn {name}")
        self._strand = baton.begin(name, lambda: function(*args))
        baton.call(f"spawned {self._strand.name}")

    def join(self, timeout_seconds: float | None = None) -> bool:
        strand = self._strand
        self._baton.call(f"{strand.name}.join")
        if not strand.ended:
            wait_here(self._baton, f"{strand.name} to end", timeout_seconds, None, strand.joiners)
        if strand.ended and strand.error is not None:
            raise strand.error
        return strand.ended

    def done(self) -> bool:
        self._baton.call(f"{self._strand.name}.done")
        return self._strand.ended
