"""Ports without threads: work runs where it is spawned, and waiting for what nobody will bring is an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness_hookspecs.errors import InternalError
from harness_hookspecs.host import CancelToken

from .cancel import Token
from .failpoints import Failpoints
from .files import RealFiles
from .world import RealClock, RealIds, RealProcesses, RealRandom

__all__ = ["InlinePorts", "InlineTask", "InlineWaiting"]


class InlinePorts:
    """One thread. Spawned work runs before ``spawn`` returns, or right after the work that spawned it."""

    def __init__(self) -> None:
        self.clock = RealClock()
        self.ids = RealIds()
        self.random = RealRandom()
        self.processes = RealProcesses()
        self.wait = InlineWaiting()
        self.failpoints = Failpoints()

    def files(self, root: Path) -> RealFiles:
        return RealFiles(root)

    def reach(self, name: str) -> None:
        self.failpoints.reach(name)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> InlineTask:
        task = InlineTask()
        try:
            function(*args)
        except BaseException as error:  # handed over to whoever joins
            task.error = error
        return task


class InlineTask:
    """Work that has ended already."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def join(self, timeout_seconds: float | None = None) -> bool:
        if self.error is not None:
            raise self.error
        return True

    def done(self) -> bool:
        return True


class InlineWaiting:
    """Nothing here can wait: with one thread, what is not there now never comes."""

    def lock(self) -> Any:
        return _Lock()

    def event(self) -> _Event:
        return _Event()

    def queue(self) -> _Queue:
        return _Queue()

    def token(self) -> Token:
        return Token()

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        return False


class _Lock:
    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._held:
            if blocking and timeout < 0:
                raise InternalError("inline: a lock was taken twice, with one thread nobody would free it")
            return False
        self._held = True
        return True

    def release(self) -> None:
        self._held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class _Event:
    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        if cancel is not None and not self._set:
            cancel.raise_if_cancelled()
        if not self._set and timeout_seconds is None:
            raise InternalError("inline: waits for an event that nobody can set")
        return self._set


class _Queue:
    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        if cancel is not None:
            cancel.raise_if_cancelled()
        if not self._items and timeout_seconds is None:
            raise InternalError("inline: waits for an item that nobody can bring")
        return self._items.popleft() if self._items else None
