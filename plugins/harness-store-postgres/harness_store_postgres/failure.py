"""What a database error means: an error of the driver goes in, one of ours comes out."""

from __future__ import annotations

from typing import Final

import psycopg

from harness_hookspecs.errors import StoreCorrupt, StoreError

__all__ = ["failure", "is_fault_of_one", "is_passing"]

_DENIED_HINT: Final = "ask whoever keeps the server for the right to use this schema"
_SERVER_HINT: Final = "see that the server runs; what is finished is kept, then resume"

# By SQLSTATE, the whole of it or its class (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_KNOWN: Final[dict[str, tuple[str, str, str | None]]] = {
    "08": ("store.unreachable", "the connection was lost", _SERVER_HINT),
    "25006": ("store.readonly", "the log is read-only", "connect to the server that takes writes"),
    "28": ("store.denied", "the server refused the connection", _DENIED_HINT),
    "40": ("store.busy", "the server kept putting others first", None),
    "42501": ("store.denied", "the right to do this is missing", _DENIED_HINT),
    "53100": ("store.full", "there is no space left for the log", "make room, then resume: nothing was written"),
    "53300": ("store.busy", "the server has no connection left", None),
    "54": ("store.too_large", "the content is larger than the log can hold", None),
    "55P03": ("store.busy", "another process held the log for too long", None),
    "57014": ("store.busy", "the server gave the statement up", None),
    "57": ("store.unreachable", "the server went away", _SERVER_HINT),
    "22": ("store.malformed", "what is to be written is malformed", None),
}
_BROKEN: Final[dict[str, str]] = {
    "23": "the rows and the head of the stream contradict each other",
    "3F": "the schema of the log is gone",
    "42P01": "a table of the log is gone",
    "42703": "a column of the log is gone",
    "XX": "the database is damaged",
}
_PASSING: Final = ("40001", "40P01")
_OF_ONE: Final = ("22", "23", "54")


def failure(error: psycopg.Error, where: str, *, lost: bool = False) -> StoreError:
    """Name what went wrong.

    Args:
        error: What the driver raised; its SQLSTATE is looked at, which no language of messages changes.
        where: The server, the database and the schema; never a password.
        lost: Whether the connection is gone, of which the driver knows no SQLSTATE.
    """
    state = error.sqlstate or ("08000" if lost else "")
    text = _plain(error)
    for part in (state, state[:2]):
        if part in _BROKEN:
            return StoreCorrupt(f"{_BROKEN[part]}: {text}", code="store.corrupt", where=where)
        if part in _KNOWN:
            code, what, hint = _KNOWN[part]
            return StoreError(f"{what}: {text}", code=code, where=where, hint=hint)
    if isinstance(error, psycopg.DataError):  # what the driver itself cannot send
        return StoreError(f"what is to be written is malformed: {text}", code="store.malformed", where=where)
    return StoreError(f"the log cannot be read or written: {text}", code="store.io", where=where)


def _plain(error: psycopg.Error) -> str:
    """The first line: the following ones may quote what was to be stored."""
    return error.diag.message_primary or next(iter(str(error).splitlines()), type(error).__name__)


def is_passing(error: psycopg.Error) -> bool:
    """Whether the server asks to try again, having undone everything."""
    return error.sqlstate in _PASSING


def is_fault_of_one(error: BaseException | None) -> bool:
    """Whether one of several works in a transaction may have caused it, so that the others would go through alone."""
    return isinstance(error, psycopg.DataError) or (
        isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_OF_ONE)
    )
