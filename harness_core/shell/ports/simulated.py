"""A seed in; ports out under which one thread runs at a time, in virtual time, the same way for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Self

from harness_hookspecs.host import CancelToken, Completed, FileFacts, Files, HeldLock

from .baton import Baton
from .failpoints import Failpoints
from .files import RealFiles
from .simulated_waiting import SimulatedTask, SimulatedWaiting, wait_here
from .strand import Switch
from .world import RealProcesses, timestamp_of, ulid_of, uuid7_of

__all__ = ["START", "SimulatedPorts"]

START = datetime(2026, 1, 1, tzinfo=UTC)
_START_MS = int(START.timestamp() * 1000)
_START_NS = _START_MS * 1_000_000


class SimulatedPorts:
    """Ports over a baton. Every call but ``reach`` is a switch point; the thread that makes them is the main one.

    A wait that nothing can end raises ``InternalError`` in the main participant, naming who waits for what where:
    ``simulation.deadlock``; ``simulation.livelock`` when a million steps did not move time, or three million gave
    nothing to the main participant; ``simulation.blocked``
    when a participant blocks on something that is no port (all stacks go to stderr after ``watchdog_seconds``).

    Close them, or use them in a ``with``: whoever still waits then unwinds by a ``BaseException`` and ends.

    Args:
        seed: Decides every switch, how time flows, latencies, ids and random numbers.
        watchdog_seconds: Real time without a port call after which all stacks are dumped.
    """

    concurrent = True

    def __init__(self, seed: int = 0, *, watchdog_seconds: float = 2.0) -> None:
        self.seed = seed
        self.baton = Baton(seed, watchdog_seconds=watchdog_seconds)
        self.failpoints = Failpoints()
        self.clock = _Clock(self.baton)
        self.ids = _Ids(self.baton, seed)
        self.random = _Random(self.baton, seed)
        self.wait = SimulatedWaiting(self.baton)
        self.processes = _Processes(self.baton)
        self._files: dict[Path, _Files] = {}

    @property
    def trace(self) -> Sequence[Switch]:
        """The last steps: who made which port call at which virtual time."""
        return tuple(self.baton.trace)

    def files(self, root: Path) -> Files:
        """Real files; what one ``root`` has seen of their times is kept, so that they are virtual too."""
        return self._files.setdefault(root, _Files(root, self.baton))

    def reach(self, name: str) -> None:
        self.failpoints.reach(name)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> SimulatedTask:
        return SimulatedTask(self.baton, function, args, name)

    def close(self) -> None:
        """End every participant but the caller, which is the main one, and what commands need beside them."""
        self.baton.close()
        self.processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Clock:
    """Virtual time since :data:`START`."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton

    def now(self) -> datetime:
        self._baton.call("clock.now")
        return START + timedelta(milliseconds=self._baton.now_ns // 1_000_000)

    def timestamp(self) -> str:
        self._baton.call("clock.timestamp")
        return timestamp_of(_START_MS + self._baton.now_ns // 1_000_000)

    def monotonic(self) -> float:
        self._baton.call("clock.monotonic")
        return self._baton.now_ns / 1e9

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        self._baton.call("clock.sleep")
        wait_here(self._baton, "sleep", seconds, cancel)
        if cancel is not None:
            cancel.raise_if_cancelled()


class _Ids:
    def __init__(self, baton: Baton, seed: int) -> None:
        self._baton = baton
        self._chance = random.Random(f"{seed}/ids")
        self._last = 0

    def uuid7(self) -> str:
        self._baton.call("ids.uuid7")
        self._last = stamp = max((_START_MS + self._baton.now_ns // 1_000_000) << 12, self._last + 1)
        return uuid7_of(stamp, self._chance.randbytes(8))

    def ulid(self, prefix: str) -> str:
        self._baton.call("ids.ulid")
        return ulid_of(prefix, _START_MS + self._baton.now_ns // 1_000_000, self._chance.randbytes(10))


class _Random:
    def __init__(self, baton: Baton, seed: int) -> None:
        self._baton = baton
        self._chance = random.Random(f"{seed}/random")

    def bytes(self, count: int) -> bytes:
        self._baton.call("random.bytes")
        return self._chance.randbytes(count)

    def uniform(self, low: float, high: float) -> float:
        self._baton.call("random.uniform")
        return low + (high - low) * self._chance.random()


class _Files:
    """Real files: every call is a switch point and takes virtual time; times of change are virtual."""

    def __init__(self, root: Path, baton: Baton) -> None:
        self._real = RealFiles(root)
        self._baton = baton
        self._seen: dict[str, tuple[tuple[int, int], int]] = {}  # path: (real time and size, virtual time)

    @property
    def root(self) -> Path:
        return self._real.root

    def read_bytes(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        self._step("read", path)
        return self._real.read_bytes(path, limit_bytes=limit_bytes)

    def write_bytes(self, path: str, data: bytes) -> None:
        self._step("write", path)
        self._real.write_bytes(path, data)
        self._written(path)

    def append_bytes(self, path: str, data: bytes) -> None:
        self._step("append", path)
        self._real.append_bytes(path, data)
        self._written(path)

    def remove(self, path: str) -> None:
        self._step("remove", path)
        self._real.remove(path)

    def facts(self, path: str) -> FileFacts | None:
        self._step("facts", path)
        facts = self._real.facts(path)
        return None if facts is None else self._virtual(path, facts)

    def walk(self, path: str = ".") -> Iterator[tuple[str, FileFacts]]:
        self._step("walk", path)
        for name, facts in list(self._real.walk(path)):
            yield name, self._virtual(name, facts)

    def make_directory(self, path: str) -> None:
        self._step("make", path)
        self._real.make_directory(path)

    def try_lock(self, path: str) -> HeldLock | None:
        self._step("lock", path)
        return self._real.try_lock(path)

    def _step(self, verb: str, path: str) -> None:
        self._baton.call(f"file.{verb} {path!r}")
        self._baton.linger(f"file.{verb}")

    def _written(self, path: str) -> None:
        facts = self._real.facts(path)
        if facts is not None:
            self._seen[_plain(path)] = ((facts.modified_ns, facts.size_bytes), self._now_ns())

    def _virtual(self, path: str, facts: FileFacts) -> FileFacts:
        """A file not seen before was there from the start; one that has changed has changed now."""
        real = (facts.modified_ns, facts.size_bytes)
        seen = self._seen.get(_plain(path))
        if seen is None or seen[0] != real:
            seen = self._seen[_plain(path)] = (real, _START_NS if seen is None else self._now_ns())
        return facts._replace(modified_ns=seen[1])

    def _now_ns(self) -> int:
        return _START_NS + self._baton.now_ns


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


class _Processes:
    """Real processes: nobody else runs meanwhile, and what they take is virtual time drawn from the seed."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._real = RealProcesses()

    def close(self) -> None:
        self._real.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        cancel: CancelToken | None = None,
        limit_bytes: int = 1_048_576,
    ) -> Completed:
        what = f"process {' '.join(argv[:1])}"
        self._baton.call(what)
        self._baton.linger(what)
        with self._baton.outside():
            done = self._real.run(
                argv,
                cwd=cwd,
                env=env,
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cancel=cancel,
                limit_bytes=limit_bytes,
            )
        if done.timed_out:
            self._baton.block(what, timeout_seconds)
        self._baton.linger(what)
        if cancel is not None:
            cancel.raise_if_cancelled()
        return done
