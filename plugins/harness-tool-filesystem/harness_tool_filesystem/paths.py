"""Paths as a model writes them go in, paths as the file system knows them come out.

A path is relative to the workspace, with ``/`` between its parts, and names exactly the file whose name it is: nothing
is trimmed, folded or normalised but ``.`` parts and repeated slashes. A name that is not UTF-8
stands there in the form of ``harness_hookspecs.kit.paths``, which survives JSON.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from harness_hookspecs.errors import Refused, ToolError
from harness_hookspecs.kit.paths import decode_path

__all__ = ["PROTECTED", "parents", "parse_path", "protected_part"]

PROTECTED: Final = (".git", ".harness")
"""Names of files and folders, at any depth, whose content is never written: they decide what later runs."""

_MAX_PATH_BYTES: Final = 4096
_IGNORED: Final = re.compile(r"[\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")  # HFS+ drops these from names
_SHORT_NAME: Final = re.compile(r"git~\d+", re.IGNORECASE)  # what FAT and NTFS call .git


def parse_path(text: str) -> str:
    """Take a path from arguments.

    Returns:
        Its parts joined by ``/``, ``.`` for the workspace itself; a name that is not UTF-8 holds surrogate escapes.

    Raises:
        ToolError: ``path.invalid``: it is empty, too long, holds NUL or is badly encoded.
        Refused: ``path.outside``: it is absolute or climbs with ``..``.
    """
    path = _decoded(text)
    if not path or "\0" in path or len(path.encode(errors="surrogateescape")) > _MAX_PATH_BYTES:
        raise ToolError("This is not a path.", code="path.invalid", hint="Give a path relative to the workspace.")
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts:
        hint = "Give a path relative to the workspace, without '..'."
        raise Refused("The path leaves the workspace.", code="path.outside", where=text, hint=hint)
    return "/".join(parts) or "."


def _decoded(text: str) -> str:
    try:
        return decode_path(text)
    except UnicodeEncodeError as error:
        raise ToolError("The path holds a lone surrogate.", code="path.invalid") from error


def parents(path: str) -> list[str]:
    """The path and the folders above it, outermost first, the workspace itself left out."""
    parts = path.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def protected_part(path: str) -> str | None:
    """The part of a parsed path that must not be written, ``None`` when there is none.

    Other spellings that some file system takes for the same name count too: case, compatibility forms, invisible
    characters, trailing dots and spaces.
    """
    return next((part for part in path.split("/") if _folded(part) in PROTECTED), None)


def _folded(part: str) -> str:
    plain = unicodedata.normalize("NFKC", _IGNORED.sub("", part)).casefold().rstrip(". ")
    return ".git" if _SHORT_NAME.fullmatch(plain) else plain.split(":")[0]
