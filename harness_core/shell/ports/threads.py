"""The default ports: operating-system threads, real time, real everything."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness_hookspecs.host import CancelToken

from . import NoThread
from .cancel import Token
from .failpoints import Failpoints
from .files import RealFiles
from .wake import readable
from .world import RealClock, RealIds, RealProcesses, RealRandom, open_gate

__all__ = ["ThreadPorts", "ThreadTask", "ThreadWaiting"]

_MAX_IDLE_WORKERS = 16


class ThreadPorts:
    """Ports over threads. Workers are daemons and are used again; at most sixteen idle ones are kept."""

    concurrent = True

    def __init__(self) -> None:
        self.clock = RealClock()
        self.ids = RealIds()
        self.random = RealRandom()
        self.processes = RealProcesses()
        self.wait = ThreadWaiting()
        self.failpoints = Failpoints()
        self._idle: list[queue.SimpleQueue[ThreadTask | None]] = []
        self._closed = False

    def files(self, root: Path) -> RealFiles:
        return RealFiles(root)

    def reach(self, name: str) -> None:
        self.failpoints.reach(name)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> ThreadTask:
        task = ThreadTask(function, args)
        try:
            self._idle.pop().put(task)  # list.pop is atomic: an idle worker has one taker
        except IndexError:
            _begin(self._work, task, name=f"harness-{name}")
        return task

    def close(self) -> None:
        """Let idle workers end; a busy one ends with its work, and a command with its guard. What is spawned later
        still runs.
        """
        self._closed = True
        self._dismiss()
        self.processes.close()

    def _dismiss(self) -> None:
        while self._idle:
            with contextlib.suppress(IndexError):  # a spawn took the last one
                self._idle.pop().put(None)

    def _work(self, task: ThreadTask | None) -> None:
        mailbox: queue.SimpleQueue[ThreadTask | None] = queue.SimpleQueue()
        while task is not None:
            task.run()
            task = None  # an idle worker keeps nothing of the finished work alive
            if self._closed or len(self._idle) >= _MAX_IDLE_WORKERS:
                return
            self._idle.append(mailbox)
            if self._closed:  # and perhaps nobody looks at the idle ones any more
                self._dismiss()
            task = mailbox.get()


def _begin(function: Callable[..., object], *args: object, name: str) -> None:
    thread = threading.Thread(target=function, args=args, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise NoThread(*error.args) from error


class ThreadTask:
    """One piece of work; its end opens a bare lock, which everyone who joins passes on."""

    def __init__(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        self._function: Callable[..., object] | None = function
        self._args = args
        self._error: BaseException | None = None
        self._done = False
        self._gate = threading.Lock()
        self._gate.acquire()

    def run(self) -> None:
        """Do the work; what it raises is kept for ``join``."""
        try:
            assert self._function is not None
            self._function(*self._args)
        except BaseException as error:  # handed over to whoever joins
            self._error = error
        self._function, self._args = None, ()
        self._done = True
        self._gate.release()

    def join(self, timeout_seconds: float | None = None) -> bool:
        if not _acquired(self._gate, timeout_seconds):
            return False
        self._gate.release()
        if self._error is not None:
            raise self._error
        return True

    def done(self) -> bool:
        return self._done


class ThreadWaiting:
    """Waiting on bare locks: quicker than the standard library's events and queues, and open to a signal handler."""

    def lock(self) -> Any:
        return threading.Lock()

    def event(self) -> _Event:
        return _Event()

    def queue(self) -> _Queue:
        return _Queue()

    def token(self) -> Token:
        return Token()

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        return readable(fd, cancel, timeout_seconds)


def _acquired(gate: threading.Lock, timeout_seconds: float | None) -> bool:
    if timeout_seconds is None:
        return gate.acquire()
    return gate.acquire(timeout=min(max(0.0, timeout_seconds), threading.TIMEOUT_MAX))


class _Waiters:
    """Those who wait for one thing, each on a bare lock of its own, so that a token wakes exactly one of them."""

    def __init__(self) -> None:
        self._gates: deque[threading.Lock] = deque()

    def open_one(self) -> bool:
        try:
            gate = self._gates.popleft()  # atomic: each gate has one opener
        except IndexError:
            return False
        open_gate(gate)
        return True

    def wait(self, ready: Callable[[], bool], timeout_seconds: float | None, cancel: CancelToken | None) -> None:
        """Wait to be woken; return at once when it is ``ready`` after all, for that came before the place here."""
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        forget = cancel.on_cancel(lambda: open_gate(gate)) if cancel is not None else None
        try:
            if not ready():
                _acquired(gate, timeout_seconds)
        finally:
            if forget is not None:
                forget()
            with contextlib.suppress(ValueError, IndexError):
                self._gates.remove(gate)


class _Event:
    def __init__(self) -> None:
        self._set = False
        self._waiters = _Waiters()

    def set(self) -> None:
        self._set = True
        while self._waiters.open_one():
            pass

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        if not self._set:
            self._waiters.wait(self.is_set, timeout_seconds, cancel)
        if cancel is not None and not self._set:
            cancel.raise_if_cancelled()
        return self._set


class _Queue:
    """What is there is given out even when the token is set; a token only ends waiting."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waiters = _Waiters()

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._waiters.open_one()

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            with contextlib.suppress(IndexError):
                return self._items.popleft()
            if cancel is not None:
                cancel.raise_if_cancelled()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            try:
                self._waiters.wait(lambda: bool(self._items), left, cancel)
            except BaseException:  # Ctrl-C: perhaps a put had chosen this one
                self._waiters.open_one()
                raise
