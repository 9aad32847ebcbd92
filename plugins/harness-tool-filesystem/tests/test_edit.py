from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import ToolError
from harness_tool_filesystem.edit import replace_once, style_of

BOM = b"\xef\xbb\xbf"

CHANGES = {
    "a word": (b"one two\n", "two", "three", b"one three\n"),
    "several lines": (b"a\nb\nc\n", "a\nb\n", "x\ny\nz\n", b"x\ny\nz\nc\n"),
    "nothing in its place": (b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
    "the whole file": (b"a\n", "a\n", "b\n", b"b\n"),
    # line ends are those of the file
    "LF in a CRLF file": (b"a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", b"a\r\nx\r\ny\r\nc\r\n"),
    "CRLF in a LF file": (b"a\nb\nc\n", "a\r\nb\r\n", "a\r\nx\r\n", b"a\nx\nc\n"),
    "new lines inside one line of a CRLF file": (b"a b\r\nc\r\n", "a b", "a\nb", b"a\r\nb\r\nc\r\n"),
    "CRLF text that is there": (b"a\r\nb\r\n", "a\r\nb", "a\r\nx", b"a\r\nx\r\n"),
    "exactly there and nearly there": (b"a\r\nb\r\na\nb\n", "a\nb", "x", b"a\r\nb\r\nx\n"),
    "a mixed file, a CRLF place": (b"a\nb\r\nc\r\nd\n", "c", "x\ny", b"a\nb\r\nx\r\ny\r\nd\n"),
    "a mixed file, lines kept as they were": (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nx\nd\n", b"a\r\nb\nx\r\nd\n"),
    "a lone CR is no line end": (b"a\rb\nc\n", "a\rb", "a\rx", b"a\rx\nc\n"),
    "one line without an end": (b"a", "a", "b\nc", b"b\nc"),
    # the end of the file
    "no newline at the end": (b"a\nb", "b\n", "c\n", b"a\nc"),
    "no newline at the end of a CRLF file": (b"a\r\nb", "a\nb\n", "a\nx\ny\n", b"a\r\nx\r\ny"),
    "no newline at the end, and none in the text": (b"a\nb", "b", "c", b"a\nc"),
    # the mark at the start
    "a byte order mark": (BOM + b"a\nb\n", "a\n", "x\n", BOM + b"x\nb\n"),
    "a byte order mark that is named": (BOM + b"a\n", "\ufeffa", "\ufeffx", BOM + b"x\n"),
    "a byte order mark, CRLF, no newline": (BOM + b"a\r\nb\r\nc", "b\nc\n", "b\nx\n", BOM + b"a\r\nb\r\nx"),
    # bytes that are no UTF-8 elsewhere
    "ASCII in a file of another encoding": (b"caf\xe9 one\n", "one", "two", b"caf\xe9 two\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "old", "new", "after"), CHANGES.values(), ids=CHANGES)
def test_only_the_named_bytes_change(before: bytes, old: str, new: str, after: bytes) -> None:
    assert replace_once(before, old, new) == after


REFUSALS = {
    "absent": (b"a\n", "b", "c", "edit.not_found"),
    "spaces differ": (b"a  b\n", "a b", "c", "edit.not_found"),
    "twice": (b"a\na\n", "a", "b", "edit.not_unique"),
    "twice, overlapping": (b"aaa\n", "aa", "b", "edit.not_unique"),
    "twice apart from line ends": (b"a\r\nb\nx\na\nb\r\n", "a\nb\n", "c\n", "edit.not_unique"),
    "empty": (b"a\n", "", "b", "edit.not_found"),
    "only the mark": (BOM + b"a\n", "\ufeff", "b", "edit.not_found"),
    "the same": (b"a\n", "a", "a", "edit.no_change"),
    "the same apart from line ends": (b"a\r\nb\r\n", "a\nb\n", "a\nb\n", "edit.no_change"),
    "binary": (b"a\0b\n", "a", "b", "edit.not_text"),
    "UTF-8 into another encoding": (b"caf\xe9\n", "caf", "é", "edit.not_text"),
    "newline at the end of something inside": (b"a b\nb", "a\n", "x\n", "edit.not_found"),
}


@pytest.mark.parametrize(("before", "old", "new", "code"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_not_there_exactly_once_is_refused(before: bytes, old: str, new: str, code: str) -> None:
    with pytest.raises(ToolError) as caught:
        replace_once(before, old, new)
    assert caught.value.code == code


def test_the_lines_of_two_places_are_named() -> None:
    with pytest.raises(ToolError, match="lines 2 and 4"):
        replace_once(b"x\na\ny\na\n", "a\n", "b\n")


lines = st.lists(st.sampled_from(["a", "b", "c", "ü", ""]), max_size=6)
ends = st.sampled_from(["\n", "\r\n"])


@given(data=st.data())
def test_bytes_outside_the_changed_lines_stay(data: st.DataObject) -> None:
    parts = [line + data.draw(ends) for line in data.draw(lines)]
    before, after = "".join(parts), "".join(line + data.draw(ends) for line in data.draw(lines))
    bom = BOM if data.draw(st.booleans()) else b""
    file = bom + (before + "target" + data.draw(ends) + after).encode()
    changed = replace_once(file, "target\n", "new\nlines\n")
    assert changed.startswith(bom + before.encode() + b"new")
    assert changed.endswith(after.encode())
    middle = changed[len(bom) + len(before.encode()) : len(changed) - len(after.encode())]
    assert middle in {b"new\nlines\n", b"new\r\nlines\r\n"}


@pytest.mark.parametrize(
    ("data", "style"),
    [
        (b"", ("utf-8", False, "none")),
        (b"a\n", ("utf-8", False, "lf")),
        (BOM + b"a\r\n", ("utf-8", True, "crlf")),
        (b"a\r\nb\n", ("utf-8", False, "mixed")),
        (b"\xff\xfea\0", ("binary", False, "none")),
        (b"\xe9", ("unknown", False, "none")),
    ],
)
def test_the_style_of_a_file_is_found(data: bytes, style: tuple[str, bool, str]) -> None:
    assert style_of(data) == style
