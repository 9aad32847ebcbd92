"""One run: a session and a program go in; its tool calls are made, and the output's text comes out, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness_hookspecs.engine import EngineError
from harness_hookspecs.errors import CodecError, Refused, ToolError
from harness_hookspecs.host import CancelToken
from harness_hookspecs.kit import codec
from harness_hookspecs.role import BoundTool

from .failures import failed, no_main, no_output, too_late
from .program import CALL, INPUT, Program

if TYPE_CHECKING:
    from pydantic_monty import ExternalExceptionData, ExternalResult, FunctionSnapshot, MontySession, SyncSnapshot

__all__ = ["Run"]


class Run:
    """Feeds a program once and answers what it asks for; not for two feeds."""

    def __init__(
        self,
        session: MontySession,
        program: Program,
        tools: Mapping[str, BoundTool],
        limit_bytes: int,
        cancel: CancelToken,
    ) -> None:
        self._session, self._program, self._tools = session, program, tools
        self._limit_bytes, self._cancel = limit_bytes, cancel
        self._tool_errors: set[str] = set()

    def go(self, given: str) -> str | EngineError:
        """Run to the end; ``given`` is the input as JSON. What a tool raises beside its own errors passes."""
        from pydantic_monty import MontyCrashedError, MontyError

        try:
            text, inputs = self._program.text, {INPUT: given}
            return self._driven(self._session.feed_start(text, inputs=inputs, print_callback=_nowhere))
        except MontyCrashedError as error:
            if error.timed_out or "request timeout" in str(error):
                return too_late()
            return EngineError("crash", f"what ran the code is gone: {error}", "")
        except MontyError as error:
            if not hasattr(error, "traceback"):
                return EngineError("runtime", str(error), "")
            return failed(error, self._program, self._tool_errors)

    def _driven(self, at: SyncSnapshot) -> str | EngineError:
        from pydantic_monty import FunctionSnapshot, MontyComplete, NameLookupSnapshot

        while not isinstance(at, MontyComplete):
            if isinstance(at, NameLookupSnapshot):
                if self._is_tail(at.position.start) and at.variable_name == "main":
                    return no_main()
                at = at.resume()
            elif isinstance(at, FunctionSnapshot):
                if self._is_tail(at.position.start) and at.function_name == "main":
                    return no_main()
                at = self._answered(at)
            else:  # nothing of ours is answered later
                return EngineError("runtime", "RuntimeError: the code waits for something that never comes", "")
        output = _value(lambda: at.output)
        return output if isinstance(output, str) else no_output("it is no text of ours")

    def _is_tail(self, start: int) -> bool:
        return start >= self._program.source_bytes

    def _answered(self, at: FunctionSnapshot) -> SyncSnapshot:
        if at.is_os_function:
            return at.resume_not_handled()  # files, variables, modules that are not there: refused
        if at.function_name != CALL:
            return at.resume({"exc_type": "NameError", "message": f"name '{at.function_name}' is not defined"})
        return at.resume(self._called(_value(lambda: at.args)))

    def _called(self, asked: Any) -> ExternalResult:
        """Call the tool that was asked for; the code may have made up what it asks."""
        match asked:
            case (str(name), str(text)) if name in self._program.tools:
                own = self._program.tools[name]
            case _:
                return _raising("TypeError", "this is no call of a tool")
        try:
            args = codec.loads(text, max_bytes=self._limit_bytes)
        except CodecError as error:
            return _raising("ValueError", f"the arguments of {own} are no JSON: {error.message}")
        if not isinstance(args, dict):
            return _raising("TypeError", "this is no call of a tool")
        self._cancel.raise_if_cancelled()
        try:
            return {"return_value": codec.dumps(self._tools[own].execute(args)).decode()}
        except (ToolError, Refused) as error:
            self._tool_errors.add(error.message)
            return _raising("RuntimeError", error.message)


def _raising(kind: Any, message: str) -> ExternalExceptionData:
    return {"exc_type": kind, "message": message}


def _nowhere(stream: str, text: str) -> None:
    """What the code prints goes to nobody."""


def _value(take: Any) -> Any:
    """A value out of the worker, ``None`` for one that Python has not, such as an integer too long to be read."""
    try:
        return take()
    except (ValueError, TypeError, OverflowError):
        return None
