"""A disk that fails on purpose: the number of a write goes in, a peewee database whose file fails there comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

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


class FaultyDisk(apsw.VFS):
    """Passes everything on to the real disk, but fails when it is told to.

    Attributes:
        operations: Writes, syncs and truncations so far.
        fails_at: The operation from which on ``lasting`` or one operation fails; ``None`` for never.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.operations = 0
        self.fails_at: int | None = None
        self.error: type[apsw.Error] = apsw.FullError
        self.lasting = False
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def excepthook(self, *_: object) -> bool:
        """What SQLite cannot hand on is of no interest."""
        return True

    def step(self) -> None:
        """Count one operation, and fail."""
        self.operations += 1
        if self.fails_at is not None and (
            self.operations == self.fails_at or (self.lasting and self.operations > self.fails_at)
        ):
            raise self.error("on purpose")

    def database(self, uri: str) -> Any:
        """The factory for the store."""
        return _Database(uri, self.name)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.step()  # nobody pulls the plug here, so nothing need reach the disk

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.disk.step()
        super().xTruncate(size)

    def excepthook(self, *_: object) -> bool:
        """As for the disk."""
        return True


class _Database(SqliteDatabase):
    def __init__(self, uri: str, disk: str) -> None:
        super().__init__(uri, thread_safe=False)
        self.disk = disk

    def _connect(self) -> Any:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        return _Connection(apsw.Connection(self.database, flags=flags, vfs=self.disk))


class _Connection:
    """What the store uses of a connection, over apsw."""

    def __init__(self, own: apsw.Connection) -> None:
        self.own = own

    @property
    def in_transaction(self) -> bool:
        return self.own.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> _Cursor:
        try:
            return _Cursor(self.own, self.own.cursor().execute(sql, tuple(parameters)))
        except apsw.Error as error:
            raise _translated(error) from error

    def close(self) -> None:
        with suppress(apsw.Error):  # of the checkpoint that is tried then, of which SQLite itself says nothing
            self.own.close()


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


def _translated(error: apsw.Error) -> Exception:
    kind = sqlite.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite.OperationalError
    translated: Exception = kind(str(error))
    own = {apsw.FullError: apsw.SQLITE_FULL, apsw.IOError: apsw.SQLITE_IOERR}.get(type(error), apsw.SQLITE_ERROR)
    translated.sqlite_errorcode = getattr(error, "extendedresult", own)  # type: ignore[attr-defined]
    return translated
