"""Ways to wait for tests: ``threading`` goes in, the waiting half of ``Ports`` comes out."""

from __future__ import annotations

import queue
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from harness_hookspecs.errors import Cancelled
from harness_hookspecs.host import CancelToken, WaitLock

__all__ = ["FakeEvent", "FakeQueue", "FakeTask", "FakeToken", "FakeWaiting"]

_SLICE_SECONDS = 0.01


class FakeToken:
    """A cancel token; ``cancel`` may be called from any thread."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def cancel(self, reason: str = "cancelled") -> None:
        """Set it; the first reason stays."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def cancelled(self) -> bool:
        """Whether it is set."""
        return self.reason is not None

    def raise_if_cancelled(self) -> None:
        """Raise ``Cancelled`` when it is set."""
        if self.reason is not None:
            raise Cancelled(self.reason)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once; returns the un-subscriber."""
        with self._lock:
            waiting = self.reason is None
            if waiting:
                self._callbacks.append(callback)
        if not waiting:
            callback()
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None


class FakeEvent:
    """A flag over ``threading.Event`` that a token can interrupt."""

    def __init__(self) -> None:
        self._flag = threading.Event()

    def set(self) -> None:
        """Raise the flag."""
        self._flag.set()

    def is_set(self) -> bool:
        """Whether it is up."""
        return self._flag.is_set()

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        """Wait for the flag, the timeout or the token."""
        if cancel is None:
            return self._flag.wait(timeout_seconds)
        return _until(lambda: self._flag.wait(_SLICE_SECONDS), timeout_seconds, cancel)


class FakeQueue:
    """An unbounded queue over ``queue.SimpleQueue`` that a token can interrupt."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, item: Any) -> None:
        """Add an item."""
        self._items.put(item)

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        """The next item, ``None`` on timeout."""
        found: list[Any] = []

        def look() -> bool:
            try:
                found.append(self._items.get(timeout=_SLICE_SECONDS if cancel else timeout_seconds))
            except queue.Empty:
                return False
            return True

        if cancel is None:
            look()
        else:
            _until(look, timeout_seconds, cancel)
        return found[0] if found else None


def _until(look: Callable[[], bool], timeout_seconds: float | None, cancel: CancelToken) -> bool:
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    while not look():
        cancel.raise_if_cancelled()
        if end is not None and time.monotonic() >= end:
            return False
    return True


class FakeWaiting:
    """``Waiting`` over ``threading``."""

    def lock(self) -> WaitLock:
        """A bare lock."""
        return threading.Lock()

    def event(self) -> FakeEvent:
        """A flag."""
        return FakeEvent()

    def queue(self) -> FakeQueue:
        """A queue."""
        return FakeQueue()

    def token(self) -> FakeToken:
        """A cancel token."""
        return FakeToken()

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        """Wait until the descriptor can be read; ``False`` on timeout or when the token is set."""
        if cancel is None:
            return bool(select.select([fd], [], [], timeout_seconds)[0])
        try:
            return _until(lambda: bool(select.select([fd], [], [], _SLICE_SECONDS)[0]), timeout_seconds, cancel)
        except Cancelled:
            return False


class FakeTask:
    """A daemon thread whose failure is raised by ``join``."""

    def __init__(self, function: Callable[..., object], args: tuple[object, ...], name: str) -> None:
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function, args), name=name, daemon=True)
        self._thread.start()

    def _run(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            function(*args)
        except BaseException as problem:  # raised again by join
            self._failure = problem

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the end; raises what the function raised."""
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def done(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()
