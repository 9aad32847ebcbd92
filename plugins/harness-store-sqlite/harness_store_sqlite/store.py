"""The file of the store: settings and a host go in, the opened log comes out, or a refusal that changed nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.host import StoreHost
from harness_hookspecs.store import Backup

from .copying import proved
from .driver import READ_ERRORS, Connection, DatabaseFactory, DriverError, PeeweeException, SqliteDatabase
from .failure import CORRUPT_HINT, FOLDER_HINT, failure
from .log import SqliteStore
from .schema import APPLICATION_ID, CACHES, FORMAT, affected, creation, form, pragmas, steps

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["default_database", "look_at_store", "open_store"]

_FILE: Final = "harness.db"
_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_SCARCE_BYTES: Final = 131_072
_FILES_OF_A_CONNECTION: Final = 3
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_COPY_HINT: Final = "nothing was copied; name a file in a folder that can be written, with room for the whole log"
_LEFT_AS_IT_IS: Final = {"store.readonly", "store.full", "store.busy"}
_LIMITS: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


def default_database(uri: str) -> Any:
    """A peewee database for one connection, which threads pass on to each other."""
    return SqliteDatabase(uri, uri=True, thread_safe=False, check_same_thread=False, cached_statements=256)


def open_store(settings: Settings, host: StoreHost, *, database: DatabaseFactory = default_database) -> SqliteStore:
    """Open the log; make it when there is no file of that name at all, add to it what it lacks: what one of an earlier
    format does, and caches that somebody dropped.

    Args:
        settings: Where it lies and how durable it is.
        host: For ports and the data directory.
        database: Makes the peewee database of each connection.

    Raises:
        StoreCorrupt: ``store.foreign``, ``store.newer`` or ``store.corrupt``; the file was left as it is.
        StoreError: ``store.sqlite_version``: this SQLite can lose commits; or the file cannot be opened.
    """
    path = _path(settings, host)
    said = pragmas(synchronous=settings.synchronous)
    with _named(path):
        _refuse_affected(path, database)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _create(path, database)
        _look_at_header(path)
        lacks = _look_inside(path, database)
        writer = _connect(path, database, said)
        if lacks:
            _bring_forward(path, writer)
    return SqliteStore(
        path,
        writer,
        connect=lambda: _reader(path, database, said),
        copy=lambda source, target: _copy(source, target, database),
        ports=host.ports,
        failure=lambda error: failure(error, str(path), full=_is_full(path.parent)),
    )


def look_at_store(settings: Settings, host: StoreHost, *, database: DatabaseFactory = default_database) -> str:
    """Say whether the log would open; nothing is made and nothing is written.

    Raises:
        StoreCorrupt: As ``open_store``.
        StoreError: As ``open_store``.
    """
    path = _path(settings, host)
    with _named(path):
        _refuse_affected(path, database)
        if not os.path.lexists(path):
            return f"{path} is not there yet, made when needed"
        _look_at_header(path)
        # A reader of a write-ahead log leaves a map of it behind; where there is none the file alone says everything.
        _look_inside(path, database, mode="ro" if _has_write_ahead_log(path) else "ro&immutable=1")
    return f"{path} opens"


def _path(settings: Settings, host: StoreHost) -> Path:
    return host.data_dir / Path(settings.path or _FILE).expanduser()


def _has_write_ahead_log(path: Path) -> bool:
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except FileNotFoundError:
        return False


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except READ_ERRORS as error:
        limit = _limit()
        if limit is not None:
            raise _unopened(path, limit) from limit
        raise failure(error, str(path), full=_is_full(path.parent)) from error
    except OSError as error:
        raise _unopened(path, error) from error


def _unopened(path: Path, error: OSError) -> StoreError:
    text = f"the log cannot be opened: {error.strerror or error}"
    code = "store.readonly" if isinstance(error, PermissionError) else "store.io"
    return StoreError(text, code=code, where=str(path), hint=None if error.errno in _LIMITS else FOLDER_HINT)


def _limit() -> OSError | None:
    """The limit of the machine that stands in the way, which SQLite calls a file that it is unable to open.

    The log itself is not opened for it: to close it again would give up the locks that this process has on it.
    """
    opened: list[int] = []
    try:
        while len(opened) < _FILES_OF_A_CONNECTION:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error if error.errno in _LIMITS else None
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None


def _is_full(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _SCARCE_BYTES


def _connect(path: Path, database: DatabaseFactory, statements: tuple[str, ...], *, mode: str = "rw") -> Connection:
    handle = database(f"{path.absolute().as_uri()}?mode={mode}")
    try:
        handle.connect()
    except PeeweeException as error:  # here alone peewee stands between, whose errors are none of the driver's
        raise (error.__context__ or error) from None
    connection: Connection = handle.connection()
    try:
        for statement in statements:
            connection.execute(statement).close()
    except BaseException:
        connection.close()
        raise
    return connection


def _reader(path: Path, database: DatabaseFactory, said: tuple[str, ...]) -> Connection:
    with _named(path):
        return _connect(path, database, (*said, "PRAGMA query_only = ON"))


def _refuse_affected(path: Path, database: DatabaseFactory) -> None:
    """Refuse before the file is touched: a database in memory, made the same way, tells the version too."""
    handle = database("file::memory:")
    handle.connect()
    connection: Connection = handle.connection()
    version = connection.execute("SELECT sqlite_version()").fetchone()[0]
    connection.close()
    if affected(version):
        raise StoreError(
            f"SQLite {version} can lose committed events when several processes use one file",
            code="store.sqlite_version",
            hint="install pysqlite3 0.6.1 or newer, which brings an SQLite without that fault",
            where=str(path),
            version=version,
        )


def _create(path: Path, database: DatabaseFactory) -> None:
    """Make the file under another name and give it its own when it is whole; whoever comes second uses the first's."""
    with _draft_of(path) as draft:
        _connect(draft, database, (*pragmas(synchronous="FULL"), *creation())).close()
        with suppress(FileExistsError):
            _name(draft, path)
        _sync_folder(path.parent)


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """A file beside it, one a call and not one a process, of which nothing is left in the end."""
    from tempfile import mkstemp

    handle, name = mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _name(draft: Path, path: Path) -> None:
    """Give a whole file its name; ``FileExistsError`` when there is something of that name already."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):  # a disk without links: of two that come at the very same moment the last one wins
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        draft.rename(path)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy(source: Connection, target: Path, database: DatabaseFactory) -> Backup:
    """Copy what the connection sees at this moment; nobody else may use it meanwhile."""
    said = pragmas(synchronous="FULL")
    with _named_copy(target):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        with _draft_of(target) as draft:
            with closing(_connect(draft, database, said)) as copy:
                source.backup(copy)
            with closing(_connect(draft, database, said, mode="ro&immutable=1")) as copy:  # so nothing lies beside it
                made = proved(copy, draft.stat().st_size)
            _name(draft, target)
            _sync_folder(target.parent)
    return made


@contextmanager
def _named_copy(target: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        text, hint = "there is something of that name, which stays as it is", "name a file that is not there yet"
        raise StoreError(text, code="store.exists", where=str(target), hint=hint) from error
    except READ_ERRORS as error:
        raise failure(error, str(target), full=_is_full(target.parent)) from error
    except OSError as error:
        code = "store.readonly" if isinstance(error, PermissionError) else "store.io"
        code = "store.full" if error.errno in _NO_ROOM else code
        text = f"the copy cannot be written: {error.strerror or error}"
        raise StoreError(text, code=code, where=str(target), hint=_COPY_HINT) from error


def _look_at_header(path: Path) -> None:
    """Refuse what is not ours by its first bytes, before SQLite may touch anything."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        text = "the file is empty or cut off" if len(header) < _HEADER_BYTES else "this is no SQLite file"
        raise StoreCorrupt(text, code="store.corrupt", where=str(path), hint=CORRUPT_HINT)
    _refuse_foreign(path, int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big"))


def _refuse_foreign(path: Path, application_id: int, version: int) -> None:
    if application_id != APPLICATION_ID:
        hint = "name another file for the log: store: {plugin: sqlite, path: ...}"
        raise StoreCorrupt("the database belongs to another program", code="store.foreign", where=str(path), hint=hint)
    if version > FORMAT:
        text = f"the log has format {version}, this version reads {FORMAT}"
        hint = "use the version of harness-store-sqlite that wrote it"
        raise StoreCorrupt(text, code="store.newer", where=str(path), hint=hint, found=version, supported=FORMAT)


def _look_inside(path: Path, database: DatabaseFactory, *, mode: str = "ro") -> bool:
    """Refuse, on a connection that cannot write, what only the write-ahead log tells; gives whether it lacks a table,
    as one of an earlier format does, and one whose caches somebody dropped."""
    connection = _connect(path, database, ("PRAGMA busy_timeout = 30000", "BEGIN"), mode=mode)
    try:
        return bool(_steps(path, connection))
    finally:
        connection.close()


def _steps(path: Path, connection: Connection) -> tuple[str, ...]:
    """What the file lacks, within a transaction, since another process may add it; refuses a changed form."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    _refuse_foreign(path, application_id, version)
    held = {row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()}
    of_its_format = set(form(version))
    if version < 1 or not of_its_format - CACHES <= held <= of_its_format:
        text = "tables or triggers of the log were changed"
        raise StoreCorrupt(text, code="store.corrupt", where=str(path), hint=CORRUPT_HINT)
    return steps(version, held)


def _bring_forward(path: Path, writer: Connection) -> None:
    """Add what a file of an earlier format lacks, all or nothing.

    Where it may only be read, there is no room, or another holds it for too long, it stays as it is and is read on.
    """
    try:
        _add(path, writer)
    except DriverError as error:
        if failure(error, str(path), full=_is_full(path.parent)).code not in _LEFT_AS_IT_IS:
            writer.close()
            raise
    except BaseException:
        writer.close()
        raise


def _add(path: Path, writer: Connection) -> None:
    try:
        writer.execute("BEGIN IMMEDIATE").close()
        for statement in (*_steps(path, writer), "COMMIT"):  # none for whoever comes second
            writer.execute(statement).close()
    except DriverError:
        if writer.in_transaction:
            writer.execute("ROLLBACK").close()
        raise
