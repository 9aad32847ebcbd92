"""What is known of values: a data schema goes in, its kinds, its fields and its elements come out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_executor_workflow.compiling.shapes import (
    ANY,
    KINDS,
    UNTYPED,
    Found,
    either,
    element,
    field,
    kinds,
    missing,
)

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
OPEN = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True}
CLOSED = {"type": "object", "required": ["a"], "properties": {"a": TEXT}}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (True, KINDS),
        (False, set()),
        ({}, KINDS),
        (UNTYPED, KINDS),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": "number"}, {"integer", "number"}),
        ({"const": 1.0}, {"integer"}),
        ({"enum": [1.5, "a", None, True, [], {}]}, {"number", "string", "null", "boolean", "array", "object"}),
        ({"type": "string", "enum": [1, "a"]}, {"string"}),
        ({"anyOf": [TEXT, WHOLE]}, {"string", "integer"}),
        ({"type": "string", "anyOf": [TEXT, WHOLE]}, {"string"}),
    ],
)
def test_the_kinds_of_a_shape(shape: Any, expected: Any) -> None:
    assert kinds(shape) == expected


@pytest.mark.parametrize(
    ("shape", "name", "expected"),
    [
        (ANY, "x", Found(ANY, True)),
        (CLOSED, "a", Found(TEXT, True)),
        (CLOSED, "b", None),
        (OPEN, "a", Found(TEXT, False)),
        (OPEN, "b", Found(ANY, True)),
        ({"type": "object"}, "x", Found(ANY, True)),
        ({"type": "object", "properties": {}}, "x", Found(ANY, True)),
        ({"type": "object", "additionalProperties": False}, "x", None),
        ({"type": "object", "additionalProperties": WHOLE}, "x", Found(WHOLE, False)),
        (TEXT, "x", None),
        ({"anyOf": [CLOSED, {"type": "null"}]}, "a", Found(TEXT, True)),
        ({"anyOf": [CLOSED, {"type": "object", "properties": {"a": WHOLE}}]}, "a",
         Found({"anyOf": [TEXT, WHOLE]}, False)),
        ({"anyOf": [CLOSED, CLOSED]}, "b", None),
    ],
)  # fmt: skip
def test_a_field_of_a_shape(shape: Any, name: str, expected: Any) -> None:
    assert field(shape, name) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(ANY, ANY), ({"type": "array"}, ANY), ({"type": "array", "items": TEXT}, TEXT), (TEXT, None),
     ({"anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}]}, TEXT)],
)  # fmt: skip
def test_the_elements_of_a_shape(shape: Any, expected: Any) -> None:
    assert element(shape) == expected


def test_one_of_several_shapes() -> None:
    assert either([TEXT, TEXT]) == TEXT
    assert either([TEXT, WHOLE]) == {"anyOf": [TEXT, WHOLE]}
    assert either([TEXT, ANY]) is ANY
    assert either([TEXT, UNTYPED]) == UNTYPED


def test_a_shape_in_words() -> None:
    assert missing({"type": ["null", "number"]}) == "null or number"
    assert missing(True) == "anything"
