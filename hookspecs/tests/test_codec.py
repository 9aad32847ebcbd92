"""The strict codec: what is refused and why, what comes back unchanged, and what lenient reading may take away."""

from __future__ import annotations

import json
import math
import uuid
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import MAX_DEPTH, dumps, lenient_object, loads, loads_trusted
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.strict import MAX_INTEGER, fault

CASES = {
    row["id"]: row
    for row in map(json.loads, (Path(__file__).parents[2] / "tests/cases/json_borders.jsonl").read_bytes().splitlines())
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | FLOAT
JSON = st.recursive(
    SCALAR | TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


REFUSED: list[tuple[str | bytes, str]] = [
    (CASES["BR-056"]["input"], "codec.not_finite"),
    ('{"x": NaN}', "codec.not_finite"),
    ('{"x": 1e999}', "codec.not_finite"),
    ('{"x": -Infinity}', "codec.not_finite"),
    ("[-1e999]", "codec.not_finite"),
    (CASES["BR-058"]["input"], "codec.surrogate"),
    (r'["\ud83d"]', "codec.surrogate"),
    (r'["\ude00"]', "codec.surrogate"),
    (r'{"\ud83d": 1}', "codec.surrogate"),
    ('["\ud83d"]', "codec.surrogate"),
    (b'["\xed\xa0\xbd"]', "codec.not_utf8"),
    (b'["\xff"]', "codec.not_utf8"),
    ('{"a":1}'.encode("utf-16"), "codec.bom"),
    (b"\xef\xbb\xbf{}", "codec.bom"),
    ("\ufeff{}", "codec.bom"),
    ('{"a":1,"a":2}', "codec.duplicate_key"),
    ('[{"b":{"a":1,"a":1}}]', "codec.duplicate_key"),
    (r'{"a":1,"\u0061":2}', "codec.duplicate_key"),
    ('{"v":1,"type":"event","type":"attempt.complete"}', "codec.duplicate_key"),
    ("[9007199254740992]", "codec.integer_range"),
    ("[-9007199254740992]", "codec.integer_range"),
    ("[18446744073709551616]", "codec.integer_range"),
    ("[" + "7" * 300 + "]", "codec.integer_range"),
    (nested(MAX_DEPTH + 1), "codec.too_deep"),
    (nested(200_000), "codec.too_deep"),
    ('{"a":' * 5000 + "1" + "}" * 5000, "codec.too_deep"),
    ('{"a":1} {"b":2}', "codec.syntax"),
    ('{"a":1}\x00', "codec.syntax"),
    ('["a\nb"]', "codec.syntax"),
    ('{"a":1,}', "codec.syntax"),
    ("{'a':1}", "codec.syntax"),
    ("[01]", "codec.syntax"),
    ("nul", "codec.syntax"),
    ("", "codec.syntax"),
    ("this is not json", "codec.syntax"),
]


@pytest.mark.inv("I-8")
@pytest.mark.parametrize(("document", "code"), REFUSED, ids=lambda value: repr(value)[:40])
def test_a_document_that_is_not_strict_json_is_refused_with_its_reason(document: str | bytes, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        loads(document)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (r'["ok \ud83c\udf78 nul \u0000 rtl \u202e"]', ["ok 🍸 nul \x00 rtl \u202e"]),
        ("[9007199254740991,-9007199254740991]", [MAX_INTEGER, -MAX_INTEGER]),
        (' {"a" : [ 1.50 , 1e2 , true , null ] } \r\n', {"a": [1.5, 100.0, True, None]}),
        (nested(2), [[]]),
        (b'"\xe2\x80\xa8"', "\u2028"),
    ],
)
def test_strict_json_is_read_as_it_is(document: str | bytes, value: Any) -> None:
    assert loads(document) == value


def test_the_limits_are_exact() -> None:
    assert loads(nested(MAX_DEPTH)) is not None
    assert loads(b"[123]", max_bytes=5) == [123]
    assert loads("[[1]]", max_depth=2) == [[1]]
    for document, limit in ((b"[1234]", {"max_bytes": 5}), ('"éé"', {"max_bytes": 5}), ("[[[]]]", {"max_depth": 2})):
        with pytest.raises(CodecError):
            loads(document, **limit)


def test_an_error_says_where() -> None:
    with pytest.raises(CodecError) as caught:
        loads('["é", 1e999]')
    assert caught.value.where == "offset 6"
    with pytest.raises(CodecError) as caught:
        dumps({"a/b": [1, {"c": math.nan}]})
    assert caught.value.where == "/a~1b/1/c"


class Colour(Enum):
    RED = "red"


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.inv("I-8")
@pytest.mark.parametrize(
    ("value", "code"),
    [
        (math.nan, "codec.not_finite"),
        ([None, {"x": -math.inf}], "codec.not_finite"),
        (2**53, "codec.integer_range"),
        (-(2**64), "codec.integer_range"),
        ("\ud83d", "codec.surrogate"),
        ({"\ud83d": 1}, "codec.surrogate"),
        ({1: 2}, "codec.key"),
        ({None: 2}, "codec.key"),
        ({"a": {1, 2}}, "codec.type"),
        (datetime(2026, 1, 1, tzinfo=UTC), "codec.type"),
        (b"bytes", "codec.type"),
        (CYCLE, "codec.too_deep"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_value_that_is_not_strict_json_is_not_written(value: Any, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        dumps(value)
    assert caught.value.code == code


@pytest.mark.inv("I-8")
@given(JSON)
def test_what_is_written_is_read_back_exactly(value: Any) -> None:
    data = dumps(value)
    assert repr(loads(data, max_depth=200)) == repr(loads_trusted(data)) == repr(value)
    assert dumps(loads(data, max_depth=200)) == data == dumps(freeze(value))


@given(JSON)
def test_both_ways_of_reading_agree(value: Any) -> None:
    """The quick way sees bytes just as they would be written; spaces send the same document the slow way."""
    spaced = json.dumps(value, indent=1)
    assert repr(loads(spaced, max_depth=200)) == repr(loads(dumps(value), max_depth=200))


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_nothing_but_the_typed_error_comes_out_of_garbage(document: bytes | str) -> None:
    try:
        value = loads(document)
    except CodecError:
        return
    assert fault(value) is None
    assert loads(dumps(value)) == value


@pytest.mark.parametrize("value", [uuid.UUID(int=1), Colour.RED])
def test_the_walk_knows_what_orjson_would_turn_into_text(value: Any) -> None:
    found = fault([value])
    assert found is not None
    assert (found.code, found.pointer) == ("codec.type", "/0")


def test_stored_bytes_that_are_no_json_are_a_typed_error() -> None:
    with pytest.raises(CodecError):
        loads_trusted(b'{"a":')


def test_a_wide_document_with_a_repeated_key_is_refused_in_linear_time() -> None:
    wide = orjson.dumps({str(number): number for number in range(50_000)})
    with pytest.raises(CodecError) as caught:
        loads(wide[:-1] + b',"49999":0}')
    assert caught.value.code == "codec.duplicate_key"


OK = {"verdict": "ok"}


@pytest.mark.parametrize(
    ("answer", "notes"),
    [
        ('{"verdict":"ok"}', ()),
        (' \r\n{"verdict":"ok"}\n', ()),
        ('```JSON\r\n{"verdict":"ok"}\r\n```\n', ("fence",)),
        ('~~~\n{"verdict":"ok"}\n~~~', ("fence",)),
        ('````json\n{"verdict":"ok"}\n````', ("fence",)),
        (CASES["BR-053"]["input"], ("think",)),
        ('<think>\n{"draft":true}\n</think>\n\n```json\n{"verdict":"ok"}\n```', ("think", "fence")),
    ],
)
def test_one_block_around_the_whole_answer_is_taken_away_and_told(answer: str, notes: tuple[str, ...]) -> None:
    assert lenient_object(answer) == (OK, notes)


@pytest.mark.parametrize(
    "answer",
    [
        CASES["BR-051"]["input"],  # raw line feeds in a string: one repair request, never a guess
        '```json\n{"verdict":"ok"}',
        'Here it is:\n```json\n{"verdict":"ok"}\n```',
        '```json\n{"verdict":"ok"}\n```\nHope that helps!',
        '```json\n{"a":1}\n```\n```json\n{"verdict":"ok"}\n```',
        '```json\n{"verdict":"ok"}\n~~~',
        '```yaml\n{"verdict":"ok"}\n```',
        '<think>maybe {"verdict":"no"}',
        '<think>maybe {"verdict":"no"}</think>',
        '{"verdict":"no"}</think>{"verdict":"ok"}',
        '<think>a</think>{"verdict":"no"}</think>{"verdict":"ok"}',
        '<think>a</think><think>{"verdict":"no"}</think>{"verdict":"ok"}',
        '{"verdict":"no"}{"verdict":"ok"}',
        '{"verdict":"no","verdict":"ok"}',
        "[1]",
        '"```"',
        "",
    ],
)
def test_an_answer_that_would_need_a_guess_is_refused(answer: str) -> None:
    with pytest.raises(CodecError):
        lenient_object(answer)


@pytest.mark.parametrize(
    "value",
    [
        {"s": "<think>x</think>"},
        {"s": "```json\n{}\n```"},
        {"s": '</think>{"verdict":"no"}'},
        {"<think>": "a\nb"},
    ],
)
@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "<think>hm</think>{}"])
def test_marks_inside_legal_strings_stay(value: Any, frame: str) -> None:
    assert lenient_object(frame.replace("{}", json.dumps(value)))[0] == value
