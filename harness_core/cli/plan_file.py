"""The name of a file, or - for stdin, in; what it holds, or as much of it as shows that it is no plan, out."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import Final

from harness_hookspecs.kit.render import escape_line

from .hosting import usage_error

__all__ = ["read_plan"]

_READ_BYTES: Final = 2 * 1024 * 1024
"""Of a file no more is read: a plan has at most half of it, and the check says so of what is longer."""


def read_plan(file: Path, most_bytes: int = _READ_BYTES) -> bytes:
    """What the file holds, or as much of it as shows that it is no plan, or too much.

    The mark that some editors put before a text is none of it.
    """
    if str(file) == "-":
        return (sys.stdin.buffer.read(most_bytes) if sys.stdin else b"").removeprefix(BOM_UTF8)
    try:
        with file.open("rb") as opened:
            return opened.read(most_bytes).removeprefix(BOM_UTF8)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise usage_error(f"{escape_line(str(file))} cannot be read: {said}") from error
