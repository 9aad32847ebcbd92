"""The text of a script goes in, checked replies come out, and for a request the one reply that answers it."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from harness_hookspecs.errors import ConfigError, ProviderError, ValidationFailed
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import FinishReason, Part, TextPart, ToolCallPart, ToolResultPart, Usage
from harness_hookspecs.provider import ModelRequest
from harness_hookspecs.value import Count, Json, Maybe, Name, PositiveCount, Text, Value, thaw

from .strict_yaml import load

__all__ = ["Call", "Failure", "Reply", "Script", "When", "choose", "parse"]


class When(Value):
    """Conditions on a request, all of which must hold; an empty one always does."""

    persona: Maybe[Name] = None
    stage: Maybe[Name] = None
    turn: Maybe[PositiveCount] = None
    attempt: Maybe[PositiveCount] = None
    contains: Maybe[Text] = None


class Call(Value):
    """A tool call the model asks for; ``args`` may be anything, so that bad arguments can be tried too."""

    name: Name
    args: Json = Field(default_factory=dict)
    id: Maybe[Name] = None


class Failure(Value):
    """The error that the call ends with, after so many chunks."""

    code: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$")]
    after_chunks: Count = 0


class Reply(Value):
    """One answer: a text, a JSON value, tool calls (with or without a text) or an error (with or without a text)."""

    when: Maybe[When] = None
    text: Maybe[Text] = None
    json_: Json = Field(None, alias="json")
    tool_calls: Maybe[Annotated[tuple[Call, ...], Field(min_length=1)]] = None
    error: Maybe[Failure] = None
    usage: Maybe[Usage] = None
    delay_ms: Count = 0
    chunks: Maybe[PositiveCount | Annotated[tuple[Text, ...], Field(min_length=1)]] = None
    finish: Maybe[FinishReason] = None

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        wanted = {"tool_calls", "error"} & self.model_fields_set
        given = {"text", "json_"} & self.model_fields_set
        if isinstance(self.chunks, tuple) and not given:
            given = {"text"}
        if len(wanted) > 1 or len(given) > 1 or not wanted | given or (wanted and "json_" in given):
            raise PydanticCustomError(
                "script.answer",
                "A reply has one of text, json, tool_calls and error; text may stand beside the last two",
            )
        if isinstance(self.chunks, tuple) and given and self.answer_text not in {"", "".join(self.chunks)}:
            raise PydanticCustomError("script.chunks", "The chunks, joined, are not the text")
        return self

    @property
    def answer_text(self) -> str:
        """What it says in words; a JSON value is written compactly."""
        if "json_" in self.model_fields_set:
            return codec.dumps(thaw(self.json_)).decode()
        if self.text is None and isinstance(self.chunks, tuple):
            return "".join(self.chunks)
        return self.text or ""


class Script(Value):
    """A whole script."""

    schema_: Literal["harness.script/1"] = Field(alias="schema")
    replies: tuple[Reply, ...]


def parse(text: str, file: str) -> Script:
    """Read a script.

    Raises:
        ConfigError: It is not one; the message names the reply by its index, ``where`` is ``FILE:LINE``.
    """
    value, lines = load(text, file)
    try:
        return Script.from_wire(value)
    except ValidationFailed as error:
        finding = error.facts["findings"][0]
        place = _place(finding["path"])
        raise ConfigError(
            f"{place + ': ' if place else ''}{finding['message']}.",
            where=f"{file}:{_line(finding['path'], lines)}",
            findings=error.facts["findings"],
        ) from error


def _place(pointer: str) -> str:
    return re.sub(r"/(\d+)(?=/|$)", r"[\1]", pointer).replace("/", ".").lstrip(".").replace("~1", "/")


def _line(pointer: str, lines: dict[str, int]) -> int:
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer, 1)


def choose(script: Script, request: ModelRequest, file: str) -> Reply:
    """Find the reply that answers a request; it depends on nothing but the two.

    The first reply whose ``when`` holds; if none does, the n-th of those without ``when``, where n is the turn.

    Raises:
        ProviderError: ``script.exhausted``: there is none.
    """
    for reply in script.replies:
        if reply.when is not None and _holds(reply.when, request):
            return reply
    turn = request.routing.turn
    in_order = [reply for reply in script.replies if reply.when is None]
    if 1 <= turn <= len(in_order):
        return in_order[turn - 1]
    routing = request.routing
    raise ProviderError(
        f"The script has no reply for persona {routing.persona!r}, stage {routing.stage!r}, attempt {routing.attempt}, "
        f"turn {routing.turn}.",
        code="script.exhausted",
        where=file,
        hint="Add a reply, or one with a fitting when.",
        **routing._asdict(),
    )


def _holds(when: When, request: ModelRequest) -> bool:
    routing = request.routing
    facts = {"persona": routing.persona, "stage": routing.stage, "turn": routing.turn, "attempt": routing.attempt}
    if any(getattr(when, name) not in {None, fact} for name, fact in facts.items()):
        return False
    return when.contains is None or any(when.contains in text for text in _texts(request))


def _texts(request: ModelRequest) -> Iterator[str]:
    for message in request.messages:
        yield from map(_text, message.content)


def _text(part: Part) -> str:
    """A part as text to search in; what is no text is searched as JSON."""
    if isinstance(part, ToolCallPart):
        return _written(part.args)
    if isinstance(part, ToolResultPart):
        return part.error.message if part.error is not None else _written(part.result)
    return part.text if isinstance(part, TextPart) else getattr(part, "text", "")


def _written(value: Any) -> str:
    return value if isinstance(value, str) else codec.dumps(thaw(value)).decode()
