"""Two states of one file go in as bytes, a unified diff that people can read and ``patch`` can apply comes out."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

__all__ = ["unified_diff"]

_CONTEXT_LINES: Final = 3
_COMPARED_LINES: Final = 2_000
"""Up to so many changed lines are compared one by one; comparing is quadratic, so more are shown as one block."""

_QUOTED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def unified_diff(path: str, before: bytes | None, after: bytes) -> str:
    """Compare two states of a file.

    Args:
        path: Its name; odd ones are quoted as git quotes them.
        before: ``None`` for a file that did not exist.
        after: What it is to hold.

    Returns:
        The whole diff, empty when nothing changes; bytes that are not UTF-8 appear as ``\\xNN``.
    """
    old, new = _lines(before or b""), _lines(after)
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])
    blocks = [
        (a1 + head, a2 + head, b1 + head, b2 + head)
        for a1, a2, b1, b2 in _changes(old[head : len(old) - tail], new[head : len(new) - tail])
    ]
    if not blocks:
        return "" if before is not None else f"--- /dev/null\n+++ {_name('b/', path)}\n"
    source = "/dev/null" if before is None else _name("a/", path)
    hunks = (line for group in _grouped(blocks) for line in _hunk(old, new, group))
    return "".join([f"--- {source}\n+++ {_name('b/', path)}\n", *hunks])


_Block = tuple[int, int, int, int]


def _lines(data: bytes) -> list[str]:
    *whole, rest = data.decode(errors="backslashreplace").split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def _same(old: list[str], new: list[str]) -> int:
    for count, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return count
    return min(len(old), len(new))


def _changes(old: list[str], new: list[str]) -> Iterator[_Block]:
    if len(old) + len(new) > _COMPARED_LINES:
        yield 0, len(old), 0, len(new)
        return
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield a1, a2, b1, b2


def _grouped(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Blocks whose context would touch share a hunk."""
    group = [blocks[0]]
    for block in blocks[1:]:
        if block[0] - group[-1][1] > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(block)
    yield group


def _hunk(old: list[str], new: list[str], group: list[_Block]) -> Iterator[str]:
    start = max(0, group[0][0] - _CONTEXT_LINES)
    end = min(len(old), group[-1][1] + _CONTEXT_LINES)
    shift = group[0][2] - group[0][0]
    new_end = end + group[-1][3] - group[-1][1]
    yield f"@@ -{_range(start, end)} +{_range(start + shift, new_end)} @@\n"
    at = start
    for a1, a2, b1, b2 in group:
        yield from _marked(" ", old[at:a1])
        yield from _marked("-", old[a1:a2])
        yield from _marked("+", new[b1:b2])
        at = a2
    yield from _marked(" ", old[at:end])


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}"


def _marked(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _name(prefix: str, path: str) -> str:
    quoted = "".join(map(_quoted, path))
    return f"{prefix}{path}" if quoted == path else f'"{prefix}{quoted}"'


def _quoted(c: str) -> str:
    if c in _QUOTED:
        return _QUOTED[c]
    code = ord(c) & 0xFF if "\udc80" <= c <= "\udcff" else ord(c)  # a byte of a name that is not UTF-8
    return f"\\{code:03o}" if code < 0x20 or code == 0x7F or code != ord(c) else c
