"""Messages: what models are asked and answer, what it used and what went wrong, as camelCase wire values."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from .kit.failure import describe
from .tool import Tier
from .value import Count, Digest, Flag, Json, JsonObject, Maybe, Name, Number, PositiveCount, Text, WireModel

__all__ = [
    "ArtifactRef",
    "ChatInput",
    "ErrorEnvelope",
    "FinishReason",
    "Message",
    "OracleResponse",
    "Part",
    "ReasoningPart",
    "RefusalPart",
    "ResolvedModel",
    "TextPart",
    "ToolCallPart",
    "ToolCallRequest",
    "ToolChoice",
    "ToolReference",
    "ToolResultPart",
    "Usage",
    "find_cost",
]

FinishReason = Literal["stop", "length", "tool_calls", "refusal", "error"]


class ErrorEnvelope(WireModel):
    """What went wrong, as data: bounded, strict JSON, cycles cut (A-80)."""

    name: Text
    message: Text
    code: Maybe[Text] = None
    stack: Maybe[Text] = None
    cause: Maybe["ErrorEnvelope"] = None
    details: Maybe[JsonObject] = None

    @classmethod
    def from_exception(cls, error: BaseException, *, with_stack: bool = True) -> Self:
        """Describe an exception and its causes; see :func:`harness_hookspecs.kit.failure.describe`. Never raises."""
        return cls.model_validate(describe(error, with_stack=with_stack))


class ArtifactRef(WireModel):
    """A stored content by its digest; opaque to everyone but the store (A-101)."""

    ref: Annotated[str, StringConstraints(strict=True, pattern=r"^artifact://sha256-[0-9a-f]{64}$")]
    media_type: Name
    size_bytes: Count
    name: Maybe[Text] = None


class ToolReference(WireModel):
    """A tool in a manifest or a recorded request; the full schema is stored by its digest."""

    name: Name
    schema_hash: Digest
    tier: Tier


class ToolCallRequest(WireModel):
    """A tool call as the model asked for it; ``args`` is whatever it said, checked before anything runs."""

    call_id: Name
    tool_name: Name
    args: Json


class TextPart(WireModel):
    """Text that was said."""

    type: Literal["text"] = "text"
    text: Text


class ReasoningPart(WireModel):
    """Text that was thought; ``signature`` is the provider's own and goes back to it unchanged."""

    type: Literal["reasoning"] = "reasoning"
    text: Text
    signature: Maybe[Text] = None


class ToolCallPart(WireModel):
    """A tool call inside an assistant's message."""

    type: Literal["tool_call"] = "tool_call"
    call_id: Name
    tool_name: Name
    args: Json


class ToolResultPart(WireModel):
    """What a tool call gave: ``result`` (which may be null) or ``error``, never both, never neither."""

    type: Literal["tool_result"] = "tool_result"
    call_id: Name
    tool_name: Name
    result: Json = None
    error: Maybe[ErrorEnvelope] = None

    @model_validator(mode="after")
    def _one_ending(self) -> Self:
        if ("result" in self.model_fields_set) == (self.error is not None):
            raise PydanticCustomError("message.ending", "A tool result has either a result or an error")
        return self


class RefusalPart(WireModel):
    """The model's refusal, in its words."""

    type: Literal["refusal"] = "refusal"
    text: Text


Part = Annotated[TextPart | ReasoningPart | ToolCallPart | ToolResultPart | RefusalPart, Field(discriminator="type")]
"""One typed item of a message."""


class Message(WireModel):
    """One message of a conversation; role and content are required (A-81)."""

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Part, ...]
    call_id: Maybe[Name] = None

    @property
    def text(self) -> str:
        """All its text parts, joined; reasoning, calls, results and refusals left out."""
        return _text_of(self.content)


def _text_of(content: Iterable[Any]) -> str:
    return "".join(part.text for part in content if isinstance(part, TextPart))


