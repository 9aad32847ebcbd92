"""Why a run gave no output: an error of the interpreter goes in, an ``EngineError`` in lines of the code comes out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from harness_hookspecs.engine import MAX_MESSAGE_CHARS, MAX_TRACEBACK_CHARS, EngineError

from .program import Program

if TYPE_CHECKING:
    from pydantic_monty import Frame

__all__ = ["ENTRY", "failed", "no_main", "no_output", "too_large", "too_late"]

Kind = Literal["syntax", "runtime", "timeout", "memory", "tool", "crash"]

ENTRY: Final = "async def main(input, tools)"

_FRAMES_SHOWN: Final = 20
_NOT_YET: Final = "NotImplementedError: The monty syntax parser does not yet support"


def failed(error: Any, program: Program, tool_errors: Collection[str]) -> EngineError:
    """Say what became of the code.

    Args:
        error: What the library raised, of the types with ``display`` and ``traceback``.
        program: What was fed.
        tool_errors: What tools said that failed in this run.
    """
    said = str(error.display("type-msg"))
    frames = list(error.traceback())
    if _calls_no_main(said, frames, program):
        return no_main()
    kind = _kind(error, said, frames, tool_errors)
    if kind == "timeout":
        return too_late()  # the library tells the microseconds, which no two runs share
    return EngineError(kind, _cut(said, MAX_MESSAGE_CHARS), _shown(frames, said, program))


def _calls_no_main(said: str, frames: Sequence[Frame], program: Program) -> bool:
    lines = {program.awaited_line - 1, program.awaited_line}
    return said.startswith("TypeError: ") and bool(frames) and frames[-1].line in lines


def _kind(error: Any, said: str, frames: Sequence[Frame], tool_errors: Collection[str]) -> Kind:
    if type(error).__name__ == "MontySyntaxError" or said.startswith(_NOT_YET):
        return "syntax"
    if not frames and said.startswith("TimeoutError: "):
        return "timeout"
    if said.startswith("MemoryError"):
        return "memory"
    return "tool" if said.removeprefix("RuntimeError: ") in tool_errors else "runtime"


def no_main() -> EngineError:
    """The code has no entry."""
    return EngineError("syntax", f"SyntaxError: the code must define `{ENTRY}`", "")


def too_late() -> EngineError:
    """The code ran longer than it may."""
    return EngineError("timeout", "TimeoutError: the code did not end in time and was ended", "")


def no_output(why: str) -> EngineError:
    """What ``main`` returned is no JSON."""
    return EngineError("runtime", _cut(f"ValueError: what main returned is no JSON: {why}", MAX_MESSAGE_CHARS), "")


def too_large(size_bytes: int, limit_bytes: int) -> EngineError:
    """What ``main`` returned is too large."""
    return EngineError("memory", f"MemoryError: the output has {size_bytes} bytes; at most {limit_bytes}", "")


def _shown(frames: Sequence[Frame], said: str, program: Program) -> str:
    """The traceback in lines of the code; those of the tail are left out, and the middle of a long one."""
    own = [frame for frame in frames if frame.filename == "<string>" or frame.line <= program.source_lines]
    lines = [_line(frame) for frame in own]
    if len(lines) > 2 * _FRAMES_SHOWN:
        left_out = f"  [... {len(lines) - 2 * _FRAMES_SHOWN} more ...]"
        lines = [*lines[:_FRAMES_SHOWN], left_out, *lines[-_FRAMES_SHOWN:]]
    if not lines:
        return ""
    text = "\n".join(["Traceback (most recent call last):", *lines])
    return f"{_cut(text, MAX_TRACEBACK_CHARS - 1001)}\n{_cut(said, 1000)}"


def _line(frame: Frame) -> str:
    name = "main.py" if frame.filename != "<string>" else frame.filename
    within = f", in {frame.function_name}" if frame.function_name else ""
    head = f'  File "{name}", line {frame.line}{within}'
    shown = (frame.source_line or "").strip().partition("\n")[0]
    return f"{head}\n    {shown[:200]}" if shown else head


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 8]} [cut]"
