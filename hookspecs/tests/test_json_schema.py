"""JSON Schema: both libraries agree, nothing is fetched, nothing hangs, and what is told is short and in place."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness_hookspecs.errors import CodecError, PluginError
from harness_hookspecs.kit import json_schema
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.json_schema import SchemaFault, best_fault, compiled_schema, faults
from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

CALL: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "maxLength": 9},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def told(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Keyword and pointer of each fault."""
    return [(fault.keyword, fault.pointer) for fault in faults(compiled_schema(schema), value)]


# ------------------------------------------------------------------------------------------------ a second opinion

NAMES = st.sampled_from(["a", "b", "ab", "~x/y", "é"])
LEAVES = st.sampled_from([None, True, False, 0, 1, 2, -1, 2**53 - 1, 0.0, 1.0, 1.5, 1e300, "", "a", "ab", "😀", "é"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
COUNTS = st.integers(0, 3)
PLAIN = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "multipleOf": st.sampled_from([1, 2, 0.5, 3]),
    "pattern": st.sampled_from(["a", "^a", "b$", "^.$", "a|b", "(?=a)b?"]),
    "format": st.sampled_from(["email", "date", "unheard-of"]),
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), min_size=1, max_size=2),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"), COUNTS),
    **dict.fromkeys(("minItems", "maxItems", "minProperties", "maxProperties"), COUNTS),
    **dict.fromkeys(("minContains", "maxContains"), COUNTS),
    "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#named"]),
    "$dynamicRef": st.just("#named"),
}
ONE = (
    "additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(NAMES, inner, min_size=1, max_size=2)
    lists = st.lists(inner, min_size=1, max_size=2)
    deep = {
        **dict.fromkeys(ONE, inner),
        **dict.fromkeys(("properties", "dependentSchemas"), named),
        **dict.fromkeys(("prefixItems", "anyOf", "oneOf", "allOf"), lists),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b", "."]), inner, min_size=1, max_size=2),
    }
    return st.lists(st.sampled_from(sorted(deep)), min_size=1, max_size=3).flatmap(
        lambda keys: st.fixed_dictionaries({key: deep[key] for key in keys})
    )


FLAT = st.booleans() | st.lists(st.sampled_from(sorted(PLAIN)), min_size=1, max_size=2).flatmap(
    lambda keys: st.fixed_dictionaries({key: PLAIN[key] for key in keys})
)
SCHEMAS = st.recursive(FLAT, _schemas, max_leaves=6)
TOLD_ELSEWHERE = ("false", "unevaluated", "Contains")
"""Keywords that the libraries judge alike but tell in other places or numbers."""


@given(SCHEMAS, st.tuples(FLAT, FLAT), st.lists(VALUES, min_size=1, max_size=4))
def test_another_library_says_the_same(schema: Any, more: tuple[Any, Any], values: list[Any]) -> None:
    defs = {"x": more[0], "y": more[1], "z": {"$dynamicAnchor": "named", "type": ["string", "object"]}}
    schema = {**(schema if isinstance(schema, dict) else {"allOf": [schema]}), "$defs": defs}
    try:
        compiled = compiled_schema(schema)
    except PluginError as error:
        assume(error.code != "plugin.schema_too_complex")  # x is y, and y is x
        raise
    for value in values:
        try:
            expected = list(Draft202012Validator(schema).iter_errors(value))
        except RecursionError:
            assume(False)
        found = faults(compiled, freeze(value), at_most=1_000)
        assert bool(found) == bool(expected)
        if not any(word in json.dumps(schema) for word in TOLD_ELSEWHERE):
            places = sorted((error.validator, [*map(str, error.absolute_path)]) for error in expected)
            assert sorted((fault.keyword, [*map(str, fault.path)]) for fault in found) == places


TREE = {
    "$id": "https://example.org/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT_TREE = {
    "$id": "https://example.org/strict-tree",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {"tree": TREE},
}
DIGITS = 10**40
JUDGED: dict[str, tuple[Any, Any, bool]] = {
    "an integer beyond 64 bits is one": ({"type": "integer"}, DIGITS, True),
    "an integer beyond 64 bits has a size": ({"maximum": 5}, DIGITS, False),
    "an integer beyond 64 bits is exact": ({"multipleOf": 3}, DIGITS + 2, True),
    "a whole float is an integer": ({"type": "integer"}, 1.0, True),
    "a large float is itself": ({"enum": [1e300, 1e23]}, 1e23, True),
    "a float is the integer": ({"const": 1}, 1.0, True),
    "true is not one": ({"const": 1}, True, False),
    "one is not true": ({"enum": [True]}, 1, False),
    "true is no integer": ({"type": "integer"}, True, False),
    "one and true are unlike": ({"uniqueItems": True}, [1, True, 0, False], True),
    "one and one are alike": ({"uniqueItems": True}, [1, 1.0], False),
    "a length is counted in code points": ({"maxLength": 1}, "😀", True),
    "a mark is a code point": ({"maxLength": 1}, "e\u0301", False),
    "a format is not asserted": ({"format": "email"}, "nobody", True),
    "a format nobody knows is none": ({"format": "unheard-of"}, "x", True),
    "content is not asserted": ({"contentMediaType": "application/json"}, "{", True),
    "the first items": ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], True),
    "an item too many": ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], False),
    "evaluated elsewhere": (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}, True,
    ),
    "evaluated nowhere": (
        {"anyOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1, "b": 1}, False,
    ),
    "a tree may have more": (TREE, {"children": [{"daat": 1}]}, True),
    "a strict tree is strict below": (STRICT_TREE, {"children": [{"daat": 1}]}, False),
    "a strict tree": (STRICT_TREE, {"children": [{"data": 1}]}, True),
    "a schema that is itself": ({"$ref": "#"}, 1, True),
    "no alternative": (False, 1, False),
}  # fmt: skip


