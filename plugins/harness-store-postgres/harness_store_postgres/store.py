"""The tables of the store: settings and a host go in, the opened log comes out, or a refusal that changed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.host import StoreHost

from .link import Connection, DriverError, Link
from .log import PostgresStore
from .schema import APPLICATION, CREATE, FORM, FORMAT, LOOK

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["look_at_store", "open_store"]

_COLUMNS = (
    "SELECT count(*) FROM pg_attribute"
    " WHERE attrelid = to_regclass('log') AND attname IN ('application', 'format') AND NOT attisdropped"
)
_WHOSE = "SELECT application, format FROM log"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(1213353555, hashtext(%s))"
_SCHEMA = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"


def open_store(settings: Settings, host: StoreHost) -> PostgresStore:
    """Open the log; make it when its schema is not there or empty.

    Args:
        settings: Where it lies and how durable it is.
        host: For ports.

    Raises:
        StoreCorrupt: ``store.foreign``, ``store.newer`` or ``store.corrupt``; nothing was changed.
        StoreError: The server cannot be reached, refuses, or is too old.
    """
    link = Link(settings, host.ports.clock.sleep)
    connection = link.connect(writes=True)
    try:
        if not _look(connection, link.where):
            _create(connection, settings.schema_name, link.where)
    except DriverError as error:
        lost = connection.closed
        connection.close()
        raise link.failure(error, lost=lost) from error
    except BaseException:
        connection.close()
        raise
    return PostgresStore(connection, link=link, ports=host.ports)


def look_at_store(settings: Settings, host: StoreHost) -> str:
    """Say whether the log would open; nothing is made and nothing is written.

    Raises:
        StoreCorrupt: As ``open_store``.
        StoreError: As ``open_store``.
    """
    link = Link(settings, host.ports.clock.sleep)
    connection = link.connect()
    try:
        there = _look(connection, link.where)
        synced = connection.execute("SELECT current_setting('fsync')").fetchone() == ("on",)
    except DriverError as error:
        raise link.failure(error, lost=connection.closed) from error
    finally:
        connection.close()
    if not synced:
        hint = "set fsync = on, or a crash of the server may cost the whole log"
        raise StoreError("the server does not wait for the disk", code="store.not_durable", where=link.where, hint=hint)
    return f"{link.where} opens" if there else f"{link.where} is not there yet, made when needed"


def _look(connection: Connection, where: str) -> bool:
    """Whether the log is there and of the right form."""
    form = connection.execute(LOOK).fetchone()
    if form is None or form[0] is None:
        return False
    if connection.execute(_COLUMNS).fetchone() != (2,):
        raise _foreign(where)
    whose = connection.execute(_WHOSE).fetchone()
    if whose is None or whose[0] != APPLICATION:
        raise _foreign(where)
    if whose[1] > FORMAT:
        text = f"the log has format {whose[1]}, this version reads {FORMAT}"
        hint = "use the version of harness-store-postgres that wrote it"
        raise StoreCorrupt(text, code="store.newer", where=where, hint=hint, found=whose[1], supported=FORMAT)
    if form[0] != FORM or whose[1] != FORMAT:
        raise StoreCorrupt("tables or triggers of the log were changed", code="store.corrupt", where=where)
    return True


def _foreign(where: str) -> StoreCorrupt:
    hint = "name a schema of its own for the log: store: {plugin: postgres, schema_name: ...}"
    return StoreCorrupt("the schema belongs to another program", code="store.foreign", where=where, hint=hint)


def _create(connection: Connection, schema: str, where: str) -> None:
    """Make all of it or nothing; whoever comes second finds it made by the first."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")  # the log itself is never lost
        connection.execute(_ONE_AT_A_TIME, (schema,))
        if connection.execute(_SCHEMA, (schema,)).fetchone() == (0,):
            connection.execute(f'CREATE SCHEMA "{schema}"')  # settings allow a plain name
        if not _look(connection, where):
            for statement in CREATE:
                connection.execute(statement)
