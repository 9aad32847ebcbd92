"""Showing foreign text to a person: any text goes in, text that a terminal or a page cannot be tricked with comes out.

Every surface shows what a model, a tool or a file said through this one module, so that what a person approves is what
will run: nothing moves the cursor, turns the reading direction, hides itself or looks like a plain space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Final

__all__ = ["clip_line", "clip_lines", "escape_for_terminal", "escape_line", "labels", "table", "width", "wrap"]

_SHORT: Final = {"\r": "\\r", "\n": "\\n", "\t": "\\t", "\0": "\\0"}
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that draw nothing: a combining grapheme joiner, Hangul and Khmer fillers, Mongolian and other
# variation selectors, the empty Braille cell. Their category does not give them away.
_BLANKS: Final = frozenset(
    map(chr, [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0])
)
_SELECTORS: Final = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_GAP: Final = 2
_INDENT: Final = 4
_NARROWEST: Final = 20
"""With less room than this a column is no longer readable beside others."""
_NOTHING: Final = frozenset({"", "-", "0", "unknown"})
"""Cells that say nothing when all of a column are such."""
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


def wrap(line: str, columns: int) -> list[str]:
    """Break one escaped line at its spaces; what follows stands under its first word, beside the sign of a list.

    Args:
        line: Text without a newline; spaces within a line stay as they are.
        columns: 1 or more. A word that is longer than that is broken within.
    """
    indent = len(line) - len(line.lstrip(" -"))
    if width(line) <= columns or indent * 2 > columns:
        return _broken(line, columns)
    first, *more = _broken(line[indent:], columns - indent)
    return [line[:indent] + first, *(" " * indent + part for part in more)]


def _broken(line: str, columns: int) -> list[str]:
    lines, now = [], ""
    for number, word in enumerate(line.split(" ")):
        longer = f"{now} {word}" if number else word
        if width(longer) > columns and now.strip():
            lines.append(now.rstrip())
            longer = word
        *full, now = _pieces(longer, columns)
        lines += full
    return [*lines, now]


def _pieces(text: str, columns: int) -> list[str]:
    """A text in pieces that each fit; every piece has a character, however wide."""
    found, used = [""], 0
    for c in text:
        used += width(c)
        if used > columns and found[-1]:
            found.append("")
            used = width(c)
        found[-1] += c
    return found


def labels(pairs: Iterable[tuple[str, str]], *, columns: int = 0) -> list[str]:
    """Lines ``label   value`` with the values under each other, both escaped; further lines of a value are indented.

    Args:
        pairs: Labels with their values; a value may have several lines.
        columns: Break values at this width; 0 never does.
    """
    shown = [(escape_line(label), escape_for_terminal(value)) for label, value in pairs]
    column = max((width(label) for label, _ in shown), default=0) + 2
    room = max(columns - column, _NARROWEST) if columns else 0
    found = []
    for label, value in shown:
        lines = [part for line in value.split("\n") for part in (wrap(line, room) if room else [line])]
        found += [f"{_pad('' if number else label, column)}{line}".rstrip() for number, line in enumerate(lines)]
    return found


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, columns: int = 0, optional: Collection[str] = ()
) -> list[str]:
    """Lines of a plain table, every cell escaped.

    Args:
        head: One title a column; the column that is longest comes last.
        rows: As many cells each.
        columns: Fit into this width: the last column is broken under itself, and columns for which too little room is
            left stand below their row, indented, each after its title. 0 leaves each row on one line of any length.
        optional: Titles of columns that are left out to fit when they say nothing in any row.
    """
    cells = [[escape_line(cell) for cell in row] for row in (head, *rows)]
    if not columns:
        return _lines(cells, [max(map(width, column)) for column in zip(*cells, strict=True)])
    kept = [
        number
        for number, title in enumerate(head)
        if title not in optional or any(row[number] not in _NOTHING for row in cells[1:])
    ]
    cells = [[row[number] for number in kept] for row in cells]
    return _fitted(cells, [max(map(width, column)) for column in zip(*cells, strict=True)], columns)


def _fitted(cells: Sequence[Sequence[str]], widths: Sequence[int], columns: int) -> list[str]:
    if sum(widths) + _GAP * (len(widths) - 1) <= columns:
        return _lines(cells, widths)
    beside = len(widths)
    while beside > 1 and _room(widths[:beside], columns) < min(widths[beside - 1], _NARROWEST):
        beside -= 1
    room = max(_room(widths[:beside], columns), 1)
    lines = []
    for number, row in enumerate(cells):
        first, *more = wrap(row[beside - 1], room)
        empty = [""] * (beside - 1)
        lines += _lines([[*row[: beside - 1], first], *([*empty, part] for part in more)], widths[:beside])
        below = zip(cells[0][beside:], row[beside:], strict=True) if number else ()
        lines += _below("  ".join(f"{title}: {cell}" for title, cell in below if cell), columns)
    return lines


def _room(widths: Sequence[int], columns: int) -> int:
    """What is left of a line for the last of some columns."""
    return columns - sum(width + _GAP for width in widths[:-1])


def _below(text: str, columns: int) -> list[str]:
    return [" " * _INDENT + line for line in wrap(text, max(columns - _INDENT, 1)) if line]


def _lines(cells: Iterable[Sequence[str]], widths: Sequence[int]) -> list[str]:
    return [(" " * _GAP).join(map(_pad, row, widths)).rstrip() for row in cells]


def _pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
