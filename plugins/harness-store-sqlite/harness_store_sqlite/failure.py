"""What a database error means: an error of the driver goes in, one of ours comes out."""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.errors import StoreCorrupt, StoreError

__all__ = ["CORRUPT_HINT", "FOLDER_HINT", "failure"]

CORRUPT_HINT: Final = "restore it from a copy (harness db backup makes one); what is there was not changed"
FOLDER_HINT: Final = "harness doctor says what is wrong with the folders; make it writable or set XDG_DATA_HOME"

# Primary result codes of SQLite (https://sqlite.org/rescode.html).
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _TOOBIG = 5, 6, 8, 10, 11, 13, 14, 18
_CONSTRAINT, _NOTADB = 19, 26

_KNOWN: dict[int, tuple[str, str, str | None]] = {
    _BUSY: ("store.busy", "another process held the log for too long", None),
    _LOCKED: ("store.busy", "the log is locked", None),
    _READONLY: ("store.readonly", "the log is read-only", FOLDER_HINT),
    _IOERR: ("store.io", "the disk did not do what it was asked", None),
    _FULL: ("store.full", "there is no space left for the log", "make room, then resume: what is in it stays"),
    _CANTOPEN: ("store.io", "the log cannot be opened", FOLDER_HINT),
    _TOOBIG: ("store.too_large", "the content is larger than the log can hold", None),
}
_BROKEN = {
    _CORRUPT: "the file is damaged",
    _NOTADB: "this is no SQLite file",
    _CONSTRAINT: "the rows and the head of the stream contradict each other",
}
_NO_TEXT: Final = "Could not decode to UTF-8"


def failure(error: BaseException, where: str, *, full: bool = False) -> StoreError:
    """Name what went wrong.

    Args:
        error: What the driver raised; its ``sqlite_errorcode`` is looked at.
        where: The file.
        full: Whether the disk is known to be full, which SQLite sometimes reports as a mere input/output error.
    """
    if isinstance(error, UnicodeDecodeError) or _NO_TEXT in str(error):  # the driver says it without a code
        return StoreCorrupt(f"{_BROKEN[_CORRUPT]}: {error}", code="store.corrupt", where=where)
    code: Any = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else _IOERR
    if primary == _CONSTRAINT and "cannot store" in str(error):  # what a STRICT table says of a value's type
        return StoreError(f"what is to be written is malformed: {error}", code="store.malformed", where=where)
    if primary in _BROKEN:
        return StoreCorrupt(f"{_BROKEN[primary]}: {error}", code="store.corrupt", where=where, hint=CORRUPT_HINT)
    if primary == _IOERR and full:
        primary = _FULL
    name, text, hint = _KNOWN.get(primary, ("store.io", "the log cannot be read or written", None))
    return StoreError(f"{text}: {error}", code=name, where=where, hint=hint)
