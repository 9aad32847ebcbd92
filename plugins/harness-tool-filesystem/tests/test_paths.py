from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import Refused, ToolError
from harness_hookspecs.kit.paths import encode_path
from harness_tool_filesystem.paths import parse_path, protected_part

names = st.binary(min_size=1, max_size=30).map(os.fsdecode).filter(lambda name: not set(name) & set("/\0"))


@given(st.lists(names.filter(lambda name: name not in {".", ".."}), min_size=1, max_size=4).map("/".join))
def test_every_name_a_file_can_have_survives_the_way_through_json(path: str) -> None:
    shown = json.loads(json.dumps(encode_path(path)))
    shown.encode()
    assert parse_path(shown) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (".", "."),
        ("./", "."),
        ("a//b/./c/", "a/b/c"),
        ("bytes:%ff", "\udcff"),
        ("./bytes:x", "bytes:x"),
        ("a\\b", "a\\b"),
        ("a..b/..c", "a..b/..c"),
    ],
)
def test_only_dots_and_slashes_are_folded(text: str, path: str) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", "a\0b", "bytes:%00", "x" * 4097, "\udcff", "bytes:"])
def test_what_is_no_path_is_an_error(text: str) -> None:
    with pytest.raises(ToolError):
        parse_path(text)


@pytest.mark.parametrize("text", ["/", "/a", "..", "a/../b", "bytes:%2e%2e/a", "bytes:/a", "../", "a/.."])
def test_a_path_never_climbs(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_path(text)
    assert caught.value.code == "path.outside"


@given(names)
def test_a_protected_part_is_found_at_any_depth(name: str) -> None:
    assert protected_part(f"{name}/.git/x") is not None
    assert protected_part(f"a/.HARNESS/{name}") is not None
