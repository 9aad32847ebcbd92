"""The strict YAML reader: what it refuses, what it keeps as it is written, and that no bytes make it hang or crash."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.shell.yaml_nodes import MAX_BYTES, MAX_NODES, Items, Map, Node, Scalar, read_yaml
from harness_hookspecs.errors import ConfigError

CASES = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parents[1] / "cases" / "config.jsonl").read_text("utf-8").splitlines())
}


def plain(node: Node | None) -> object:
    """The node as plain values, every scalar still text."""
    if isinstance(node, Map):
        return {key.text: plain(value) for key, value in node.entries}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node.text if isinstance(node, Scalar) else None


def problems(text: str | bytes) -> list[tuple[str, str | None, str]]:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(ConfigError) as caught:
        read_yaml(data, "f.yaml")
    return [(one["code"], one["where"], one["message"]) for one in caught.value.facts["problems"]]


def test_a_key_given_twice_is_named_with_both_places() -> None:
    [(code, where, message)] = problems(CASES["BR-074"]["input"])
    assert (code, where) == ("config.duplicate_key", "f.yaml:4:5")
    assert "timeout" in message
    assert "f.yaml:3:5" in message


def test_every_key_given_twice_is_reported() -> None:
    found = problems("a: 1\nb: {x: 1, x: 2}\n'a': 2\n")
    assert [where for _, where, _ in found] == ["f.yaml:2:11", "f.yaml:3:1"]


def test_an_alias_bomb_is_refused_at_once() -> None:
    began = time.monotonic()
    [(code, where, _)] = problems(CASES["BR-075"]["input"])
    assert (code, where) == ("config.yaml_bomb", "f.yaml:5:8")
    assert time.monotonic() - began < 1


def test_a_bomb_of_merge_keys_is_refused() -> None:
    wide = "a: &a {" + ", ".join(f"k{n}: 1" for n in range(2000)) + "}\n"
    [(code, _, _)] = problems(wide + "b: [" + ", ".join(["{<<: *a}"] * 40) + "]\n")
    assert code == "config.yaml_bomb"


@pytest.mark.parametrize(
    ("text", "code", "where"),
    {
        "a cyclic alias": ("a: &x [1, *x]", "config.yaml_alias", "f.yaml:1:11"),
        "an unknown alias": ("a: *nobody", "config.yaml_alias", "f.yaml:1:4"),
        "an anchor given twice": ("a: &x 1\nb: &x 2", "config.yaml_alias", "f.yaml:2:4"),
        "a tag": ("a: !!python/object:os.system x", "config.yaml_tag", "f.yaml:1:4"),
        "a tag that means nothing": ("a: ! x", "config.yaml_tag", "f.yaml:1:4"),
        "a key that is no text": ("? [a]\n: b", "config.yaml_key", "f.yaml:1:3"),
        "a second document": ("a: 1\n---\nb: 1", "config.yaml", "f.yaml:2:1"),
        "a merge of a text": ("<<: x", "config.yaml_merge", "f.yaml:1:5"),
        "two merge keys": ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a", "config.duplicate_key", "f.yaml:4:3"),
        "a text with a colon": ("a: b: c", "config.yaml", "f.yaml:1:5"),
        "an open list": ("a: [1", "config.yaml", "f.yaml:1:6"),
        "an escape beyond Unicode": ('a: "\\U00110000"', "config.yaml", "f.yaml:1:7"),
        "half a surrogate pair": ('a: "\\ud800"', "config.encoding", "f.yaml:1:4"),
        "a line separator": ("a: x\u2028y", "config.yaml", "f.yaml:1:5"),
        "a control character": ("a: 1\nb: \x01", "config.yaml", "f.yaml:2:4"),
        "too deep": ("[" * 65 + "]" * 65, "config.too_deep", "f.yaml:1:65"),
        "a directive of another version": ("%YAML 2.0\n---\na: 1", "config.yaml", "f.yaml:1:1"),
    }.values(),
    ids=lambda value: repr(value)[:30],
)
def test_what_yaml_allows_and_we_do_not(text: str, code: str, where: str) -> None:
    assert [one[:2] for one in problems(text)] == [(code, where)]


@pytest.mark.parametrize("data", [b"\xff\xfea\x00:\x00 \x001\x00", "a: ä".encode("latin-1")], ids=["UTF-16", "Latin-1"])
def test_bytes_that_are_not_utf_8_are_refused(data: bytes) -> None:
    [(code, where, _)] = problems(data)
    assert code == "config.encoding"
    assert where is not None and where.startswith("f.yaml:1:")


def test_a_file_over_the_limit_is_not_even_parsed() -> None:
    assert problems(b"#" * (MAX_BYTES + 1))[0][0] == "config.too_large"
    assert problems("[" + "a," * MAX_NODES + "]")[0][0] == "config.yaml_bomb"


def test_scalars_stay_the_text_that_was_written() -> None:
    node = read_yaml(CASES["BR-076"]["input"].encode(), "f.yaml")
    assert plain(node) == {
        "country": "NO",
        "branch": "on",
        "version": "1.10",
        "time": "12:30:45",
        "id": "0123",
        "day": "2024-01-01",
    }


def test_keys_stay_the_text_that_was_written() -> None:
    assert plain(read_yaml(b"NO: 1\n1.10: 2\n~: 3\n", "f.yaml")) == {"NO": "1", "1.10": "2", "~": "3"}


def test_plain_and_quoted_scalars_are_told_apart() -> None:
    node = read_yaml(b"- a\n- 'a'\n- \"a\"\n- |-\n  a\n", "f.yaml")
    assert isinstance(node, Items)
    assert [(item.text, item.plain) for item in node.items if isinstance(item, Scalar)] == [
        ("a", True),
        ("a", False),
        ("a", False),
        ("a", False),
    ]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    node = read_yaml(b"\xef\xbb\xbfa: 1\r\nb: [2]\r\n", "f.yaml")
    assert plain(node) == {"a": "1", "b": ["2"]}
    assert isinstance(node, Map)
    assert str(node.entries[1][0].mark) == "f.yaml:2:1"


def test_a_merge_key_gives_way_to_the_own_key_and_replaces_lists() -> None:
    text = """
    base: &base {a: 1, list: [1, 2], deep: {x: 1, y: 2}}
    more: &more {a: 3, b: 4}
    one: {<<: *base, a: 2, list: [9], deep: {x: 5}}
    two: {<<: [*more, *base], c: 5}
    "three": {"<<": *base}
    """
    found = plain(read_yaml(text.encode(), "f.yaml"))
    assert isinstance(found, dict)
    assert found["one"] == {"a": "2", "list": ["9"], "deep": {"x": "5"}}
    assert found["two"] == {"c": "5", "a": "3", "b": "4", "list": ["1", "2"], "deep": {"x": "1", "y": "2"}}
    assert found["three"] == {"<<": found["base"]}


def test_an_alias_keeps_the_place_of_what_it_names() -> None:
    node = read_yaml(b"a: &x 1\nb: *x\n", "f.yaml")
    assert isinstance(node, Map)
    assert str(node.entries[1][1].mark) == "f.yaml:1:4"


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"\n\n"])
def test_a_file_that_says_nothing_has_no_root(data: bytes) -> None:
    assert read_yaml(data, "f.yaml") is None


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"- " * 50_000,
        b"{" * 9_000,
        b"&a " * 60_000,
        b"\t" * 200_000,
        b"? a\n" * 60_000,
        b'"' + b"\\" * 99_999,
    ],
    ids=lambda data: repr(data[:6]),
)
def test_hostile_repetition_ends_within_a_second(data: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ConfigError):
        read_yaml(data, "f.yaml")
    assert time.process_time() - began < 1


FRAGMENTS = st.sampled_from(
    [
        "a",
        "b: ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&x ",
        "*x",
        "!!int ",
        "<<: ",
        "? ",
        "|",
        ">-",
        "'",
        '"',
        "\\",
        "\n",
        "  ",
        "#",
        "%YAML 1.1\n",
        "---\n",
        "0000-00-00",
        "~",
        "\x85",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=40).map(lambda parts: "".join(parts).encode())))
def test_any_bytes_are_read_or_refused_by_our_own_error(data: bytes) -> None:
    found: list[dict[str, str]] = []
    try:
        read_yaml(data, "f.yaml")
    except ConfigError as error:
        found = error.facts["problems"]
    assert all(one["where"].startswith("f.yaml") for one in found)