@pytest.mark.parametrize("what", JUDGED)
def test_a_value_is_judged_by_the_standard(what: str) -> None:
    schema, value, is_valid = JUDGED[what]
    compiled = compiled_schema(schema)
    assert (faults(compiled, value) == []) is (best_fault(compiled, value) is None) is is_valid


def test_what_is_no_number_fits_no_schema_of_numbers() -> None:
    assert told({"type": "number"}, float("nan")) == told({"type": "number"}, float("inf")) == [("type", "")]


# ------------------------------------------------------------------------------------------------ schemas

BROKEN: dict[str, tuple[Any, str, str | None]] = {
    "a type that is none": (
        {"properties": {"a/b": {"type": "nope"}}}, "plugin.schema_invalid", "/properties/a~1b/type",
    ),
    "a list for a schema": ({"items": [{"type": "string"}]}, "plugin.schema_invalid", "/items"),
    "an expression that is none": ({"pattern": "("}, "plugin.schema_invalid", "/pattern"),
    "an expression without end": (
        {"pattern": "((((((a{1,99}){1,99}){1,99}){1,99}){1,99}){1,99})"}, "plugin.schema_invalid", "/pattern",
    ),
    "an integer that no event could keep": ({"maximum": 2**53}, "plugin.schema_invalid", "/maximum"),
    "text": ("x", "plugin.schema_invalid", None),
    "a number that is none": ({"minimum": float("nan")}, "plugin.schema_invalid", "/minimum"),
    "a key that is none": ({"properties": {1: True}}, "plugin.schema_invalid", "/properties"),
    "nothing there": ({"$ref": "#/$defs/gone"}, "plugin.schema_unresolvable", "/$ref"),
    "no anchor": ({"$dynamicRef": "#gone"}, "plugin.schema_unresolvable", "/$dynamicRef"),
    "a file beside it": ({"$ref": "other.json"}, "plugin.schema_unresolvable", "/$ref"),
    "nothing there, further down": (
        {"properties": {"a/b": {"anyOf": [True, {"$ref": "#/$defs/gone"}]}}},
        "plugin.schema_unresolvable", "/properties/a~1b/anyOf/1/$ref",
    ),
    "another draft": ({"$ref": "http://json-schema.org/draft-07/schema"}, "plugin.schema_unresolvable", "/$ref"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_schema_is_refused_and_located(what: str) -> None:
    schema, code, where = BROKEN[what]
    with pytest.raises(PluginError) as caught:
        compiled_schema(schema)
    assert (caught.value.code, caught.value.where) == (code, where)
    assert 0 < len(caught.value.message) <= 300


def test_a_schema_that_events_could_not_keep_is_told_as_that() -> None:
    with pytest.raises(PluginError, match=r"strict JSON, as events keep it.* The integer is beyond 2"):
        compiled_schema({"maximum": 2**53})


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(PluginError) as caught:
        compiled_schema(deep)
    assert caught.value.code == "plugin.schema_invalid"


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """An address that gives a schema to everybody, and what was asked of it."""
    asked: list[str] = []

    class Serves(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Serves) as serves:
        thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serves.server_port}", asked
        serves.shutdown()
        thread.join()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$id", "$schema"])
def test_nothing_is_fetched_from_the_net(server: tuple[str, list[str]], keyword: str) -> None:
    address, asked = server
    with pytest.raises(PluginError) as caught:
        compiled_schema({keyword: f"{address}/s.json", "properties": {"a": {"$ref": "other.json"}}})
    assert (caught.value.code, asked) == ("plugin.schema_unresolvable", [])


def test_nothing_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "string"}')
    with pytest.raises(PluginError) as caught:
        compiled_schema({"$ref": (tmp_path / "s.json").as_uri()})
    assert caught.value.code == "plugin.schema_unresolvable"


