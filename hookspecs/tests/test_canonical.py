"""The canonical form: always the bytes that RFC 8785 asks for, whichever way they were made."""

from __future__ import annotations

import hashlib
import math
import uuid
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical, sha256
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.strict import MAX_INTEGER

# Surrogates out, but keys on both sides of the surrogate gap in, where code points and UTF-16 units sort differently.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEY = TEXT | st.sampled_from(["\ue000", "\uffff", "\U00010000", "\U0001f378", "\x7f", "\u2028", '"\\', "\x1f"])
PLAIN = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXT
ANY = PLAIN | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 1e21, 1e-7, 5e-324])


def documents(leaf: st.SearchStrategy[Any], key: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(key, inner, max_size=5), max_leaves=15
    )


@given(documents(ANY, KEY) | documents(PLAIN, KEY) | documents(PLAIN, st.text("ab\x00\x7f", max_size=3)))
@settings(max_examples=300)
def test_every_document_has_the_bytes_of_the_reference(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value) == canonical(freeze(value))


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        ([1.0, -0.0, 1e2, 1e21, 0.000001, 1e-7], b"[1,0,100,1e+21,0.000001,1e-7]"),
        ([333333333.33333329, 4.50, 2e-3, 0.000000000000000000000000001], b"[333333333.3333333,4.5,0.002,1e-27]"),
        ('€$\x0f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()),
        ({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3}, '{"€":3,"😀":2,"\ufb33":1}'.encode()),
        ((1, (2,)), b"[1,[2]]"),
    ],
)
def test_the_examples_of_the_rfc_come_out(value: Any, data: bytes) -> None:
    assert canonical(value) == data


@given(documents(ANY, KEY) | st.lists(st.floats(1e15, 1e23) | st.floats(-1e23, -1e15)))
def test_what_was_written_is_read_so_that_it_could_be_written_again(value: Any) -> None:
    found = read_canonical(canonical(value))
    assert canonical(found) == canonical(value)
    assert freeze(found) == freeze(value)


@pytest.mark.parametrize("number", [1e16, 2.0**53, -(2.0**53), 1e20, 123456789012345680000.0])
def test_a_whole_number_beyond_what_integers_keep_is_the_float_that_it_was(number: float) -> None:
    found = read_canonical(canonical({"a": number}))["a"]
    assert (found, type(found)) == (number, float)
    assert type(read_canonical(canonical([MAX_INTEGER]))[0]) is int


@pytest.mark.parametrize("digits", [b"1", b"1234567890123456"], ids=["short numbers", "long numbers"])
@pytest.mark.parametrize(
    "data",
    [
        b'{"a":%s', b'"%s\xff"', b"[%s,NaN]", b"[%s,-Infinity]", b'"%s\\ud800"', b"[%s,1e999]",
        b"[" * 100_000 + b"%s" + b"]" * 100_000, b"%s %s",
    ],
    ids=["cut off", "not UTF-8", "no number", "endless", "half a character", "too large", "too deep", "two values"],
)
def test_what_is_no_json_is_refused_whatever_numbers_stand_in_it(data: bytes, digits: bytes) -> None:
    with pytest.raises(CodecError):
        read_canonical(data.replace(b"%s", digits))


@pytest.mark.parametrize(
    "value", [math.nan, [math.inf], 2**53, {"a": "\ud83d"}, {1: 2}, {"a": object()}, [uuid.UUID(int=1)], {"a": {2}}]
)
def test_what_is_not_strict_json_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(CodecError):
        canonical(value)


def test_a_digest_does_not_depend_on_order_or_spelling() -> None:
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2, "a": 1.0}) == hashlib.sha256(b'{"a":1,"b":2}').hexdigest()
    assert sha256(b"").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
