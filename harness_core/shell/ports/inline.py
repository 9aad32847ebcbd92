"""Ports without threads: spawned work runs in its turn, and waiting for what nobody will bring is an error."""

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
from .wake import readable
from .world import RealClock, RealIds, RealProcesses, RealRandom

__all__ = ["InlinePorts", "InlineTask", "InlineWaiting"]


class InlinePorts:
    """One thread. Spawned work runs before ``spawn`` returns; what it spawns itself runs after it, or as soon as
    somebody waits. A wait with a timeout really lasts that long, for nobody is there to end it."""

    concurrent = False

    def __init__(self) -> None:
        self.clock = RealClock()
        self.ids = RealIds()
        self.random = RealRandom()
        self.processes = RealProcesses()
        self.failpoints = Failpoints()
        self._line = _Line()
        self.wait = InlineWaiting(self._line)

    def files(self, root: Path) -> RealFiles:
        return RealFiles(root)

    def reach(self, name: str) -> None:
        self.failpoints.reach(name)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> InlineTask:
        task = InlineTask(function, args, self._line)
        self._line.add(task)
        return task

    def close(self) -> None:
        """End what commands need beside them; nothing else is kept."""
        self.processes.close()


class _Line:
    """Work that was spawned and has not begun."""

    def __init__(self) -> None:
        self._tasks: deque[InlineTask] = deque()
        self._busy = False

    def add(self, task: InlineTask) -> None:
        self._tasks.append(task)
        if not self._busy:  # else its spawner goes on first, so that long chains of work do not nest
            self.until(lambda: False)

    def until(self, ready: Callable[[], bool]) -> bool:
        """Run what waits in the line until it is ``ready``, or empty."""
        busy, self._busy = self._busy, True
        try:
            while not ready() and self._tasks:
                self._tasks.popleft().run()
        finally:
            self._busy = busy
        return ready()

    def wait(
        self, ready: Callable[[], bool], timeout_seconds: float | None, cancel: CancelToken | None, what: str
    ) -> bool:
        if self.until(ready):
            return True
        if cancel is not None:
            cancel.raise_if_cancelled()
        if timeout_seconds is None:
            raise InternalError(f"inline: waits for {what}, but with one thread nobody brings it", code="inline.stuck")
        RealClock().sleep(timeout_seconds, cancel)
        return ready()  # a signal handler may have


class InlineTask:
    """Work that has its turn in the line."""

    def __init__(self, function: Callable[..., object], args: tuple[object, ...], line: _Line) -> None:
        self._function, self._args, self._line = function, args, line
        self._error: BaseException | None = None
        self._done = False

    def run(self) -> None:
        """Do the work; what it raises is kept for ``join``."""
        try:
            self._function(*self._args)
        except (KeyboardInterrupt, SystemExit):
            raise  # it was meant for the one thread there is
        except BaseException as error:  # handed over to whoever joins
            self._error = error
        self._done = True

    def join(self, timeout_seconds: float | None = None) -> bool:
        ended = self._line.wait(self.done, timeout_seconds, None, "the end of work")
        if ended and self._error is not None:
            raise self._error
        return ended

    def done(self) -> bool:
        return self._done


class InlineWaiting:
    """Whoever waits lets the work in the line run first."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def lock(self) -> Any:
        return _Lock(self._line)

    def event(self) -> _Event:
        return _Event(self._line)

    def queue(self) -> _Queue:
        return _Queue(self._line)

    def token(self) -> Token:
        return Token()

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        return readable(fd, cancel, timeout_seconds)


class _Lock:
    def __init__(self, line: _Line) -> None:
        self._line = line
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._held and not blocking:
            return False
        free = self._line.wait(lambda: not self._held, None if timeout < 0 else timeout, None, "a lock")
        self._held = self._held or free
        return free

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class _Event:
    def __init__(self, line: _Line) -> None:
        self._line = line
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        return self._line.wait(self.is_set, timeout_seconds, cancel, "an event")


class _Queue:
    def __init__(self, line: _Line) -> None:
        self._line = line
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> Any:
        there = self._line.wait(lambda: bool(self._items), timeout_seconds, cancel, "an item")
        return self._items.popleft() if there else None