# ------------------------------------------------------------------------------------------------ patterns

WORST = (r"^(a|aa)+\1$", r"(?=(.*)+b)\1c", r"(?=a)(a+)+$", r"(?!.*(.).*\1)")


@pytest.mark.parametrize("pattern", WORST)
def test_a_pattern_gives_up_against_the_value_before_it_takes_long(pattern: str) -> None:
    text = "a" * 9_000 + "b"
    began = time.process_time()
    for schema, value in (
        ({"pattern": pattern}, text),
        ({"not": {"pattern": pattern}}, text),  # nor does it fit because nobody knows
        ({"patternProperties": {pattern: {"type": "null"}}}, {text: 1}),
    ):
        assert [keyword for keyword, _ in told(schema, value)] == ["pattern"]
    assert time.process_time() - began < 3


# ------------------------------------------------------------------------------------------------ what is told


@pytest.mark.parametrize("value", [{"path": "a", "lines": [1, 2]}, {"path": 1, "lines": ["a", 2], "x": []}])
def test_a_frozen_value_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, value: dict[str, Any]) -> None:
    monkeypatch.delattr(json_schema, "freeze")
    frozen = freeze(value)
    compiled = compiled_schema(freeze(CALL))
    assert faults(compiled, frozen) == faults(compiled, value)


def test_a_subclass_of_a_plain_type_is_the_plain_one() -> None:
    name = type("Name", (str,), {})
    assert told(CALL, {"path": name("a")}) == []
    assert told(CALL, {"path": name("a" * 10)}) == [("maxLength", "/path")]
    best = best_fault(compiled_schema(CALL), {"path": name("a" * 10)})
    assert best is not None
    assert best.pointer == "/path"


@pytest.mark.parametrize("value", ["\ud800", {1: 2}, {"path": {1, 2}}, b"a"], ids=repr)
def test_what_is_no_json_is_an_error_of_the_codec(value: Any) -> None:
    with pytest.raises(CodecError):
        faults(compiled_schema({**CALL, "type": ["object", "string"]}), value)


def nested(levels: int, inmost: Any) -> Any:
    for _ in range(levels):
        inmost = [inmost]
    return inmost


@pytest.mark.parametrize("ask", [faults, best_fault])
@pytest.mark.parametrize("inmost", [1, 2**70], ids=["", "beside what only the library takes"])
def test_a_value_that_is_nested_too_deeply_is_refused_and_ends_nothing_else(ask: Any, inmost: Any) -> None:
    compiled = compiled_schema({"items": {"$ref": "#"}, "maximum": 0})
    assert ask(compiled, nested(MAX_WRITE_DEPTH, inmost))
    for levels in (MAX_WRITE_DEPTH + 1, 200_000):
        with pytest.raises(CodecError) as caught:
            ask(compiled, nested(levels, inmost))
        assert caught.value.code == "codec.too_deep"


def test_faults_are_told_by_place_and_at_most_as_many_as_asked_for() -> None:
    value = {"path": 7, "lines": ["x"] * 30, "~1/": 1}
    assert told(CALL, value)[:3] == [("additionalProperties", ""), ("type", "/lines/0"), ("type", "/lines/1")]
    assert len(told(CALL, value)) == 20
    assert len(faults(compiled_schema(CALL), value, at_most=3)) == 3


