"""The files an artifact names, judged: its body and what is known of the workspace go in, findings come out."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.kit.paths import decode_path, encode_path
from harness_hookspecs.validator import Finding

__all__ = ["FIELDS", "Named", "is_inside", "judged", "named_files"]

FIELDS: Final = ("files", "modified_files")
"""The fields of a body that name files."""

_HINTED: Final = 5


class Named(NamedTuple):
    """A file as an artifact names it: where it stands, in which field, and its normalised path as the system has it."""

    pointer: str
    field: str
    said: str
    path: str


def named_files(body: Any) -> Iterator[Named]:
    """Every file that a body names."""
    for field in FIELDS:
        entries = body.get(field) if isinstance(body, Mapping) else None
        for index, entry in enumerate(entries if isinstance(entries, (list, tuple)) else ()):
            if isinstance(entry, str):
                path = decode_path(entry)
                yield Named(f"/{field}/{index}", field, entry, posixpath.normpath(path) if path else path)


def is_inside(path: str) -> bool:
    """Whether a normalised path can be a file of the project at all."""
    return "\0" not in path and not path.startswith(("/", "../")) and path not in {"..", ".", ""}


def judged(named: Named, changed: frozenset[str], exists: Callable[[str], bool]) -> Finding | None:
    """What is wrong with a named file: it is none of the project's, or it was not touched; None when all is well.

    Args:
        named: The file.
        changed: Paths that were changed, deleted ones too.
        exists: Whether a path is a file of the project.
    """
    if named.path in changed:
        return None
    if not is_inside(named.path) or not exists(named.path):
        message = f"{named.said} is not a file of this project"
        return _finding("semantic.foreign_file", named, message, changed)
    return _finding("semantic.untouched_file", named, f"{named.said} was not changed", changed)


def _finding(code: str, named: Named, message: str, changed: frozenset[str]) -> Finding:
    from difflib import get_close_matches  # seldom needed

    close = get_close_matches(named.path, sorted(changed), n=1, cutoff=0.7)
    shown = close or sorted(changed)[:_HINTED]
    more = f" and {len(changed) - len(shown)} more" if not close and len(changed) > len(shown) else ""
    hint = f"changed: {', '.join(map(encode_path, shown))}{more}" if shown else "no file was changed"
    return Finding(code=code, severity="error", path=named.pointer, message=message, hint=hint)
