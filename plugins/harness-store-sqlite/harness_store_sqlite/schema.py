"""The form of the file as SQL: nothing goes in, statements and the versions they hold for come out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from typing import Final

__all__ = [
    "APPLICATION_ID",
    "CACHES",
    "EVENT_COLUMNS",
    "FILL_LOG",
    "FORMAT",
    "MAX_ROWS",
    "MAX_ROWS_ALONE",
    "SMALL_CACHE",
    "USUAL_CACHE",
    "affected",
    "creation",
    "form",
    "guards",
    "insert_events",
    "pragmas",
    "steps",
]

APPLICATION_ID: Final = 0x48524E53
"""``HRNS`` in the file's header says whose file it is."""

FORMAT: Final = 2
"""The version of this form, ``user_version`` of the file. A file with a greater one is refused."""

MAX_ROWS: Final = 128
"""How many events one INSERT takes. Fewer make a large batch slower, more take long to prepare."""

MAX_ROWS_ALONE: Final = 64
"""How many events one INSERT takes that is a transaction of its own."""

_PAGE_BYTES: Final = 2048
"""A commit writes three pages at least, so small ones make the append of one event a tenth quicker."""

_CHECKPOINT_PAGES: Final = 1000
"""2 MiB of write-ahead log, then it is folded into the file and begun anew: folding it more often would cost a step
more than a twentieth of an fsync."""

SMALL_CACHE: Final = "PRAGMA cache_size = 8"
"""With so few pages SQLite writes those of a large content into the log before they are committed."""

USUAL_CACHE: Final = "PRAGMA cache_size = -2000"
"""SQLite's own default, in KiB."""

FILL_LOG: Final = f"INSERT INTO blobs VALUES (x'', 0, 0, zeroblob({_CHECKPOINT_PAGES * _PAGE_BYTES}))"
"""Makes the write-ahead log as large as it usually gets; rolled back, its pages are nobody's and are written over."""

_FIRST: Final = """
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, hash BLOB NOT NULL
) STRICT

CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    sid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    batch INTEGER,
    key TEXT,
    hash BLOB NOT NULL,
    envelope TEXT NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE (sid, seq)
) STRICT

CREATE UNIQUE INDEX events_key ON events (sid, key) WHERE key IS NOT NULL

CREATE TABLE blobs (
    digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, deflated INTEGER NOT NULL, content BLOB NOT NULL
) STRICT

CREATE TABLE inbox (
    position INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    command_id TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL,
    taken_seq INTEGER
) STRICT

CREATE INDEX inbox_waiting ON inbox (session, position) WHERE taken_seq IS NULL

CREATE TRIGGER events_head AFTER INSERT ON events WHEN NEW.batch IS NOT NULL BEGIN
    UPDATE streams SET hash = NEW.hash,
        seq = CASE WHEN seq = NEW.seq - NEW.batch THEN NEW.seq ELSE RAISE(ABORT, 'gap') END
    WHERE id = NEW.sid;
END

CREATE TRIGGER inbox_once BEFORE UPDATE ON inbox
WHEN OLD.taken_seq IS NOT NULL OR NEW.taken_seq IS NULL OR NEW.position IS NOT OLD.position
    OR NEW.session IS NOT OLD.session OR NEW.command_id IS NOT OLD.command_id OR NEW.body IS NOT OLD.body
BEGIN SELECT RAISE(ABORT, 'a posted command is never changed'); END
"""
# The envelope is one text, the very lines that the hash chain covers: a column each would cost a quarter of the time
# of an append, and nothing is looked up by them. The head is moved by the last row of a batch alone, which carries the
# length of its batch: a trigger that fires for each row costs twice as much. An event's id needs no index. A command
# keeps its row for ever; the one thing that happens to it is that it is taken, once.


_SUMMARIES: Final = (
    "CREATE TABLE summaries (sid INTEGER PRIMARY KEY, changed INTEGER NOT NULL, document BLOB NOT NULL) STRICT",
    "CREATE INDEX summaries_changed ON summaries (changed)",
)

_SNAPSHOTS: Final = """
CREATE TABLE snapshots (
    sid INTEGER NOT NULL, seq INTEGER NOT NULL, maker TEXT NOT NULL, content BLOB NOT NULL, UNIQUE (sid, seq)
) STRICT
"""

