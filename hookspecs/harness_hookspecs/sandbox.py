"""Kind ``sandbox``: a command in, its bounded output out, isolated as reported (built by a later distribution)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .host import CancelToken, Completed
from .mount import HarnessRuntimeMount

__all__ = ["Isolation", "Sandbox", "SandboxLimits"]


class Isolation(NamedTuple):
    """What the sandbox proved about itself; ``None`` is not proved."""

    filesystem: bool | None
    network: bool | None
    processes: bool | None
    memory: bool | None


class SandboxLimits(NamedTuple):
    """Bounds of one command."""

    timeout_seconds: float
    memory_bytes: int
    output_bytes: int


class Sandbox(Protocol):
    """Runs commands with no more than the given mounts; without a proof of isolation shell tools refuse."""

    def isolation(self) -> Isolation:
        """A live self-test."""

    def run(
        self,
        argv: Sequence[str],
        *,
        mounts: Sequence[HarnessRuntimeMount],
        env: Mapping[str, str],
        limits: SandboxLimits,
        cancel: CancelToken,
    ) -> Completed:
        """Run to the end or the deadline; no descendant survives."""
