"""The default ports: operating-system threads, real time, real everything."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness_hookspecs.host import CancelToken

from .cancel import Token
from .failpoints import Failpoints
from .files import RealFiles
from .world import RealClock, RealIds, RealProcesses, RealRandom

__all__ = ["ThreadPorts", "ThreadTask"]

_MAX_IDLE_WORKERS = 16


class ThreadPorts:
    """Ports over threads. Workers are daemons and are used again; at most sixteen idle ones are kept."""

    def __init__(self) -> None:
        self.clock = RealClock()
        self.ids = RealIds()
        self.random = RealRandom()
        self.processes = RealProcesses()
        self.wait = ThreadWaiting()
        self.failpoints = Failpoints()
        self._idle: list[queue.SimpleQueue[ThreadTask]] = []

    def files(self, root: Path) -> RealFiles:
        return RealFiles(root)

    def reach(self, name: str) -> None:
        self.failpoints.reach(name)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> ThreadTask:
        task = ThreadTask(function, args)
        try:
            self._idle.pop().put(task)  # list.pop is atomic: an idle worker has one taker
        except IndexError:
            threading.Thread(target=self._work, args=(task,), name=f"harness-{name}", daemon=True).start()
        return task

    def _work(self, task: ThreadTask) -> None:
        mailbox: queue.SimpleQueue[ThreadTask] = queue.SimpleQueue()
        while True:
            task.run()
            del task  # an idle worker keeps nothing of the finished work alive
            if len(self._idle) >= _MAX_IDLE_WORKERS:
                return
            self._idle.append(mailbox)
            task = mailbox.get()


class ThreadTask:
    """One piece of work; its end opens a bare lock."""

    def __init__(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        self._function: Callable[..., object] | None = function
        self._args = args
        self._error: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Do the work; what it raises is kept for ``join``."""
        try:
            assert self._function is not None
            self._function(*self._args)
        except BaseException as error:  # handed over to whoever joins
            self._error = error
        self._function, self._args = None, ()
        self._ended.set()

    def join(self, timeout_seconds: float | None = None) -> bool:
        ended = self._ended.wait(timeout_seconds)
        if ended and self._error is not None:
            raise self._error
        return ended

    def done(self) -> bool:
        return self._ended.is_set()


class ThreadWaiting:
    """Waiting with the standard library's primitives."""

    def lock(self) -> Any:
        return threading.Lock()

    def event(self) -> _Event:
        return _Event()

    def queue(self) -> _Queue:
        return _Queue()

    def token(self) -> Token:
        return Token()

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        if cancel is None:
            return bool(select.select([fd], [], [], timeout_seconds)[0])
        wake_read, wake_write = os.pipe()
        forget = cancel.on_cancel(lambda: _wake(wake_write))
        try:
            ready = select.select([fd, wake_read], [], [], timeout_seconds)[0]
            return fd in ready and not cancel.cancelled()
        finally:
            forget()
            os.close(wake_read)
            os.close(wake_write)


def _wake(fd: int) -> None:
    with contextlib.suppress(OSError):  # the waiter has gone in the same moment
        os.write(fd, b"x")


class _Event:
    """A flag whose waiters each block on a bare lock of their own, so that a token can wake exactly one of them."""

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[threading.Lock] = []

    def set(self) -> None:
        self._set = True
        while self._waiters:
            try:
                _open(self._waiters.pop())
            except IndexError:  # another setter took the last one
                return

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        gate = threading.Lock()
        gate.acquire()
        self._waiters.append(gate)
        forget = cancel.on_cancel(lambda: _open(gate)) if cancel else None
        try:
            if not self._set:
                gate.acquire(timeout=-1 if timeout_seconds is None else timeout_seconds)
        finally:
            if forget is not None:
                forget()
            with contextlib.suppress(ValueError):
                self._waiters.remove(gate)
        if cancel is not None and not self._set:
            cancel.raise_if_cancelled()
        return self._set


def _open(gate: threading.Lock) -> None:
    with contextlib.suppress(RuntimeError):  # opened already, by the flag or by the token
        gate.release()


class _Queue:
    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, item: Any) -> None:
        self._items.put(item)

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        forget = cancel.on_cancel(lambda: self._items.put(_WAKE)) if cancel else None
        try:
            while True:
                try:
                    item = self._items.get(timeout=timeout_seconds)
                except queue.Empty:
                    return None
                if item is not _WAKE:
                    return item
                if cancel is not None:
                    cancel.raise_if_cancelled()
        finally:
            if forget is not None:
                forget()


_WAKE = object()
