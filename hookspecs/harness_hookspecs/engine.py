"""Kind ``engine``: the code of a ``code.run`` step in, its output out (built by a later distribution)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from .host import CancelToken
from .role import BoundTool

__all__ = ["Engine", "EngineError", "EngineLimits"]


class EngineLimits(NamedTuple):
    """Bounds of one run."""

    timeout_seconds: float
    memory_bytes: int
    output_bytes: int


class EngineError(NamedTuple):
    """Why the code gave no output."""

    kind: Literal["syntax", "runtime", "timeout", "memory", "tool", "crash"]
    message: str
    traceback_text: str


class Engine(Protocol):
    """Runs ``async def main(input, tools)`` with clock and randomness fixed by ``seed`` and ``epoch_ms``."""

    def run(
        self,
        source: str,
        input: Any,  # noqa: A002  # the name the code itself sees
        *,
        tools: Mapping[str, BoundTool],
        limits: EngineLimits,
        seed: int,
        epoch_ms: int,
        cancel: CancelToken,
    ) -> Any:
        """The JSON value ``main`` returned, or an :class:`EngineError`."""
