"""An engine without walls for suites and tests: trusted source goes in, what its ``main`` returns comes out.

The source is run by this very interpreter, so nothing is kept from it and no limit holds; what is code's own business
(entry, tools under underscores, errors by kind, JSON out) is as every engine has it.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from harness_hookspecs.engine import EngineError, EngineLimits
from harness_hookspecs.errors import CodecError, ToolError
from harness_hookspecs.host import CancelToken
from harness_hookspecs.kit import codec
from harness_hookspecs.role import BoundTool

__all__ = ["FakeEngine", "FakeRun"]


class FakeRun(NamedTuple):
    """One run that an engine was asked for."""

    source: str
    input: Any
    tools: tuple[str, ...]
    limits: EngineLimits
    seed: int
    epoch_ms: int


class FakeEngine:
    """Fits ``Engine``.

    Attributes:
        runs: What it was asked to run, in order.
    """

    def __init__(self) -> None:
        self.runs: list[FakeRun] = []

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
        """Run it here and now."""
        self.runs.append(FakeRun(source, input, tuple(tools), limits, seed, epoch_ms))
        try:
            parsed = ast.parse(source)
        except SyntaxError as error:
            return _failed("syntax", error)
        names: dict[str, Any] = {"SEED": seed, "EPOCH_MS": epoch_ms}
        try:
            exec(compile(parsed, "<step>", "exec"), names)  # noqa: S102  # trusted: tests write it
            value = _driven(names["main"](input, SimpleNamespace(**_as_methods(tools))))
            codec.dumps(value)
        except ToolError as error:
            return _failed("tool", error)
        except (ArithmeticError, AttributeError, CodecError, LookupError, RuntimeError, TypeError, ValueError) as error:
            return _failed("runtime", error)
        return value

    def close(self) -> None:
        """Nothing was begun that goes on."""


def _as_methods(tools: Mapping[str, BoundTool]) -> dict[str, Callable[..., Any]]:
    return {name.replace(".", "_"): _as_method(tool) for name, tool in tools.items()}


def _as_method(tool: BoundTool) -> Callable[..., Any]:
    async def call(**args: Any) -> Any:
        return tool.execute(args)

    return call


def _driven(coroutine: Any) -> Any:
    """Run a coroutine that awaits nothing but others of its kind."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("main waits for something that is no tool")


def _failed(kind: Literal["syntax", "runtime", "tool"], error: Exception) -> EngineError:
    trace = "".join(traceback.format_exception_only(error)).strip()
    return EngineError(kind, f"{type(error).__name__}: {error}", trace)
