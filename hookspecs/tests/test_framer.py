"""The framer: one bad line is one error, the stream goes on, and memory stays within the limit."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.kit.framer import MAX_LINE_BYTES, Frame, FrameError, Framer

CASES = [
    row
    for row in map(json.loads, (Path(__file__).parents[2] / "tests/cases/json_borders.jsonl").read_bytes().splitlines())
    if row.get("kind") == "jsonl"
]


def pieces(parts: list[Any]) -> bytes:
    return "".join(part if isinstance(part, str) else part["rep"] * part["n"] for part in parts).encode()


def told(data: bytes, *, chunk_bytes: int = 65_536, **limits: int) -> list[Any]:
    """Values as they are, errors as their codes."""
    framer = Framer(**limits)
    found: list[Frame | FrameError] = []
    for start in range(0, len(data), chunk_bytes):
        found += framer.feed(data[start : start + chunk_bytes])
    found += framer.close()
    return [item.value if isinstance(item, Frame) else item.code for item in found]


@pytest.mark.inv("I-32")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_line_from_a_hostile_peer_is_judged_as_it_should_be(case: dict[str, Any]) -> None:
    limit = case["input"].get("limits", {}).get("maxLineBytes", MAX_LINE_BYTES)
    found = told(pieces(case["input"]["pieces"]), max_line_bytes=limit)
    assert len(found) == 1
    assert isinstance(found[0], dict) == (case["expect"] == "allow")


@pytest.mark.inv("I-32")
@pytest.mark.parametrize(
    "size", [64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 1024 * 1024, 1024 * 1024 + 1, 64 * 1024 * 1024]
)
def test_a_long_line_is_whole_or_one_error_and_the_next_line_is_read(size: int) -> None:
    line = b'"' + b"x" * (size - 2) + b'"'
    found = told(line + b'\n{"type":"hello"}\n')
    assert found[1:] == [{"type": "hello"}]
    assert found[0] == ("frame.too_long" if size > MAX_LINE_BYTES else "x" * (size - 2))


@pytest.mark.inv("I-32", "I-39")
def test_a_line_that_never_ends_is_told_once_and_takes_bounded_memory() -> None:
    framer = Framer(max_line_bytes=10_000)
    chunk = b"a" * 4096
    tracemalloc.start()
    found = [item for _ in range(5_000) for item in framer.feed(chunk)]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [item.code for item in found if isinstance(item, FrameError)] == ["frame.too_long"]
    assert len(found) == 1
    assert peak_bytes < 200_000
    assert [item.value for item in framer.feed(b"\n[1]\n") if isinstance(item, Frame)] == [[1]]
    assert told(b"[1][2][3]", chunk_bytes=4, max_line_bytes=5) == ["frame.too_long"]


BAD = ["this is not json", '{"a":1', '{"a":NaN}', '{"a":1,"a":2}', "[1] [2]", "\ufeff{}", "[" * 70 + "]" * 70]


@pytest.mark.inv("I-32")
@pytest.mark.parametrize("line", [*(text.encode() for text in BAD), b'"\xff"', '{"a":1}'.encode("utf-16-le"), b"\x00"])
def test_a_bad_line_is_one_error_and_the_next_is_answered(line: bytes) -> None:
    framer = Framer()
    found = framer.feed(b"[0]\n" + line + b'\n{"type":"hello"}\n')
    assert [type(item) for item in found] == [Frame, FrameError, Frame]
    assert [item.number for item in found] == [1, 2, 3]
    assert found[2] == Frame({"type": "hello"}, b'{"type":"hello"}', 3)


def test_only_a_line_feed_ends_a_line() -> None:
    text = '"a\u2028b\u0085c\x7fd"'
    assert told(text.encode() + b"\r\n[1]\n") == [json.loads(text), [1]]
    assert told(b"[1]\r[2]\n") == ["codec.syntax"]


def test_blank_lines_are_skipped_and_counted() -> None:
    found = Framer().feed(b"\n \r\n[1]\n")
    assert found == [Frame([1], b"[1]", 3)]


@pytest.mark.parametrize(("rest", "codes"), [(b'{"a":1}', ["frame.incomplete"]), (b"", []), (b" \r", [])])
def test_half_a_line_at_the_end_is_told(rest: bytes, codes: list[str]) -> None:
    framer = Framer()
    assert framer.feed(rest) == []
    assert [item.code for item in framer.close() if isinstance(item, FrameError)] == codes
    assert framer.close() == []
    with pytest.raises(IllegalMove):
        framer.feed(b"[1]\n")


@given(
    st.lists(
        st.sampled_from([b"[1]", b'{"a":"\xc3\xa9"}', b"nonsense", b"", b"\xff", b'"' + b"x" * 40 + b'"', b"null"])
    ),
    st.integers(1, 9),
)
def test_how_the_bytes_arrive_changes_nothing(lines: list[bytes], chunk_bytes: int) -> None:
    data = b"".join(line + b"\n" for line in lines) + b"[2]"
    assert told(data, chunk_bytes=chunk_bytes, max_line_bytes=30) == told(data, max_line_bytes=30)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_no_bytes_make_it_raise(data: bytes, chunk_bytes: int) -> None:
    told(data, chunk_bytes=chunk_bytes, max_line_bytes=20)
