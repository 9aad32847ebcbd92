"""What the store needs of a database connection: a PEP 249 connection goes in, the same one typed comes out."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final, Protocol

__all__ = [
    "READ_ERRORS",
    "Connection",
    "Cursor",
    "DatabaseFactory",
    "DriverError",
    "IntegrityError",
    "PeeweeException",
    "SqliteDatabase",
]

_OTHER_DRIVERS: Final = {"MySQLdb", "psycopg", "psycopg2", "psycopg2cffi", "pymysql"}


def _peewee() -> ModuleType:
    """Import peewee without the drivers of other databases: it takes every one that is installed (psycopg: 0.1 s).

    It is nobody else's: who imports peewee gets one with all of them. When somebody has done so, that one is taken.
    """
    spec = None if "peewee" in sys.modules else find_spec("peewee")
    if spec is None or spec.loader is None:
        import peewee

        return peewee
    module = module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
    spec.loader.exec_module(module)
    return module


def _import(name: str, *details: Any) -> Any:
    if name.partition(".")[0] in _OTHER_DRIVERS:
        raise ModuleNotFoundError(f"{name} is the driver of another database", name=name)
    return builtins.__import__(name, *details)


_used = _peewee()
_sqlite = _used.sqlite3  # pysqlite3 where that is newer than Python's own; never two of them on a file in one process
DriverError: type[Exception] = _sqlite.Error
READ_ERRORS: tuple[type[Exception], ...] = (DriverError, UnicodeDecodeError)
"""What reading raises: the driver takes every text for UTF-8, the definition of a damaged file's table as well."""

IntegrityError: type[Exception] = _sqlite.IntegrityError
PeeweeException: type[Exception] = _used.PeeweeException
SqliteDatabase: Callable[..., Any] = _used.SqliteDatabase


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
