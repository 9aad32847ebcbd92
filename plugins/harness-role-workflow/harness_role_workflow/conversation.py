"""The messages of one role call: texts, answers and tool outcomes go in, well-formed messages come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import (
    ErrorEnvelope,
    Message,
    OracleResponse,
    ToolCallPart,
    ToolCallRequest,
    ToolResultPart,
)
from harness_hookspecs.role import ToolOutcome

from .asking import said

__all__ = ["assistant", "calls_of", "correction", "opening", "results"]


def opening(system: str, prompt: str, step_input: Any, asked: str | None) -> tuple[Message, Message]:
    """The system message and the question.

    What stays the same between steps (the input's context) stands first, so that a model which keeps its prefix need
    not read it again; what is asked stands last.
    """
    given, feedback = _given(step_input)
    blocks = [*given, ("Task:", prompt)] if given else [("", prompt)]
    if feedback:
        blocks.append(("The last attempt failed:", feedback))
    if asked:
        blocks.append(("", asked))
    text = "\n\n".join(f"{heading}\n{body}".strip() for heading, body in blocks)
    return said("system", system), said("user", text)


def _given(step_input: Any) -> tuple[list[tuple[str, str]], str]:
    """The blocks of what the step was given, and the feedback on the attempt before."""
    if not isinstance(step_input, Mapping):
        return ([("Input:", _written(step_input))] if step_input not in (None, "") else []), ""
    rest = {name: value for name, value in step_input.items() if name not in {"context", "feedback"}}
    blocks = [("Context:", _written(step_input["context"]))] if step_input.get("context") else []
    if rest:
        blocks.append(("Input:", _written(rest)))
    return blocks, _written(step_input["feedback"]) if step_input.get("feedback") else ""


def _written(value: Any) -> str:
    return value.strip() if isinstance(value, str) else codec.dumps(value).decode()


def calls_of(response: OracleResponse) -> tuple[ToolCallRequest, ...]:
    """The tool calls of an answer, whether the provider listed them or left them among the parts."""
    if response.tool_calls is not None:
        return response.tool_calls
    parts = (part for part in response.content if isinstance(part, ToolCallPart))
    return tuple(ToolCallRequest(call_id=part.call_id, tool_name=part.tool_name, args=part.args) for part in parts)


def assistant(response: OracleResponse, calls: Sequence[ToolCallRequest]) -> Message:
    """The answer as it goes back to the model, each call once."""
    said = [part for part in response.content if not isinstance(part, ToolCallPart)]
    asked = [ToolCallPart(call_id=call.call_id, tool_name=call.tool_name, args=call.args) for call in calls]
    return Message(role="assistant", content=(*said, *asked))


def results(calls: Sequence[ToolCallRequest], outcomes: Iterable[ToolOutcome]) -> Iterator[Message]:
    """One message a call, in the order of the calls.

    Raises:
        RoleError: ``role.unpaired_call`` when a call has no outcome.
    """
    by_id = {outcome.call_id: outcome for outcome in outcomes}
    for call in calls:
        if call.call_id not in by_id:
            raise RoleError(f"The call {call.call_id} of {call.tool_name} has no outcome.", code="role.unpaired_call")
        yield Message(role="tool", call_id=call.call_id, content=(_result(call, by_id[call.call_id]),))


def _result(call: ToolCallRequest, outcome: ToolOutcome) -> ToolResultPart:
    if outcome.ok:
        return ToolResultPart(call_id=call.call_id, tool_name=call.tool_name, result=outcome.value)
    return ToolResultPart(call_id=call.call_id, tool_name=call.tool_name, error=_envelope(outcome.value))


def _envelope(value: Any) -> ErrorEnvelope:
    if not isinstance(value, Mapping):
        return ErrorEnvelope(name="ToolError", message=value if isinstance(value, str) else _written(value))
    message = value.get("message") or value.get("error") or _written(dict(value))
    code = value.get("code")
    return ErrorEnvelope(name="ToolError", message=str(message), code=code if isinstance(code, str) else None)


def correction(findings: Iterable[Mapping[str, str]]) -> Message:
    """The question after an answer that is not valid."""
    lines = [f"- {finding['path'] or 'answer'}: {finding['message']}" for finding in findings]
    return said("user", "\n".join(["This is not valid:", *lines, "Answer again, in full."]))