CACHES: Final = frozenset((*_SUMMARIES, _SNAPSHOTS.strip()))
"""Makes what holds nothing that the events do not say. It may be missing in a file, and is made again then, empty."""


def _forbid(action: str, table: str) -> str:
    name, text = f"{table}_no_{action.lower()}", "the log is append-only"
    return f"CREATE TRIGGER {name} BEFORE {action} ON {table} BEGIN SELECT RAISE(ABORT, '{text}'); END"


_ADDED: Final[Mapping[int, tuple[str, ...]]] = {
    1: (
        *_FIRST.strip().split("\n\n"),
        *_SUMMARIES,
        *(_forbid(action, table) for table in ("events", "blobs") for action in ("UPDATE", "DELETE")),
        *(_forbid("DELETE", table) for table in ("streams", "inbox")),
    ),
    2: (_SNAPSHOTS.strip(),),
}
# By each format to the one before. No format changes or removes what an earlier one made: files of it lie everywhere.

EVENT_COLUMNS: Final = "position, seq, envelope, payload, hash"
"""What ``rows.event`` makes an event of."""


@cache
def insert_events(count: int, keyed: bool, /) -> str:
    """The INSERT of ``count`` events in one statement, with as few parameters as can be.

    They are: the stream's number, the seq before the first event, the length of the batch that ends here (``None``
    when it goes on), then hash, envelope and payload of each event and, when ``keyed``, the key of each.
    """
    rows = []
    for index in range(count):
        own = [f"?{4 + 3 * index + column}" for column in range(3)] + [f"?{4 + 3 * count + index}"] * keyed
        rows.append(f"(?1, ?2 + {index + 1}, {'?3' if index == count - 1 else 'NULL'}, {', '.join(own)})")
    columns = "sid, seq, batch, hash, envelope, payload" + (", key" if keyed else "")
    return f"INSERT INTO events ({columns}) VALUES {', '.join(rows)}"


def pragmas(*, synchronous: str, busy_milliseconds: int = 30_000) -> tuple[str, ...]:
    """What every connection says first; ``fullfsync`` matters on macOS only, whose fsync does not reach the disk."""
    full = synchronous == "FULL"
    return (
        f"PRAGMA busy_timeout = {busy_milliseconds}",
        f"PRAGMA synchronous = {synchronous}",
        f"PRAGMA fullfsync = {int(full)}",
        f"PRAGMA checkpoint_fullfsync = {int(full)}",
        f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        "PRAGMA journal_size_limit = 16777216",
        "PRAGMA trusted_schema = OFF",
    )


def form(version: int) -> tuple[str, ...]:
    """The statements of that format; a file that holds others, or lacks one that is not of :data:`CACHES`, was
    tampered with."""
    return tuple(statement for number, added in _ADDED.items() if number <= version for statement in added)


def guards(*tables: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What lets rows of these tables be deleted, and what forbids it again: both in one transaction, so that nobody
    ever sees the log without its guards."""
    dropped = tuple(f"DROP TRIGGER {table}_no_delete" for table in tables)
    return dropped, tuple(_forbid("DELETE", table) for table in tables)


def steps(version: int, held: Set[str]) -> tuple[str, ...]:
    """What brings a file of that format, which holds these statements, to ours, within a transaction: what it lacks,
    and the number."""
    lacking = tuple(statement for statement in form(FORMAT) if statement not in held)
    return lacking if version == FORMAT else (*lacking, f"PRAGMA user_version = {FORMAT}")


def creation() -> tuple[str, ...]:
    """All statements that make an empty store in an empty file, in order."""
    return (
        f"PRAGMA page_size = {_PAGE_BYTES}",
        "BEGIN EXCLUSIVE",
        *steps(0, frozenset()),
        f"PRAGMA application_id = {APPLICATION_ID}",
        "COMMIT",
        "PRAGMA journal_mode = WAL",
    )


def affected(version: str) -> bool:
    """Whether this SQLite can lose acknowledged commits of a WAL file that several connections use.

    The WAL-reset race was in 3.7.0 to 3.51.2; 3.44.6 and 3.50.7 carry the correction too.
    """
    major, minor, patch, *_ = (*(int(part) for part in version.split(".")[:3]), 0, 0)
    if (major, minor, patch) in {(3, 44, 6), (3, 50, 7)}:
        return False
    return (3, 7, 0) <= (major, minor, patch) <= (3, 51, 2)
