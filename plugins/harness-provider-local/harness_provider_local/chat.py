"""A model request goes in and the engine's request comes out; the engine's answer goes in and ours comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import ProviderError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import (
    Message,
    OracleResponse,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolCallRequest,
    ToolResultPart,
    Usage,
)
from harness_hookspecs.provider import ModelRequest, ToolSchema

from . import constrain, envelope

__all__ = ["Question", "engine_messages", "question", "response"]

_PARAMS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "repeat_penalty": "repeat_penalty",
    "seed": "seed",
    "max_output_tokens": "max_tokens",
}
_SEEDS: Final = 2**32 - 1
"""The engine's seeds are below this; the number itself means "any"."""


class Question(NamedTuple):
    """What the engine is asked, and the schema its whole answer must satisfy."""

    body: Mapping[str, Any]
    schema: Mapping[str, Any] | None
    enveloped: bool


def question(request: ModelRequest, defaults: Mapping[str, Any]) -> Question:
    """Build the engine's request.

    Args:
        request: What the host asks.
        defaults: Sampling where the request says nothing, by the contract's names.

    Raises:
        ProviderError: ``provider.schema_invalid``.
    """
    schema = request.response_schema
    if schema is not None:
        constrain.check_schema(schema)
    if request.tools:
        schema = envelope.schema(request.tools, schema)
    body: dict[str, Any] = {"messages": engine_messages(request.messages, request.tools)}
    body.update(_sampling({**defaults, **request.params}))
    if schema is not None:
        body["grammar"] = constrain.grammar(schema)
    return Question(body, schema, bool(request.tools))


def _sampling(params: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: params[key] for key, name in _PARAMS.items() if params.get(key) is not None}
    if "seed" in named:
        named["seed"] %= _SEEDS
    return named


def engine_messages(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> list[dict[str, str]]:
    """Give the messages as every chat template takes them: text only, and no role twice in a row.

    Tool results are shown as the user's, because most templates know no other role for them.
    """
    pairs = [("user" if message.role == "tool" else message.role, _text(message)) for message in messages]
    if tools:
        at = 1 if pairs and pairs[0][0] == "system" else 0
        pairs.insert(at, ("system", envelope.instructions(tools)))
    joined: list[dict[str, str]] = []
    for role, text in pairs:
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += "\n\n" + text
        else:
            joined.append({"role": role, "content": text})
    return joined


def _text(message: Message) -> str:
    return "\n".join(text for part in message.content if (text := _part_text(part)))


def _part_text(part: Part) -> str:
    match part:
        case TextPart() | RefusalPart():
            return part.text
        case ToolCallPart():
            return envelope.call_text(part)
        case ToolResultPart():
            return envelope.result_text(part)
        case ReasoningPart():
            return ""  # what was thought in an earlier turn is not shown again


def response(asked: Question, answer: Mapping[str, Any], *, complaint: str | None = None) -> OracleResponse:
    """Build our answer from the engine's; what was promised about it is checked first.

    Args:
        asked: What was asked.
        answer: The worker's ``done``.
        complaint: What the engine's log said about the schema, if it did.

    Raises:
        ProviderError: ``provider.schema_violation``; the whole text, the usage and the reason are in its facts.
    """
    usage = _usage(answer.get("usage"))
    text, cut = answer["text"], answer["finish"] == "length"
    thought = [ReasoningPart(text=answer["reasoning"])] if answer.get("reasoning") else []
    if asked.schema is None:
        return OracleResponse(
            content=(*thought, TextPart(text=text)), finish_reason="length" if cut else "stop", usage=usage
        )
    broken = constrain.violation(asked.schema, text)
    if broken is not None:
        raise _violation(broken, text, usage, complaint=complaint, cut=cut)
    if asked.enveloped:
        return _opened(codec.loads(text), thought, usage)
    return OracleResponse(content=(*thought, TextPart(text=text)), finish_reason="stop", usage=usage)


def _opened(value: Mapping[str, Any], thought: Sequence[Part], usage: Usage) -> OracleResponse:
    """Take an answer out of its envelope."""
    if "tool" in value:
        call = ToolCallRequest(call_id="call-1", tool_name=value["tool"], args=value["arguments"])
        return OracleResponse(content=tuple(thought), tool_calls=(call,), finish_reason="tool_calls", usage=usage)
    final = value["final"]
    text = final if isinstance(final, str) else codec.dumps(final).decode()
    return OracleResponse(content=(*thought, TextPart(text=text)), finish_reason="stop", usage=usage)


def _violation(broken: str, text: str, usage: Usage, *, complaint: str | None, cut: bool) -> ProviderError:
    if cut:
        message, reason = "The reply was cut off at its token limit before its JSON was complete.", "incomplete"
        hint: str | None = "Allow more max_output_tokens, or bound the schema's strings and lists more tightly."
    else:
        message, reason = f"The reply does not satisfy its schema: {broken}", "mismatch"
        hint = f"The engine could not enforce the schema: {complaint}" if complaint else None
    return ProviderError(
        message,
        code="provider.schema_violation",
        hint=hint,
        reason=reason,
        text=text,
        violation=broken,
        usage=usage.model_dump(by_alias=True, exclude_none=True),
    )


def _usage(reported: Mapping[str, Any] | None) -> Usage:
    if reported is None:
        return Usage.unknown()
    details = reported.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=reported["prompt_tokens"],
        output_tokens=reported["completion_tokens"],
        cached_input_tokens=min(details.get("cached_tokens") or 0, reported["prompt_tokens"]),
    )
