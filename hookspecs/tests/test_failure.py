"""Exceptions as data: any of them becomes a bounded, strict, finite envelope."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_hookspecs.errors import HarnessError, ToolError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.failure import json_safe
from harness_hookspecs.messages import ErrorEnvelope


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


@pytest.mark.req("A-80")
def test_an_exception_that_holds_itself_becomes_a_finite_strict_envelope() -> None:
    error = ValueError("bad \ud83d")
    cyclic: dict[Any, Any] = {"error": error, "number": float("nan"), "big": 2**70, 3: {1, 2}}
    cyclic["again"] = cyclic
    error.__dict__.update(status=500, cyclic=cyclic, _private="x", itself=error)
    inner = OSError("disk")
    error.__cause__, inner.__cause__ = inner, error
    envelope = ErrorEnvelope.from_exception(raised(error))
    assert ErrorEnvelope.from_json_bytes(envelope.to_json_bytes()) == envelope
    assert (envelope.name, envelope.message) == ("ValueError", "bad \\ud83d")
    assert envelope.details is not None
    assert envelope.details["status"] == 500
    assert envelope.details["cyclic"]["again"] == "<cut: it holds itself>"
    assert "_private" not in envelope.details
    assert envelope.cause is not None
    assert (envelope.cause.name, envelope.cause.cause) == ("OSError", None)
    assert envelope.stack is not None
    assert "raise error" in envelope.stack


@pytest.mark.req("A-80")
def test_an_error_of_ours_keeps_its_code_and_its_facts() -> None:
    error = ToolError("It broke.", code="tool.timeout", hint="Wait longer.", where="a.py:3", seconds=5)
    envelope = ErrorEnvelope.from_exception(raised(error), with_stack=False)
    assert envelope.to_wire() == {
        "name": "ToolError",
        "message": "It broke.",
        "code": "tool.timeout",
        "details": {"seconds": 5, "hint": "Wait longer.", "where": "a.py:3"},
    }


def test_a_long_chain_and_long_texts_are_cut_and_say_so() -> None:
    error: BaseException = ValueError("deepest")
    for number in range(50):
        outer = ValueError(f"{number} " + "x" * 100_000)
        outer.__cause__ = error
        error = outer
    envelope = ErrorEnvelope.from_exception(error)
    assert len(envelope.to_json_bytes()) < 40_000
    assert "characters cut" in envelope.message
    assert b"Deeper causes were cut" in envelope.to_json_bytes()


@pytest.mark.parametrize(
    "error", [HostileError(), KeyboardInterrupt(), HarnessError(), ExceptionGroup("g", [ValueError()])]
)
def test_any_exception_becomes_an_envelope(error: BaseException) -> None:
    envelope = ErrorEnvelope.from_exception(raised(error))
    assert envelope.name == type(error).__name__


def test_details_are_bounded_however_wide_and_deep_they_are() -> None:
    wide: dict[str, Any] = {str(number): [["x" * 9_000] * 50] * 50 for number in range(1_000)}
    deep: Any = json.loads("[" * 500 + "]" * 500)
    values: list[Any] = [wide, deep, [{}] * 100_000, {**dict.fromkeys(map(str, range(9_999)), wide), "self": wide}]
    for value in values:
        assert len(codec.dumps(json_safe(value))) < 60_000
        assert b"<cut" in codec.dumps(json_safe(value))
