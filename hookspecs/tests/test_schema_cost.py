"""What a schema can ask for is bounded before it is asked for: nothing ends the process, and nothing hangs."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit import json_schema
from harness_hookspecs.kit.json_schema import CompiledSchema, best_fault, compiled_schema, faults
from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

LINKS: Mapping[str, Callable[[str], Any]] = {
    "ref": lambda to: {"$ref": to},
    "allOf": lambda to: {"allOf": [{"$ref": to}]},
    "anyOf": lambda to: {"anyOf": [{"$ref": to}, False]},
    "oneOf": lambda to: {"oneOf": [{"$ref": to}, False]},
    "not": lambda to: {"not": {"not": {"$ref": to}}},
    "if": lambda to: {"if": {"$ref": to}, "then": True, "else": False},
    "unevaluated": lambda to: {"allOf": [{"$ref": to}], "unevaluatedProperties": {"type": "string"}},
    "twice": lambda to: {"anyOf": [{"$ref": to}, {"$ref": to}]},
    "one below": lambda to: {"not": {"properties": {"b": {"$ref": to}}}},
}
END = {"properties": {"a": {"$ref": "#/$defs/a0"}}, "type": ["object", "string"]}


def chain(kind: str, links: int, end: Any = END) -> dict[str, Any]:
    """So many subschemas, each of which leads to the next one."""
    defs = {f"a{at}": LINKS[kind](f"#/$defs/a{at + 1}") for at in range(links)}
    return {"$defs": {**defs, f"a{links}": end}, "$ref": "#/$defs/a0"}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def judge(schema: Any, depths: Callable[[CompiledSchema], list[int]]) -> None:
    """Print what is said of values of those depths, in a thread with the stack that threads have."""
    try:
        compiled = compiled_schema(schema)
    except PluginError as error:
        print(error.code)
        return
    for depth in depths(compiled):
        print([fault.keyword for fault in faults(compiled, nested(depth))][:1], flush=True)
        best_fault(compiled, nested(depth))


def just_allowed(compiled: CompiledSchema) -> list[int]:
    levels, chain = compiled.cost.levels, compiled.cost.chain
    return [levels, min(levels, max(1, 740 // chain))]


def judge_just_allowed() -> None:
    for kind in LINKS:
        for links in (1, 20, 60, 120):
            judge(chain(kind, links), just_allowed)


def said_by_child(run: str, *, seconds: int = 20) -> list[str]:
    """What a process says; it must end well, and soon."""
    run = f"from test_schema_cost import *\nin_bounds(lambda: {run}, {seconds})"
    child = subprocess.run(
        [sys.executable, "-c", run], cwd=Path(__file__).parent, check=False, capture_output=True, text=True, timeout=60
    )
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.split()


def in_bounds(run: Callable[[], None], seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


REFUSED = "plugin.schema_too_complex"
TAKES_MUCH: Mapping[str, tuple[Callable[[], Any], list[int], list[str]]] = {
    "links times levels": (lambda: chain("allOf", 160), [250], [REFUSED]),
    "fewer links, more levels": (lambda: chain("allOf", 100), [250], ["['tooComplex']"]),
    "more links, fewer levels": (lambda: chain("allOf", 700), [60], [REFUSED]),
    "links alone": (lambda: chain("allOf", 30_000), [0], [REFUSED]),
    "references below each other": (lambda: chain("one below", 60_000, {}), [0], [REFUSED]),
    "messages in each other": (lambda: chain("anyOf", 30), [250], ["['tooComplex']"]),
    "ways": (lambda: chain("twice", 20, {"type": "string"}), [0], [REFUSED]),
    "ways that grow with the value": (
        lambda: chain("twice", 1), [4, 14, 200], ["['anyOf']", "['tooComplex']", "['tooComplex']"],
    ),
}  # fmt: skip


WORDS = [f"{number:06}" for number in range(10_000)]
OF_VALUES: Mapping[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "a pattern that is long": (lambda: {"pattern": "[ab]*a[ab]{3000}c"}, lambda: "a" * 250_000, "['tooComplex']"),
    "a pattern that looks ahead": (lambda: {"pattern": "(?=[ab]*a[ab]{99}c)d"}, lambda: "ab" * 9_000, "['tooComplex']"),
    "patterns that look ahead": (
        lambda: {"allOf": [{"pattern": f"(?=a*{at})(a|aa)+$b"} for at in range(50)]}, lambda: "a" * 100_000,
        "['tooComplex']",
    ),
    "patterns of names": (
        lambda: {"patternProperties": {f"[a-z]+{at}$": True for at in range(5_000)}},
        lambda: {f"bcdefghijklmnop{at}": 1 for at in range(10_000)}, "['tooComplex']",
    ),
    "patterns that are large": (
        lambda: {"patternProperties": {f"\\p{{L}}{{15}}a{at}": True for at in range(900)}}, dict, REFUSED,
    ),
    "booleans": (lambda: {"items": {"anyOf": [False] * 90_000 + [True]}}, lambda: [1] * 90_000, REFUSED),
    "numbers": (
        lambda: {"items": {"enum": [at + 0.5 for at in range(30_000)]}}, lambda: [29_999.5] * 50_000, REFUSED,
    ),
    "lists": (
        lambda: {"items": {"enum": [[0] * 500 + [at] for at in range(2_000)]}}, lambda: [[0] * 500] * 3_000, REFUSED,
    ),
    "what it would name": (lambda: {"items": {"const": "x" * 900_000}}, lambda: [1] * 3_000, "['const']"),
    "words": (lambda: {"items": {"enum": WORDS}}, lambda: WORDS * 9, "[]"),
    "properties of those in place of others": (
        lambda: chain("ref", 200, {"properties": {word: {"$ref": "#"} for word in WORDS[:9_000]}}), dict, REFUSED,
    ),
    "properties of alternatives": (
        lambda: {"$defs": {"a": {"properties": {f"a{at}": {"$ref": f"#/$defs/b{at}"} for at in range(3_000)}},
                           **{f"b{at}": {"$ref": "#/$defs/a"} for at in range(3_000)}}}, dict, REFUSED,
    ),
    "anchors": (
        lambda: {"$defs": {
            **{f"a{at}": {"$id": f"a{at}", "$dynamicAnchor": "a"} for at in range(2_000)},
            **{f"b{at}": {"properties": {"a": {"$dynamicRef": "a1#a"}}} for at in range(2_000)},
        }}, dict, REFUSED,
    ),
}  # fmt: skip


def judge_value(what: str) -> None:
    schema, value, _ = OF_VALUES[what]
    try:
        print([fault.keyword for fault in faults(compiled_schema(schema()), value())], flush=True)
    except PluginError as error:
        print(error.code)


@pytest.mark.parametrize("what", OF_VALUES)
def test_neither_texts_nor_what_a_schema_lists_take_the_process_or_its_time_with_them(what: str) -> None:
    assert said_by_child(f"judge_value({what!r})", seconds=3) == [OF_VALUES[what][2]]


def judge_case(what: str) -> None:
    schema, depths, _ = TAKES_MUCH[what]
    judge(schema(), lambda _: depths)


@pytest.mark.parametrize("what", TAKES_MUCH)
def test_no_schema_and_no_value_take_the_process_or_its_time_with_them(what: str) -> None:
    assert said_by_child(f"judge_case({what!r})") == TAKES_MUCH[what][2]


def test_what_is_just_allowed_fits_on_the_stack_of_a_thread() -> None:
    assert len(said_by_child("judge_just_allowed()")) > 40


def test_a_schema_that_asks_for_too_much_is_refused_and_told_where() -> None:
    with pytest.raises(PluginError, match="more than 10,000 ways to look at one value") as caught:
        compiled_schema(chain("twice", 20, {"type": "string"}))
    assert (caught.value.code, caught.value.where) == (REFUSED, "/$defs/a9")
    with pytest.raises(PluginError, match="more than 256 subschemas in a row") as caught:
        compiled_schema(chain("ref", 300, {}))
    assert (caught.value.code, caught.value.where) == (REFUSED, "/$defs/a44")


# ------------------------------------------------------------------------------------------------ what is accepted

NODE: Mapping[str, Any] = {"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}, "type": "object"}
RECURSIVE: Mapping[str, Any] = {
    "a list": {"properties": {"next": {"$ref": "#"}}, "type": "object"},
    "a tree": {"properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}}, "type": "object"},
    "json": {
        "anyOf": [
            {"type": ["string"]},
            {"type": "array", "items": {"$ref": "#"}},
            {"type": "object", "additionalProperties": {"$ref": "#"}},
        ]
    },
    "a name, or any": {"properties": {"next": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}, "type": "object"},
    "a strict one": {
        "$id": "https://example.org/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
        "$defs": {"tree": {"$id": "tree", **NODE}},
    },
    "a condition": {
        "type": "object",
        "properties": {
            "and": {"type": "array", "items": {"$ref": "#"}},
            "next": {"$ref": "#"},
        },
        "oneOf": [{"required": ["and"]}, {"required": ["next"]}, {"maxProperties": 0}],
    },
}  # fmt: skip


@pytest.mark.parametrize("what", RECURSIVE)
def test_a_schema_that_is_recursive_takes_values_as_deep_as_there_are(what: str) -> None:
    value: Any = {}
    for _ in range(MAX_WRITE_DEPTH - 1):
        value = {"next": value}
    compiled = compiled_schema(RECURSIVE[what])
    assert faults(compiled, value) == []
    assert faults(compiled, {"next": {"next": 1}})[0].pointer == ("" if what == "json" else "/next/next")


def test_the_meta_schema_may_be_referred_to() -> None:
    compiled = compiled_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert faults(compiled, {"properties": {"a": {"type": "string"}}}) == []
    assert faults(compiled, {"properties": {"a": {"type": "nope"}}})[0].pointer == "/properties/a/type"


BACK = {"allOf": [{"$ref": "https://example.org/root"}]}
LEADS: Mapping[str, Any] = {
    "a pointer": {"$ref": "#/$defs/a", "$defs": {"a": BACK}},
    "an escaped pointer": {"$ref": "#/$defs/a%25~1~0", "$defs": {"a%/~": BACK}},
    "a list": {"$ref": "#/x/1", "x": [1, BACK]},
    "an anchor": {"$ref": "#here", "$defs": {"a": {"$anchor": "here", **BACK}}},
    "a dynamic anchor": {"$dynamicRef": "#here", "$defs": {"a": {"$dynamicAnchor": "here", **BACK}}},
    "a resource": {"$ref": "other", "$defs": {"a": {"$id": "other", **BACK}}},
    "an address": {"$ref": "https://example.org/other#", "$defs": {"a": {"$id": "/other", **BACK}}},
    "an anchor of a resource": {
        "$ref": "other#here", "$defs": {"a": {"$id": "other", "$defs": {"b": {"$anchor": "here", **BACK}}}},
    },
    "a pointer into a resource": {"$ref": "other#/x", "$defs": {"a": {"$id": "other", "x": BACK}}},
    "what was referred to": {"$ref": "#/x", "x": {"$ref": "#/y"}, "y": BACK},
    "a condition": {"if": {"not": BACK}},
    "a dependent schema": {"dependentSchemas": {"a": BACK}},
}  # fmt: skip


@pytest.mark.parametrize("how", LEADS)
def test_a_schema_that_comes_back_to_itself_with_the_same_value_is_refused(how: str) -> None:
    with pytest.raises(PluginError, match="leads back to itself") as caught:
        compiled_schema({"$id": "https://example.org/root", **LEADS[how]})
    assert caught.value.code == REFUSED


ONE = {"$id": "https://example.org/one", "anyOf": [{"$ref": "two"}, {"$ref": "two"}]}
OLD = "http://json-schema.org/draft-07/schema#"
DOUBTS: Mapping[str, tuple[Any, str, str]] = {
    "two of one $id": ({"b": ONE, "a": {"$id": "https://example.org/one"}}, "two subschemas of one name", "/$defs/b"),
    "two of one anchor": ({"b": {"$anchor": "a"}, "a": {"$anchor": "a"}}, "two subschemas of one name", "/$defs/b"),
    "one where it is only kept": ({"a": {"contentSchema": ONE}, "b": ONE}, "two subschemas of one name", "/$defs/a/"),
    "the standard's own": (
        {"a": {"$id": "https://json-schema.org/draft/2020-12/schema"}}, "two subschemas of one name", "/$defs/a",
    ),
    "large and small letters": ({"a": {"$id": "https://EXAMPLE.org/one"}, "b": ONE}, "more than one way", "/$defs/a"),
    "an escape": ({"a": {"$id": "%6fne"}, "b": ONE}, "more than one way", "/$defs/a"),
    "dots": ({"a": {"$id": "https://example.org/a/../one"}, "b": ONE}, "more than one way", "/$defs/a"),
    "another draft": ({"a": {"$schema": OLD, "$id": "#one"}, "b": {"$anchor": "one"}}, "another draft", "/$defs/a"),
}  # fmt: skip


@pytest.mark.parametrize("what", DOUBTS)
def test_where_names_may_lead_elsewhere_than_it_seems_nothing_is_followed(what: str) -> None:
    defs, reason, where = DOUBTS[what]
    schema = {"$id": "https://example.org/root", "$defs": {**defs, "c": {"$ref": "#/$defs/a"}}}
    with pytest.raises(PluginError, match=reason) as caught:
        compiled_schema(schema)
    assert (caught.value.code, (caught.value.where or "")[: len(where)]) == (REFUSED, where)


def test_what_a_pointer_goes_through_has_no_address() -> None:
    within = {"$id": "https://example.com/", "bar": {"$ref": "baz"}}
    with pytest.raises(PluginError, match="where no subschema is looked for") as caught:
        compiled_schema({"$ref": "#/x/bar", "x": within, "$defs": {"a": {"$id": "https://example.com/baz"}}})
    assert (caught.value.code, caught.value.where) == (REFUSED, "/x")


BELOW: Mapping[str, Any] = {
    "properties": {"allOf": [{"properties": {"a": {"$ref": "#"}}}] * 2},
    "a property and a pattern": {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"^a": {"$ref": "#"}}},
    "a property and others": {
        "allOf": [{"properties": {"a": {"$ref": "#"}}}, {"additionalProperties": {"$ref": "#"}}],
    },
    "what is not evaluated": {"additionalProperties": {"$ref": "#"}, "unevaluatedProperties": {"$ref": "#"}},
    "items": {"allOf": [{"items": {"$ref": "#"}}] * 2},
    "an item and others": {"allOf": [{"prefixItems": [{"$ref": "#"}]}, {"items": {"$ref": "#"}}]},
    "items and what is contained": {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
}  # fmt: skip


@pytest.mark.parametrize("how", BELOW)
def test_two_ways_down_to_one_value_double_with_each_level(how: str) -> None:
    cost = compiled_schema(BELOW[how]).cost
    assert cost.levels < 30
    assert all(2 * less == more for less, more in zip(cost.looks[2:], cost.looks[3:], strict=False))


def test_alternatives_that_refuse_each_others_properties_cost_no_more_with_each_level() -> None:
    strict = [{"properties": {name: {"$ref": "#"}}, "additionalProperties": False} for name in "abc"]
    cost = compiled_schema({"anyOf": strict}).cost
    assert (cost.levels, len(cost.looks)) == (MAX_WRITE_DEPTH, 3)


# ------------------------------------------------------------------------------------------------ what is told


def test_of_a_large_value_only_the_first_fault_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "_MAX_TOLD", 10_000)
    union = compiled_schema({"items": {"anyOf": [{"const": str(number)} for number in range(8)]}})
    flat = compiled_schema({"items": {"type": "string"}})
    for compiled, keyword in ((union, "anyOf"), (flat, "type")):
        assert len(faults(compiled, [1] * 9)) == 9
        assert [(one.keyword, one.pointer) for one in faults(compiled, [1] * 2_000)] == [(keyword, "/0")]


def test_of_alternatives_for_a_large_value_it_is_told_that_they_cannot_be() -> None:
    compiled = compiled_schema({"anyOf": [{"items": {"const": str(number)}} for number in range(8)]})
    [fault] = faults(compiled, [1] * 100_000)
    assert (fault.keyword, fault.path) == ("tooComplex", ())
    assert fault == best_fault(compiled, [1] * 100_000)


def test_a_schema_without_references_costs_nothing_to_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json_schema, "schema_cost")
    compiled = compiled_schema({"properties": {"a": {"type": "string"}}, "additionalProperties": False})
    assert faults(compiled, {"a": "x" * 10_000}) == []


def test_a_text_is_as_large_as_its_patterns_allow_and_another_one_as_large_as_it_is() -> None:
    compiled = compiled_schema({"properties": {"path": {"pattern": r"^(?!/)(?=[ab]*a[ab]{20})[ab.]+$"}}})
    assert faults(compiled, {"path": "ab" * 20 + ".", "content": "x" * 500_000}) == []
    assert [one.keyword for one in faults(compiled, {"path": "ab" * 9_000})] == ["tooComplex"]
    nested = compiled_schema({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": compiled.schema}})
    assert [one.keyword for one in faults(nested, [{"content": "x" * 500_000}])] == ["tooComplex"]


def test_patterns_that_people_write_take_texts_as_large_as_arguments_are() -> None:
    for pattern in (r"^(?!/)(?!.*\.\.).*$", r"^[^@\s]+@[^@\s]+\.[^@\s]+$", r"^(?=.*[a-z])(?=.*\d).{8,}$", r"^\S+$"):
        compiled = compiled_schema({"items": {"pattern": pattern}})
        assert faults(compiled, [f"abc@example.org{number}" for number in range(5_000)]) == []
