"""A disk that remembers, and fails on purpose: the number of a write goes in, a database that fails there comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import apsw
import pytest
from peewee import SqliteDatabase
from pysqlite3 import dbapi2 as sqlite


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[FaultyDisk]:
    """A disk of the test's own."""
    made = FaultyDisk(request.node.name)
    yield made
    made.unregister()


class Step(NamedTuple):
    """One thing that happened on the disk, or that a test noted between two of them.

    ``kind`` is ``write``, ``truncate``, ``sync``, ``delete``, or what was noted.
    """

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


class FaultyDisk(apsw.VFS):
    """Passes everything on to the real disk, remembers it, and fails when it is told to.

    Attributes:
        trace: Everything so far, in order.
        operations: Writes, syncs and truncations so far.
        fails_at: The operation at which, or from which on when ``lasting``, it fails; ``None`` for never.
        fails_on: The kinds of operations that fail.
        torn: Whether half of a write that fails is written.
        checkpoint_pages: Replaces the size at which the store has its write-ahead log folded into the file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.trace: list[Step] = []
        self.operations = 0
        self.fails_at: int | None = None
        self.fails_on: tuple[str, ...] = ("write", "truncate", "sync")
        self.error: type[apsw.Error] = apsw.FullError
        self.lasting = self.torn = False
        self.checkpoint_pages: int | None = None
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:  # noqa: N802
        super().xDelete(name, False)
        self.note("delete", name)

    def excepthook(self, *_: object) -> bool:
        """What SQLite cannot hand on is of no interest."""
        return True

    def note(self, kind: str, file: str = "", offset: int = 0, data: bytes = b"") -> None:
        """Remember one step."""
        self.trace.append(Step(kind, file, offset, data))

    def fails(self, kind: str) -> bool:
        """Count one operation; whether it fails."""
        self.operations += 1
        if self.fails_at is None or kind not in self.fails_on:
            return False
        return self.operations == self.fails_at or (self.lasting and self.operations > self.fails_at)

    def database(self, uri: str) -> Any:
        """The factory for the store."""
        return _Database(uri, self)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self.disk.fails("write"):
            if self.disk.torn:
                super().xWrite(data[: len(data) // 2], offset)
            raise self.disk.error("on purpose")
        self.disk.note("write", self.path, offset, bytes(data))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self.disk.fails("sync"):
            raise self.disk.error("on purpose")
        self.disk.note("sync", self.path)  # nobody pulls the plug here, so nothing need reach the disk

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if self.disk.fails("truncate"):
            raise self.disk.error("on purpose")
        self.disk.note("truncate", self.path, size)
        super().xTruncate(size)

    def excepthook(self, *_: object) -> bool:
        """As for the disk."""
        return True


class _Database(SqliteDatabase):
    def __init__(self, uri: str, disk: FaultyDisk) -> None:
        super().__init__(uri, thread_safe=False)
        self.disk = disk

    def _connect(self) -> Any:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        own = apsw.Connection(self.database, flags=flags, vfs=self.disk.name)
        return _Connection(own, self.disk.checkpoint_pages)


class _Connection:
    """What the store uses of a connection, over apsw."""

    def __init__(self, own: apsw.Connection, checkpoint_pages: int | None) -> None:
        self.own = own
        self.checkpoint_pages = checkpoint_pages

    @property
    def in_transaction(self) -> bool:
        return self.own.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> _Cursor:
        if sql.startswith("PRAGMA wal_autocheckpoint"):
            self._checkpoint_after(self.checkpoint_pages or int(sql.rpartition("=")[2]))
            return _Cursor(self.own, self.own.cursor())
        try:
            return _Cursor(self.own, self.own.cursor().execute(sql, tuple(parameters)))
        except apsw.Error as error:
            raise _translated(error) from error

    def _checkpoint_after(self, pages: int) -> None:
        """As SQLite does it by itself, which does not mind when it fails; apsw would raise what the disk raised."""

        def committed(own: apsw.Connection, name: str, count: int) -> int:
            with suppress(apsw.Error):
                if count >= pages:
                    own.wal_checkpoint(name)
            return apsw.SQLITE_OK

        self.own.set_wal_hook(committed)

    def close(self) -> None:
        with suppress(apsw.Error):  # of the checkpoint that is tried then, of which SQLite itself says nothing
            self.own.close(True)


class _Cursor:
    def __init__(self, connection: apsw.Connection, own: apsw.Cursor) -> None:
        self.lastrowid = connection.last_insert_rowid()
        self.own = own

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.own
        except apsw.Error as error:
            raise _translated(error) from error

    def fetchone(self) -> Any:
        return next(iter(self), None)

    def fetchall(self) -> list[Any]:
        return list(self)

    def close(self) -> None:
        self.own.close(force=True)


_CODES = {
    apsw.FullError: apsw.SQLITE_FULL,
    apsw.IOError: apsw.SQLITE_IOERR,
    apsw.ReadOnlyError: apsw.SQLITE_READONLY,
}


def _translated(error: apsw.Error) -> Exception:
    kind = sqlite.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite.OperationalError
    translated: Exception = kind(str(error))
    translated.sqlite_errorcode = getattr(error, "extendedresult", _CODES.get(type(error), apsw.SQLITE_ERROR))  # type: ignore[attr-defined]
    return translated
