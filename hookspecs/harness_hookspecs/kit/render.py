"""Showing foreign text to a person: any text goes in, text that a terminal or a page cannot be tricked with comes out.

Every surface shows what a model, a tool or a file said through this one module, so that what a person approves is what
will run: nothing moves the cursor, turns the reading direction, hides itself or looks like a plain space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["clip_line", "clip_lines", "escape_for_terminal", "escape_line", "labels", "table", "width"]

_SHORT: Final = {"\r": "\\r", "\n": "\\n", "\t": "\\t", "\0": "\\0"}
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that draw nothing: a combining grapheme joiner, Hangul and Khmer fillers, Mongolian and other
# variation selectors, the empty Braille cell. Their category does not give them away.
_BLANKS: Final = frozenset(
    map(chr, [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0])
)
_SELECTORS: Final = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_PLAIN: Final = re.compile(r"[\x20-\x7e\n\t]*")


def escape_for_terminal(text: str, *, ascii_only: bool = False) -> str:
    """Make every character visible that a terminal would obey, reorder or hide; newlines and tabs stay.

    Control characters (CR and ESC among them), bidirectional and other format characters, line separators, private and
    unassigned characters, tags, fillers, variation selectors and all spaces but the plain one become ``\\r``,
    ``\\x1b``, ``\\u202e`` or ``\\U000e0041``. Letters of all scripts and emoji stay as they are.

    Args:
        text: Any text, lone surrogates included.
        ascii_only: Escape all that is not ASCII, for a terminal that can show nothing else.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(c if c in "\n\t" else _shown(c, ascii_only=ascii_only) for c in text)


def escape_line(text: str, *, ascii_only: bool = False) -> str:
    """The same for what must stay on one line, a file name for example: newlines and tabs are escaped as well."""
    return "".join(_shown(c, ascii_only=ascii_only) for c in text)


def _shown(c: str, *, ascii_only: bool) -> str:
    if " " <= c <= "~":
        return c
    if c in _SHORT:
        return _SHORT[c]
    if not ascii_only and not _is_hidden(c):
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_hidden(c: str) -> bool:
    category = unicodedata.category(c)
    if category in _HIDDEN_CATEGORIES or category == "Zs" or c in _BLANKS:
        return True
    return any(low <= ord(c) <= high for low, high in _SELECTORS)


def width(text: str) -> int:
    """Columns that escaped text of one line takes on a terminal; wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def clip_line(text: str, columns: int) -> str:
    """Cut one escaped line to a number of columns; a cut is marked with ``...``."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for c in text:
        used += width(c)
        if used > columns - 3:
            break
        kept += c
    return f"{kept}..."[:columns]


def clip_lines(text: str, lines: int) -> tuple[str, int]:
    """Cut escaped text to its first lines.

    Returns:
        The text that is left and how many lines were cut off; whoever shows it says so.
    """
    found = text.split("\n")
    return "\n".join(found[:lines]), max(0, len(found) - lines)


def labels(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines ``label   value`` with the values under each other, both escaped; further lines of a value are indented."""
    shown = [(escape_line(label), escape_for_terminal(value)) for label, value in pairs]
    column = max((width(label) for label, _ in shown), default=0) + 2
    return [
        f"{_pad(label if first else '', column)}{line}".rstrip()
        for label, value in shown
        for first, line in zip([True, *[False] * value.count("\n")], value.split("\n"), strict=True)
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, columns: int = 0) -> list[str]:
    """Lines of a plain table, every cell escaped and on one line.

    Args:
        head: One title a column.
        rows: As many cells each.
        columns: Cut every line to this width; 0 never cuts.
    """
    cells = [[escape_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(width(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(_pad, row, widths)).rstrip() for row in cells]
    return [clip_line(line, columns) for line in lines] if columns else lines


def _pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
