"""A model's final answer against the output contract of its step: text goes in, a value and what is wrong come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.step_output import finding, schema_findings
from harness_hookspecs.workflow import StepOutput

from .schema_line import schema_line

__all__ = ["Answer", "asked_for", "read_answer"]


class Answer(NamedTuple):
    """What was made of a text: the value, what was taken away around it, and the findings when it is not valid."""

    value: Any
    stripped: tuple[str, ...] = ()
    findings: tuple[dict[str, str], ...] = ()


def asked_for(output: StepOutput, schema: Any) -> str | None:
    """The sentence that tells the model the shape of its answer; None for free text."""
    if output.mode == "choice":
        return f"Answer with one of these and nothing else: {', '.join(output.values or ())}"
    if output.mode == "text":
        return None
    thing = {"object": "object", "array": "array"}.get(output.mode, "value")
    shape = f": {schema_line(schema)}" if isinstance(schema, Mapping) else ""
    return f"Answer with one JSON {thing} and nothing else{shape}"


def read_answer(text: str, output: StepOutput, schema: Any) -> Answer:
    """Read an answer by the output's mode and validate it; nothing is guessed or mended."""
    if not text.strip():
        return Answer(None, findings=(finding("output.empty", "", "The answer is empty"),))
    if output.mode == "choice":
        return _choice(text, output.values or ())
    try:
        value, stripped = _parsed(text, output.mode)
    except CodecError as error:
        return Answer(None, findings=(finding(error.code, "", error.message),))
    return Answer(value, stripped, tuple(schema_findings(value, schema)))


def _parsed(text: str, mode: str) -> tuple[Any, tuple[str, ...]]:
    if mode == "text":
        return text.strip(), ()
    if mode == "object":
        return codec.lenient_object(text)
    return codec.loads(text.strip()), ()


def _choice(text: str, values: tuple[str, ...]) -> Answer:
    """One of the values, whatever its case, quotes and final full stop; anything more is no choice."""
    said = text.strip().strip("\"'`").removesuffix(".").strip().casefold()
    found = [value for value in values if value.casefold() == said]
    exact = [value for value in values if value == text.strip()]
    if len(exact or found) == 1:
        return Answer((exact or found)[0])
    return Answer(None, findings=(finding("output.choice", "", f"Not exactly one of {', '.join(values)}"),))
