"""What the store needs of a database connection: a PEP 249 connection goes in, the same one typed comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

# pysqlite3 where that is newer than Python's own; two libraries must never share a file in one process
from peewee import PeeweeException
from peewee import sqlite3 as _sqlite  # type: ignore[attr-defined]

__all__ = ["Connection", "Cursor", "DatabaseFactory", "DriverError", "IntegrityError", "PeeweeException"]

DriverError: type[Exception] = _sqlite.Error
IntegrityError: type[Exception] = _sqlite.IntegrityError


class Cursor(Protocol):
    """The rows of one statement."""

    @property
    def lastrowid(self) -> int | None: ...

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def close(self) -> None: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One connection, in autocommit mode, used by one thread at a time but not always by the same one."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def backup(self, target: Any, /) -> None: ...

    def close(self) -> None: ...


DatabaseFactory = Callable[[str], Any]
"""Takes an SQLite URI and gives a peewee ``Database``, whose ``connection()`` is a :class:`Connection` and raises
:data:`DriverError` with ``sqlite_errorcode``. Tests hand in one that fails on purpose."""
