"""Connections to the server: settings go in, connections in autocommit mode come out, or the reason why there is none.

Where the server is and who asks is libpq's own affair: its environment, its service file, its password file. So no
password passes through here, and none can stand in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo, PGconn, Ping

from harness_hookspecs.errors import StoreError

from .failure import failure
from .schema import MIN_SERVER, SAID

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["Connection", "DriverError", "Link"]

Connection = psycopg.Connection[Any]
DriverError = psycopg.Error

_PAUSES_SECONDS: Final = (0.25, 1.0, 2.0)
_BUSY_PAUSES_SECONDS: Final = (0.1, 0.2, 0.7, *29 * (1.0,))
"""Together 30 s, as long as the log itself is waited for."""

_REFUSED_HINT: Final = (
    "see that PGUSER, PGDATABASE or the service file name what is there; else ask whoever keeps the server"
)

_NONE_TO_SPARE: Final = ("too many clients", "too many connections", "connection slots are reserved")
"""What servers whose messages are English say for want of a connection: of a refusal the driver knows no SQLSTATE."""

_OPTIONS: Final = {
    "connect_timeout": "10",
    "fallback_application_name": "harness",
    "client_encoding": "UTF8",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # milliseconds
}
"""A server that is no longer there is noticed, also by whoever only waits for an answer."""


class Link:
    """The way to one log.

    Args:
        settings: Which one.
        sleep: Waits so many seconds.
    """

    def __init__(self, settings: Settings, sleep: Callable[[float], None]) -> None:
        self._settings = settings
        self._sleep = sleep
        self._service = {} if settings.service is None else {"service": settings.service}
        self.where = _where(settings)

    def connect(self, *, writes: bool = False) -> Connection:
        """Open one connection, waiting for a server that has none to spare.

        Raises:
            StoreError: ``store.unreachable``, ``store.denied``, ``store.server_version``, or ``store.busy`` after 30 s.
        """
        for pause_seconds in _BUSY_PAUSES_SECONDS:
            try:
                return self._connect(writes)
            except StoreError as error:
                if error.code != "store.busy":
                    raise
            self._sleep(pause_seconds)
        return self._connect(writes)

    def _connect(self, writes: bool) -> Connection:
        try:
            connection: Connection = psycopg.connect(autocommit=True, **_OPTIONS, **self._service)  # type: ignore[arg-type]
        except psycopg.Error as error:
            raise self._refusal(error) from error
        try:
            self._say(connection, writes)
        except BaseException:
            connection.close()
            raise
        return connection

    def reconnect(self, *, writes: bool = False) -> Connection:
        """Open one in the place of one that was lost, waiting a few seconds for a server that starts again."""
        for pause_seconds in _PAUSES_SECONDS:
            try:
                return self.connect(writes=writes)
            except StoreError as error:
                if error.code != "store.unreachable":
                    raise
            self._sleep(pause_seconds)
        return self.connect(writes=writes)

    def failure(self, error: psycopg.Error, *, lost: bool = False) -> StoreError:
        """Name what went wrong on a connection, and whether it was lost by that."""
        return failure(error, self.where, lost=lost)

    def _say(self, connection: Connection, writes: bool) -> None:
        version = connection.info.server_version
        if version < MIN_SERVER:
            text = f"the server is PostgreSQL {version // 10_000}, this needs {MIN_SERVER // 10_000} or newer"
            raise StoreError(text, code="store.server_version", where=self.where)
        durable = "on" if self._settings.synchronous == "FULL" else "off"
        path = f'"{self._settings.schema_name}", pg_temp'
        try:
            connection.execute(SAID, (path, durable, "off" if writes else "on"))
        except psycopg.Error as error:
            raise self.failure(error, lost=connection.closed) from error

    def _refusal(self, error: psycopg.Error) -> StoreError:
        """Why there is no connection; the driver gives no code, and its text is in the server's language."""
        text = next(iter(str(error).splitlines()), "there was no answer")
        if any(words in str(error) for words in _NONE_TO_SPARE):
            text = f"the server has no connection left: {text}"
            return StoreError(text, code="store.busy", where=self.where)
        if PGconn.ping(make_conninfo(connect_timeout=2, **self._service).encode()) == Ping.OK:
            text = f"the server refused the connection: {text}"
            return StoreError(text, code="store.denied", where=self.where, hint=_REFUSED_HINT)
        hint = "see that the server runs and that PGHOST, PGPORT or the service file name it"
        text = f"the server cannot be reached: {text}"
        return StoreError(text, code="store.unreachable", where=self.where, hint=hint)


def _where(settings: Settings) -> str:
    """The place in a person's words, without a password."""
    if settings.service is not None:
        return f"postgres service {settings.service}, schema {settings.schema_name}"
    known = {option.keyword: (option.val or b"").decode() for option in Conninfo.get_defaults()}
    parts = [known.get(b"host", "") or "localhost", known.get(b"dbname", "") or known.get(b"user", "")]
    return f"postgres {'/'.join(parts)}, schema {settings.schema_name}"