class Usage(WireModel):
    """Tokens of one model call or of many; cost is derived downstream and refused here (A-61).

    Cached tokens are a part of the input, reasoning tokens a part of the output: totals never add them (A-68).
    ``known`` is false when a call did not report; then the counters are what is known, a lower bound.
    ``unknown_calls`` is set in roll-ups only.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_input_tokens: Count = 0
    reasoning_tokens: Count = 0
    known: Flag = True
    unknown_calls: Maybe[Count] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_cost(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and not _TOKEN_FIELDS.issuperset(data):
            costs = [key for key in data if _is_cost(key)]
            if costs:
                raise PydanticCustomError(
                    "usage.cost", "Usage is tokens only: {key} is refused", {"key": str(costs[0])}
                )
        return data

    @model_validator(mode="after")
    def _subsets(self) -> Self:
        if self.cached_input_tokens > self.input_tokens:
            raise PydanticCustomError("usage.subset", "cachedInputTokens is a part of inputTokens and cannot exceed it")
        if self.reasoning_tokens > self.output_tokens:
            raise PydanticCustomError("usage.subset", "reasoningTokens is a part of outputTokens and cannot exceed it")
        return self

    @classmethod
    def unknown(cls) -> Self:
        """The usage of a call that reported none; never zero by default."""
        return cls(known=False)

    @property
    def total_tokens(self) -> int:
        """Input plus output; the subsets are inside already."""
        return self.input_tokens + self.output_tokens

    @property
    def calls_unknown(self) -> int:
        """How many calls in it did not report."""
        return (0 if self.known else 1) if self.unknown_calls is None else self.unknown_calls

    @classmethod
    def sum_of(cls, usages: Iterable["Usage"]) -> Self:
        """The roll-up of many, which counts the calls that did not report.

        Raises:
            ValueError: A sum is beyond 2^53-1.
        """
        used = tuple(usages)
        unknown = sum(one.calls_unknown for one in used)
        return cls(
            input_tokens=sum(one.input_tokens for one in used),
            output_tokens=sum(one.output_tokens for one in used),
            cached_input_tokens=sum(one.cached_input_tokens for one in used),
            reasoning_tokens=sum(one.reasoning_tokens for one in used),
            known=unknown == 0,
            unknown_calls=unknown or None,
        )

    def __add__(self, other: "Usage") -> "Usage":
        """The roll-up of both."""
        return Usage.sum_of((self, other))


_TOKEN_FIELDS = frozenset(
    name for field, info in Usage.model_fields.items() for name in (field, info.alias) if name is not None
)
_COUNTERS = frozenset({"inputTokens", "outputTokens", "input_tokens", "output_tokens", "prompt_tokens", "total_tokens"})


def _is_cost(key: Any) -> bool:
    low = key.lower() if isinstance(key, str) else ""
    return "cost" in low or "price" in low or low.endswith("usd")


def find_cost(value: Any) -> str | None:
    """Find money in a usage block anywhere inside a JSON value, such as a tool's result.

    A usage block is an object under a key ``usage``, or one with token counters.

    Returns:
        The JSON pointer of the first cost key, or None.
    """
    waiting: list[tuple[Any, str, bool]] = [(value, "", False)]
    for item, pointer, inside in waiting:
        if isinstance(item, dict):
            counts = inside or not _COUNTERS.isdisjoint(item)
            for key, child in item.items():
                path = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
                if counts and _is_cost(key):
                    return path
                waiting.append((child, path, counts or key.lower() == "usage"))
        elif isinstance(item, (list, tuple)):
            waiting.extend((child, f"{pointer}/{index}", inside) for index, child in enumerate(item))
    return None


class ToolChoice(WireModel):
    """The model must call this tool."""

    tool_name: Name


class ChatInput(WireModel):
    """A question to the model of a role call; it names no model and holds no key.

    ``tools`` are names of the context's tools; absent means none.
    """

    messages: tuple[Message, ...]
    tools: Maybe[tuple[Name, ...]] = None
    tool_choice: Maybe[Literal["auto", "none", "required"] | ToolChoice] = None
    response_schema: Maybe[JsonObject] = None
    max_output_tokens: Maybe[PositiveCount] = None
    temperature: Maybe[Annotated[Number, Field(ge=0)]] = None
    top_p: Maybe[Annotated[Number, Field(ge=0, le=1)]] = None
    stop: Maybe[tuple[Text, ...]] = None


class OracleResponse(WireModel):
    """A model's whole answer."""

    content: tuple[Part, ...]
    tool_calls: Maybe[tuple[ToolCallRequest, ...]] = None
    finish_reason: FinishReason
    usage: Usage

    @property
    def text(self) -> str:
        """All its text parts, joined."""
        return _text_of(self.content)


class ResolvedModel(WireModel):
    """The model a role call got: the slot it asked for and what stands behind it."""

    slot_id: Name
    provider: Name
    model_id: Name
    capabilities: tuple[Name, ...]
    context_tokens: PositiveCount
    params: JsonObject