NAMED = {
    "a property": ({"properties": {"~1/": False}}, {"~1/": 1}, ("falseSchema", "/~01~1")),
    "a property like a keyword": (
        {"properties": {"additionalProperties": False}}, {"additionalProperties": 1},
        ("falseSchema", "/additionalProperties"),
    ),
    "a reference to one that is called like a keyword": (
        {"$defs": {"additionalProperties": False}, "properties": {"a": {"$ref": "#/$defs/additionalProperties"}}},
        {"a": 1}, ("falseSchema", "/a"),
    ),
    "below a property called like a keyword": (
        {"properties": {"properties": {"additionalProperties": False}}}, {"properties": {"z": 1}},
        ("additionalProperties", "/properties"),
    ),
    "by a reference to one that is called like a keyword": (
        {"$defs": {"properties": {"additionalProperties": False}}, "$ref": "#/$defs/properties"}, {"z": 1},
        ("additionalProperties", ""),
    ),
    "one of a list": ({"propertyNames": {"allOf": [False]}}, {"a": 1}, ("falseSchema", "")),
    "a name": ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, ("maxLength", "")),
    "what another asks for": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ("dependentRequired", "")),
    "by reference": ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, 1, ("type", "")),
    "none of many": ({"oneOf": [{"type": "null"}, {"type": "string"}]}, 1, ("oneOf", "")),
}  # fmt: skip


@pytest.mark.parametrize("what", NAMED)
def test_a_fault_is_named_after_the_keyword_that_finds_it(what: str) -> None:
    schema, value, expected = NAMED[what]
    assert told(schema, value) == [expected]


SAID = {
    "an option": ({"enum": ["a", "b", "c", "d"]}, "x", '"x" is not one of ["a","b","c","d"]'),
    "a key": ({"additionalProperties": False}, {"a": 1}, "Additional properties are not allowed ('a' was unexpected)"),
    "keys": (
        {"properties": {}, "additionalProperties": False}, {"a": 1, "b": 2},
        "Additional properties are not allowed ('a', 'b' were unexpected)",
    ),
    "keys below": (
        {"items": {"additionalProperties": False}}, [{"a": 1, "b": 2}],
        "Additional properties are not allowed ('a', 'b' were unexpected)",
    ),
    "a missing key": ({"required": ["a"]}, {}, '"a" is a required property'),
    "how many": (
        {"contains": {"const": 1}, "maxContains": 1}, [1, 1],
        "[1,1] does not hold as many fitting items as maxContains asks for",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_a_message_says_what_to_do(what: str) -> None:
    schema, value, message = SAID[what]
    assert [fault.message for fault in faults(compiled_schema(schema), value)] == [message]


@pytest.mark.parametrize("longest", [40, 41, 300])
def test_a_long_message_keeps_both_ends(longest: int) -> None:
    [fault] = faults(compiled_schema({"maxLength": 3}), "x" * 100_000, longest=longest)
    assert len(fault.message) == longest
    assert fault.message.startswith('"xxx')
    assert fault.message.endswith("than 3 characters")


EITHER = {
    "anyOf": [
        {"properties": {"tool": {"const": "one"}}, "required": ["tool"]},
        {"properties": {"tool": {"const": "two"}, "arguments": {"properties": {"p": {"const": "x"}}}}},
        {"required": ["final"]},
    ]
}


def test_the_best_fault_is_the_outermost_and_of_alternatives_the_nearest() -> None:
    expected = SchemaFault("const", ("arguments", "p"), '"x" was expected')
    assert best_fault(compiled_schema(EITHER), {"tool": "two", "arguments": {"p": "y"}}) == expected
    best = best_fault(compiled_schema(CALL), {"lines": ["x"]})
    assert best is not None
    assert (best.keyword, best.path) == ("required", ())
    undecided = best_fault(compiled_schema({"anyOf": [{"type": "string"}, {"type": "null"}]}), 1)
    assert undecided is not None
    assert undecided.keyword == "anyOf"


def test_many_threads_share_a_compiled_schema() -> None:
    compiled = compiled_schema({"type": "object", "patternProperties": {"^x(?!y)": {"type": "integer"}}})
    wrong: list[Any] = []

    def judge(number: int) -> None:
        for _ in range(300):
            found = [fault.path for fault in faults(compiled, {f"x{number}": "no", "xy": "yes", "x": 1})]
            if found != [(f"x{number}",)] or faults(compiled, freeze({f"x{number}": 1})):
                wrong.append(found)

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
