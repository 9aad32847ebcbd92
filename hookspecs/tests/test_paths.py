"""Paths in text: every name a file can have is strict JSON, and found again."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.kit.codec import dumps, loads
from harness_hookspecs.kit.paths import decode_path, encode_path


@given(st.binary(max_size=30).map(os.fsdecode))
def test_every_path_survives_strict_json(path: str) -> None:
    written = loads(dumps(encode_path(path)))
    assert decode_path(written) in (path, f"./{path}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a/\u00fc %41.txt", "a/\u00fc %41.txt"),
        ("caf\udce9/\u00fc.txt", "bytes:caf%E9/%C3%BC.txt"),
        ("/tmp/b\udcff", "bytes:/tmp/b%FF"),
        ("bytes:x", "./bytes:x"),
        ("", ""),
    ],
)
def test_only_what_json_cannot_carry_is_written_otherwise(path: str, text: str) -> None:
    assert encode_path(path) == text


def test_a_text_with_half_a_surrogate_pair_is_no_written_path() -> None:
    with pytest.raises(UnicodeEncodeError):
        decode_path("\ud800")
