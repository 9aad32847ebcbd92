"""An in-memory host for suites and tests: a folder goes in, one object that fits every kind's host protocol comes out.

Time stands still until ``host.ports.clock.advance`` (or a sleep) moves it, ids count, randomness repeats, threads and
files are real. Nothing is configured, discovered or scanned.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harness_hookspecs.errors import NotFound, PluginError
from harness_hookspecs.host import CancelToken

from .waiting import FakeTask, FakeWaiting
from .world import FakeFiles, FakeProcesses

if TYPE_CHECKING:
    from harness_hookspecs.artifact import ArtifactType
    from harness_hookspecs.engine import Engine
    from harness_hookspecs.rules import Rules

__all__ = ["START", "FakeClock", "FakeHost", "FakeIds", "FakePorts", "FakeRandom"]

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that moves only when it is told to or slept on."""

    def __init__(self) -> None:
        self._elapsed_seconds = 0.0

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        self._elapsed_seconds += seconds

    def now(self) -> datetime:
        """Aware UTC time with milliseconds."""
        return START + timedelta(milliseconds=round(self._elapsed_seconds * 1000))

    def timestamp(self) -> str:
        """``now`` as stored text."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def monotonic(self) -> float:
        """Seconds since the host was made."""
        return self._elapsed_seconds

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        """Return at once, later."""
        if cancel is not None:
            cancel.raise_if_cancelled()
        self.advance(seconds)


class FakeIds:
    """Ids that count from one; safe from any thread."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def uuid7(self) -> str:
        """The next id in the form of a UUIDv7."""
        return f"019b76da-a800-7000-8000-{next(self._next):012x}"

    def ulid(self, prefix: str) -> str:
        """The next id in the form of a ULID."""
        return f"{prefix}_{next(self._next):026d}"


class FakeRandom:
    """The same randomness each time."""

    def __init__(self) -> None:
        self._next = itertools.count()

    def bytes(self, count: int) -> bytes:
        """``count`` bytes."""
        return hashlib.shake_256(str(next(self._next)).encode()).digest(count)

    def uniform(self, low: float, high: float) -> float:
        """A float in ``[low, high)``."""
        return low + (high - low) * int.from_bytes(self.bytes(4), "big") / 2**32


class FakePorts:
    """``Ports``: still time, counting ids, real threads, files and processes.

    Attributes:
        reached: The boundaries named so far, in order.
        at: What to do when a boundary is reached, by name; it may raise.
    """

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.ids = FakeIds()
        self.random = FakeRandom()
        self.wait = FakeWaiting()
        self.processes = FakeProcesses()
        self.reached: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}

    def files(self, root: Path) -> FakeFiles:
        """Files below ``root``."""
        return FakeFiles(root)

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> FakeTask:
        """Run it on a daemon thread."""
        return FakeTask(function, args, name)

    def reach(self, name: str) -> None:
        """Note the boundary and act on it."""
        self.reached.append(name)
        action = self.at.get(name)
        if action is not None:
            action()


class FakeHost:
    """Fits ``StoreHost``, ``ProviderHost``, ``ToolHost`` and every other kind's protocol.

    Args:
        folder: Holds ``project``, ``data`` and ``state``, which are made.
        secrets: What ``secret`` resolves, by reference.
        artifact_types: What ``artifact_type`` finds, by name.
        entry_name: The model entry a provider is built for.
        terminal: File descriptors of the person's terminal, where there is one.
        rules: The rules engine, where there is one.
        engines: What ``engine`` finds, by name; the first is the usual one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        secrets: Mapping[str, str] | None = None,
        artifact_types: Mapping[str, ArtifactType] | None = None,
        entry_name: str = "model",
        terminal: tuple[int, int] | None = None,
        rules: Rules | None = None,
        engines: Mapping[str, Engine] | None = None,
    ) -> None:
        self.ports = FakePorts()
        self.project_dir = folder / "project"
        self.state_dir = folder / "state"
        self.data_dir = folder / "data"
        for made in (self.project_dir, self.state_dir, self.data_dir):
            made.mkdir(parents=True, exist_ok=True)
        self.entry_name = entry_name
        self.terminal = terminal
        self._secrets = dict(secrets or {})
        self._artifact_types = dict(artifact_types or {})
        self._rules, self._engines = rules, dict(engines or {})

    def secret(self, reference: str) -> str:
        """The secret of that reference."""
        if reference not in self._secrets:
            raise NotFound("There is no such secret.", where=reference)
        return self._secrets[reference]

    def artifact_type(self, name: str) -> ArtifactType:
        """The artifact type of that name."""
        if name not in self._artifact_types:
            raise NotFound("There is no such artifact type.", where=name)
        return self._artifact_types[name]

    def rules(self) -> Rules:
        """The rules engine."""
        if self._rules is None:
            raise PluginError("There is no rules engine.", code="plugin.missing")
        return self._rules

    def engine(self, name: str | None = None) -> Engine:
        """The engine of that name, or the first."""
        found = self._engines.get(name) if name else next(iter(self._engines.values()), None)
        if found is None:
            hint = "install harness-engine-monty"
            raise PluginError(f"There is no engine {name or ''}".rstrip() + ".", code="engine.not_available", hint=hint)
        return found
