"""Paths as the file system knows them go in, paths as strict JSON and a model can carry them come out, and back.

A name that is not UTF-8, which Python holds as surrogate escapes, is written ``bytes:`` and then percent-encoded; a
name that begins so by itself is written ``./bytes:``. Every other path is written exactly as it is.
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Final

__all__ = ["decode_path", "encode_path"]

_BYTES: Final = "bytes:"


def encode_path(path: str | PathLike[str]) -> str:
    """Write a path of the file system so that ``decode_path`` finds it again.

    Args:
        path: A ``Path``, or text as ``os.fsdecode`` gives it; relative or absolute.
    """
    name = fspath(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote_from_bytes  # seldom needed, and more than a start should load

        return _BYTES + quote_from_bytes(name.encode(errors="surrogateescape"))
    return f"./{name}" if name.startswith(_BYTES) else name


def decode_path(text: str) -> str:
    """Take a path as ``encode_path`` writes it; bytes that are not UTF-8 are surrogate escapes again.

    Raises:
        UnicodeEncodeError: The text itself holds a lone surrogate, which no written path does.
    """
    text.encode()
    if not text.startswith(_BYTES):
        return text
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text.removeprefix(_BYTES)).decode(errors="surrogateescape")
