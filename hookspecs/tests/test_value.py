"""Values: frozen all the way down, strict, and the same JSON again."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import orjson
import pytest
from pydantic import ValidationError

from harness_hookspecs.errors import CodecError, ValidationFailed
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.value import (
    Count,
    Digest,
    Flag,
    FrozenDict,
    FrozenList,
    Json,
    JsonObject,
    Maybe,
    Name,
    Number,
    Table,
    Text,
    Value,
    WireModel,
    freeze,
    thaw,
)

PLAIN: dict[str, Any] = {"list": [1, 2.5, {"deep": [None, True]}], "text": "é\x00", "empty": {}, "none": []}


class Inner(WireModel):
    kind: Literal["inner"] = "inner"
    note_text: Maybe[Text] = None


class Sample(WireModel):
    call_id: Maybe[Name] = None
    args: Json
    extra: Json = None
    body: Maybe[JsonObject] = None
    inner_list: tuple[Inner, ...] = ()
    table: Table[Inner] = FrozenDict()
    deny_private: Flag = True
    size: Count = 0
    heat: Maybe[Number] = None
    hash: Maybe[Digest] = None
    with_: Maybe[Text] = None
    plain: str | None = None


class Snake(Value):
    snake_name: Text
    maybe_none: str | None = None


def test_a_frozen_value_equals_the_plain_one_and_is_written_alike() -> None:
    frozen = freeze(PLAIN)
    assert frozen == PLAIN
    assert thaw(frozen) == PLAIN
    assert json.dumps(frozen) == json.dumps(PLAIN)
    assert orjson.dumps(frozen) == orjson.dumps(PLAIN) == dumps(frozen)
    assert type(thaw(frozen)) is dict
    assert type(thaw(frozen)["list"]) is list


def test_a_frozen_value_does_not_follow_its_source() -> None:
    source: dict[str, Any] = {"a": [1]}
    frozen = freeze(source)
    source["a"].append(2)
    assert frozen == {"a": [1]}


CHANGES: list[Callable[[Any], Any]] = [
    lambda v: v.__setitem__("list", 1),
    lambda v: v.__delitem__("list"),
    lambda v: v.update(a=1),
    lambda v: v.setdefault("b", 1),
    lambda v: v.pop("list"),
    lambda v: v.popitem(),
    lambda v: v.clear(),
    lambda v: v.__ior__({"a": 1}),
    lambda v: v["list"].append(1),
    lambda v: v["list"].extend([1]),
    lambda v: v["list"].insert(0, 1),
    lambda v: v["list"].pop(),
    lambda v: v["list"].remove(1),
    lambda v: v["list"].clear(),
    lambda v: v["list"].sort(),
    lambda v: v["list"].reverse(),
    lambda v: v["list"].__setitem__(0, 1),
    lambda v: v["list"].__delitem__(0),
    lambda v: v["list"].__iadd__([1]),
    lambda v: v["list"].__imul__(2),
    lambda v: v["list"][2]["deep"].append(1),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("twin", [lambda v: v, copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_frozen_value_cannot_be_changed_nor_can_its_copies(change: Any, twin: Callable[[Any], Any]) -> None:
    frozen = twin(freeze(PLAIN))
    with pytest.raises(TypeError):
        change(frozen)
    assert frozen == PLAIN


NOT_JSON = [
    (math.nan, "codec.not_finite"),
    ({"a": -math.inf}, "codec.not_finite"),
    (2**53, "codec.integer_range"),
    ("\ud83d", "codec.surrogate"),
    ({"\ud83d": 1}, "codec.surrogate"),
    ({1: 2}, "codec.key"),
    ([{1, 2}], "codec.type"),
    (b"x", "codec.type"),
    (json.loads("[" * 101 + "]" * 101), "codec.too_deep"),
]


@pytest.mark.inv("I-8")
@pytest.mark.parametrize(("value", "code"), NOT_JSON, ids=lambda value: repr(value)[:30])
def test_what_is_not_strict_json_is_neither_frozen_nor_taken_into_a_field(value: Any, code: str) -> None:
    with pytest.raises(CodecError) as caught:
        freeze(value)
    assert caught.value.code == code
    with pytest.raises(ValidationError):
        Sample(args=[value])


def test_a_value_at_the_depth_limit_is_frozen_and_a_cycle_is_not() -> None:
    assert freeze(json.loads("[" * 100 + "]" * 100)) is not None
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(CodecError):
        freeze(cycle)


def test_fields_hold_frozen_containers() -> None:
    sample = Sample(args={"a": [1]}, inner_list=[Inner()], table={"x": Inner()})
    assert type(sample.args) is FrozenDict
    assert type(sample.args["a"]) is FrozenList
    assert type(sample.inner_list) is tuple
    assert type(sample.table) is FrozenDict
    with pytest.raises(ValidationError):
        sample.size = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        sample.table["y"] = Inner()


def test_copies_of_a_model_are_equal_and_frozen() -> None:
    sample = Sample(args={"a": [1]})
    for twin in (copy.deepcopy(sample), pickle.loads(pickle.dumps(sample)), sample.model_copy()):
        assert twin == sample
        with pytest.raises(TypeError):
            twin.args["a"].append(1)


WIRE = [
    b'{"args":null}',
    b'{"args":1,"extra":null}',
    b'{"callId":"c1","args":{"x":[1.0,1,"\\u0000"]},"body":{},"innerList":[{},{"kind":"inner","noteText":""}]}',
    b'{"args":[],"table":{"b":{"kind":"inner"},"a":{}},"denyPrivate":false,"size":9007199254740991,"with":"x"}',
    b'{"args":[],"heat":1}',
    b'{"args":[],"heat":1.0}',
    b'{"args":[],"plain":null}',
]


@pytest.mark.parametrize("data", WIRE)
def test_what_was_read_is_written_back_byte_for_byte(data: bytes) -> None:
    sample = Sample.from_json_bytes(data)
    assert sample.to_json_bytes() == data
    assert Sample.from_wire(sample.to_wire()) == sample


def test_what_was_built_is_written_in_full_without_what_is_absent() -> None:
    sample = Sample(args=1, call_id=None, body=None, plain=None)
    assert sample.to_wire() == {"args": 1, "innerList": [], "table": {}, "denyPrivate": True, "size": 0}
    assert Sample(args=1, extra=None).to_wire()["extra"] is None
    assert Inner().to_wire() == {"kind": "inner"}
    assert Snake(snake_name="x").to_wire() == {"snake_name": "x"}


def test_both_spellings_are_read_but_not_at_once() -> None:
    assert Sample.from_wire({"args": 1, "call_id": "c"}) == Sample.from_wire({"args": 1, "callId": "c"})
    with pytest.raises(ValidationFailed):
        Sample.from_wire({"args": 1, "callId": "c", "call_id": "c"})


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({}, "/args"),
        ({"args": 1, "callId": None}, "/callId"),
        ({"args": 1, "callId": ""}, "/callId"),
        ({"args": 1, "callId": "\ud83d"}, "/callId"),
        ({"args": 1, "callId": b"c"}, "/callId"),
        ({"args": 1, "body": []}, "/body"),
        ({"args": 1, "size": True}, "/size"),
        ({"args": 1, "size": 1.0}, "/size"),
        ({"args": 1, "size": "1"}, "/size"),
        ({"args": 1, "size": -1}, "/size"),
        ({"args": 1, "size": 2**53}, "/size"),
        ({"args": 1, "denyPrivate": 1}, "/denyPrivate"),
        ({"args": 1, "heat": math.inf}, "/heat"),
        ({"args": 1, "heat": True}, "/heat"),
        ({"args": 1, "hash": "A" * 64}, "/hash"),
        ({"args": 1, "hash": "a" * 64 + "\n"}, "/hash"),
        ({"args": 1, "innerList": [{}, {"kind": "outer"}]}, "/innerList/1/kind"),
        ({"args": 1, "table": {"a/b": {"noteText": 1}}}, "/table/a~1b/noteText"),
        ({"args": 1, "unknown~x": 1}, "/unknown~0x"),
    ],
)
def test_a_wrong_field_is_refused_by_its_pointer_and_its_input_is_not_echoed(given: Any, pointer: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        Sample.from_wire(given)
    assert {finding["path"] for finding in caught.value.facts["findings"]} == {pointer}
    with pytest.raises(ValidationFailed) as caught:
        Sample.from_wire({"args": 1, "size": "s3cret-input"})
    assert "s3cret-input" not in f"{caught.value} {caught.value.facts} {caught.value.__cause__}"


def test_the_json_schema_says_what_is_read() -> None:
    schema = Sample.model_json_schema()
    fields = schema["properties"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["args"]
    assert {"callId", "innerList", "denyPrivate", "with"} <= set(fields)
    assert fields["callId"]["type"] == "string"  # absent or text, never null
    assert "default" not in fields["callId"]
    assert fields["denyPrivate"]["default"] is True
    assert fields["body"]["type"] == "object"


def test_a_model_is_built_at_its_first_use_and_threads_may_share_that_use() -> None:
    class Fresh(WireModel):
        call_id: Name
        size: Count

    assert not Fresh.__pydantic_complete__
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda size: Fresh.from_wire({"callId": "a", "size": size}), range(64)))
    assert [one.size for one in read] == list(range(64))
    assert Fresh.__pydantic_complete__
