"""Kind ``engine``: the code of a ``code.run`` step goes in, its output comes out, or why there is none.

The code is Python and defines ``async def main(input, tools)``. It sees its input and its tools, and nothing of the
host: no file, environment, process, network or clock. How much of the language there is beside that is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any, Final, Literal, NamedTuple, Protocol

from .errors import ConfigError
from .host import CancelToken
from .role import BoundTool

__all__ = ["MAX_MESSAGE_CHARS", "MAX_TRACEBACK_CHARS", "Engine", "EngineError", "EngineLimits", "names_in_code"]

MAX_MESSAGE_CHARS: Final = 2_000
"""What an :class:`EngineError` says at most; the code itself may choose its words."""

MAX_TRACEBACK_CHARS: Final = 8_000


class EngineLimits(NamedTuple):
    """Bounds of one run.

    Attributes:
        timeout_seconds: Time the code itself may run; a tool's call has a time of its own.
        memory_bytes: What its values may take.
        output_bytes: The output as JSON, and the arguments of each tool call.
    """

    timeout_seconds: float
    memory_bytes: int
    output_bytes: int


class EngineError(NamedTuple):
    """Why the code gave no output.

    Attributes:
        kind: ``syntax``, the text is no such code or has no ``main`` that can be awaited; ``runtime``, it raised, or
            returned what is no JSON; ``timeout`` and ``memory``, a limit was reached (``memory`` also for an output
            over its limit); ``tool``, it let the error of a tool pass; ``crash``, what ran it is gone.
        message: What is wrong, beginning with the type of what was raised; at most ``MAX_MESSAGE_CHARS``.
        traceback_text: Where, in lines of the code alone; at most ``MAX_TRACEBACK_CHARS``, empty where there is none.
    """

    kind: Literal["syntax", "runtime", "timeout", "memory", "tool", "crash"]
    message: str
    traceback_text: str


class Engine(Protocol):
    """Runs code with clock and randomness fixed: equal runs have equal outputs. Several runs may go on at once."""

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
        """The JSON value that ``main`` returned, or an :class:`EngineError`.

        Args:
            source: The code.
            input: A JSON value; the code may change its own copy.
            tools: By name. The code awaits them under the names of :func:`names_in_code`, arguments by keyword
                (``await tools.ats_candidates(job=3)``); they are called one after another in the order in which the
                code comes to them, with arguments as JSON has them. A ``ToolError`` or ``Refused`` is a
                ``RuntimeError`` of the same message in the code, which may catch it.
            limits: The bounds of this run.
            seed: What ``random`` draws from.
            epoch_ms: Where the clock stands for all of the run; sleeping takes no time.
            cancel: Ends the run.

        Raises:
            Cancelled: The token was set.
            ConfigError: As :func:`names_in_code`.
            Anything: Whatever else a tool raises ends the run and passes, ``Suspend`` and ``Cancelled`` first of all;
                no code can catch it.
        """

    def close(self) -> None:
        """End what runs, and every process of the engine; what is closed stays closed, and twice is fine."""


def names_in_code(names: Iterable[str]) -> dict[str, str]:
    """Tell how code names tools: dots become underscores.

    Returns:
        The names in code, each with the tool's own.

    Raises:
        ConfigError: ``engine.tool_names``: two have one name there, or one cannot be written.
    """
    found: dict[str, str] = {}
    for name in names:
        written = name.replace(".", "_")
        if not (written.isascii() and written.isidentifier()) or iskeyword(written) or written.startswith("__"):
            raise ConfigError(f"the tool {name!r} cannot be named in code", code="engine.tool_names")
        if written in found:
            said = f"the tools {found[written]} and {name} would both be tools.{written} in code"
            raise ConfigError(said, code="engine.tool_names")
        found[written] = name
    return found
