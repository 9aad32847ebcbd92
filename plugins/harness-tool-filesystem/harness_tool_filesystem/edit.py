"""One replacement in one file: its bytes, the old and the new text go in, the changed bytes come out.

Bytes outside the replaced lines stay as they are. The old text must occur exactly once; a byte order mark and the
missing newline at the end of a file are never part of the question, and line ends are those of the file.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from harness_hookspecs.errors import ToolError

__all__ = ["BOM", "Style", "replace_once", "style_of"]

BOM: Final = b"\xef\xbb\xbf"


class Style(NamedTuple):
    """How the bytes of a file are text.

    Attributes:
        encoding: ``utf-8``, ``binary`` (it holds NUL) or ``unknown`` (text of another encoding).
        bom: Whether it starts with a byte order mark.
        eol: ``lf``, ``crlf``, ``mixed`` or ``none``.
    """

    encoding: str
    bom: bool
    eol: str


class _Span(NamedTuple):
    start: int
    end: int


def style_of(data: bytes) -> Style:
    """Find out how the bytes of a file are text."""
    crlf = data.count(b"\r\n")
    lf = data.count(b"\n") - crlf
    eol = "none" if not crlf + lf else "mixed" if crlf and lf else "crlf" if crlf else "lf"
    if b"\0" in data:
        return Style("binary", False, eol)
    try:
        data.decode()
    except UnicodeDecodeError:
        return Style("unknown", False, eol)
    return Style("utf-8", data.startswith(BOM), eol)


def replace_once(data: bytes, old: str, new: str) -> bytes:
    """Replace the one place where ``old`` stands.

    Args:
        data: The file.
        old: Text that occurs once. Where it does not occur as it is, line ends of either kind count as equal, and a
            newline at its end may be the end of a file that has none.
        new: What stands there afterwards; lines that ``old`` and ``new`` share keep their bytes, new ones get the line
            ends of the file.

    Raises:
        ToolError: ``edit.not_found``, ``edit.not_unique``, ``edit.no_change`` or ``edit.not_text``.
    """
    style = style_of(data)
    if style.encoding == "binary" or (style.encoding == "unknown" and not (old + new).isascii()):
        raise ToolError("The file is not UTF-8 text.", code="edit.not_text", hint="Leave it as it is.")
    mark = BOM if style.bom else b""
    body = data[len(mark) :]
    if style.bom:
        old, new = old.removeprefix("\ufeff"), new.removeprefix("\ufeff")
    if not old:
        raise ToolError("The old text is empty.", code="edit.not_found", hint="Give the lines to replace.")
    changed = _replaced(body, old, new)
    if changed == body:
        raise ToolError("The new text is the old text.", code="edit.no_change", hint="There is nothing to do.")
    return mark + changed


def _replaced(body: bytes, old: str, new: str) -> bytes:
    wanted = old.encode()
    span = _place(body, wanted)
    if span is None and not body.endswith(b"\n"):
        span = _place(body + b"\n", wanted)  # can only be the end: elsewhere it would have been found before
        new = new.removesuffix("\n").removesuffix("\r")
    if span is None:
        raise ToolError(
            "The old text does not occur in the file.",
            code="edit.not_found",
            hint="Read the file and copy the lines exactly, spaces included.",
        )
    inside = _merged(body[span.start : span.end], new.encode(), _eol_near(body, span.start))
    return body[: span.start] + inside + body[span.end :]


def _place(body: bytes, wanted: bytes) -> _Span | None:
    return _only(body, wanted) or _only_apart_from_line_ends(body, wanted)


def _only(body: bytes, wanted: bytes) -> _Span | None:
    start = body.find(wanted)
    if start < 0:
        return None
    again = body.find(wanted, start + 1)  # overlapping places are two places
    if again >= 0:
        lines = [body.count(b"\n", 0, place) + 1 for place in (start, again)]
        raise ToolError(
            f"The old text occurs more than once, first in lines {lines[0]} and {lines[1]}.",
            code="edit.not_unique",
            hint="Add lines before or after it until it occurs once.",
            lines=lines,
        )
    return _Span(start, start + len(wanted))


def _only_apart_from_line_ends(body: bytes, wanted: bytes) -> _Span | None:
    """Look in a copy of the file with LF alone and map the place back."""
    plain, wanted = body.replace(b"\r\n", b"\n"), wanted.replace(b"\r\n", b"\n")
    found = _only(plain, wanted)
    if found is None:
        return None
    dropped: list[int] = []  # positions in the copy before which a CR is missing
    at = body.find(b"\r\n")
    while at >= 0:
        dropped.append(at - len(dropped))
        at = body.find(b"\r\n", at + 2)
    start, end = (place + bisect_left(dropped, place) for place in found)
    return _Span(start, end)


def _eol_near(body: bytes, place: int) -> bytes:
    """The line end before the place, or else the first one after it; LF in a file of one line."""
    at = body.rfind(b"\n", 0, place)
    at = at if at >= 0 else body.find(b"\n", place)
    return b"\r\n" if at > 0 and body[at - 1 : at] == b"\r" else b"\n"


def _merged(old: bytes, new: bytes, eol: bytes) -> bytes:
    """The new lines, with the bytes of the old ones where both begin or end alike."""
    before = _lines(old, b"\n")
    after = _lines(new.replace(b"\r\n", b"\n"), eol)
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    return b"".join([*before[:head], *after[head : len(after) - tail], *before[len(before) - tail :]])


def _lines(text: bytes, eol: bytes) -> list[bytes]:
    *whole, rest = text.split(b"\n")
    return [*(line + eol for line in whole), *([rest] if rest else [])]


def _alike(before: list[bytes], after: list[bytes]) -> int:
    for count, (one, other) in enumerate(zip(before, after, strict=False)):
        if _content(one) != _content(other):
            return count
    return min(len(before), len(after))


def _content(line: bytes) -> tuple[bytes, bool]:
    return line.removesuffix(b"\n").removesuffix(b"\r"), line.endswith(b"\n")
