"""The log itself: opened connections go in, the ``Store`` of the contract comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from harness_hookspecs.errors import NotFound, StoreCorrupt, StoreError
from harness_hookspecs.host import Ports
from harness_hookspecs.store import GENESIS_HASH, Backup, Draft, Head, Posted, Pruned, Snapshot, StoredEvent, StoreStats

from .driver import Connection, DriverError
from .failure import FOLDER_HINT
from .pruning import pruning
from .reader import FOREVER, Readers
from .stats import has_table, stats_of
from .writer import T, Work, Writer
from .writes import Append, Content, DropSnapshots, Keep, Post, Summarise, pack, unpack

__all__ = ["SqliteStore"]

_HEAD = "SELECT seq, hash FROM streams WHERE name = ?"
_STREAMS = "SELECT name FROM streams WHERE seq > 0 ORDER BY id"
_WORTH_ASKING_BYTES = 4096
_new = tuple.__new__  # a third of the time of ``Append(...)``
_HAS_BLOB = "SELECT 1 FROM blobs WHERE digest = ?"
_BLOB = "SELECT size, deflated, content FROM blobs WHERE digest = ?"
_SNAPSHOT = (
    "SELECT seq, content FROM snapshots"
    " WHERE sid = (SELECT id FROM streams WHERE name = ?) AND maker = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
)
_POSTED = "SELECT session, command_id, body, taken_seq FROM inbox"


class SqliteStore:
    """The ``Store`` over one SQLite file; see the protocol for what each method promises.

    Args:
        path: The file.
        writer: The writing connection.
        connect: Opens a reading connection.
        copy: Copies what a connection sees into a new file.
        ports: For locks and boundaries.
        failure: Names an error of the driver.
    """

    def __init__(
        self,
        path: Path,
        writer: Connection,
        *,
        connect: Callable[[], Connection],
        copy: Callable[[Connection, Path], Backup],
        ports: Ports,
        failure: Callable[[BaseException], StoreError],
    ) -> None:
        self._path, self._copy = path, copy
        self._writer = Writer(writer, ports, failure)
        self._readers = Readers(connect, failure)
        self._reach = ports.reach
        self._failure = failure
        self._watch_lock = ports.wait.lock()
        self._watch: Connection | None = None

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected_seq: int | None,
        blobs: Mapping[str, bytes] | None = None,
        taken: Mapping[str, int] | None = None,
        summary: bytes | None = None,
    ) -> tuple[StoredEvent, ...]:
        if not drafts:
            raise StoreError("An append needs at least one event.", code="store.empty", where=stream)
        contents = [self._packed(content, claimed=digest) for digest, content in blobs.items()] if blobs else ()
        work = _new(Append, (stream, drafts, expected_seq, contents, taken, summary))
        self._reach("append.before")
        events = self._writer.run(work)
        self._reach("append.committed")
        return events

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        return self._readers.events(stream, after, until)

    def head(self, stream: str) -> Head:
        row = self._readers.first(_HEAD, (stream,))
        return Head(*row) if row else Head(0, GENESIS_HASH)

    def streams(self) -> Sequence[str]:
        return [name for (name,) in self._readers.all(_STREAMS)]

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        return self._readers.summaries() if has_table(self._readers, "summaries") else iter(())

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        self._write_cache("snapshots", Keep(stream, seq, maker, content))

    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        last = FOREVER if until is None else max(-1, min(until, FOREVER))
        there = has_table(self._readers, "snapshots")
        row = self._readers.first(_SNAPSHOT, (stream, maker, last)) if there else None
        return Snapshot(*row) if row else None

    def drop_snapshots(self) -> None:
        self._write_cache("snapshots", DropSnapshots())

    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        return self._write_cache("summaries", Summarise(stream, seq, summary))

    def _write_cache(self, table: str, work: Work[T]) -> T:
        """A file that may only be read can lack it: one of format 1, and one whose caches somebody dropped."""
        if not has_table(self._readers, table):
            text = f"the log has no table of {table}, and nothing could be added to it when it was opened"
            raise StoreError(text, code="store.readonly", hint=FOLDER_HINT)
        return self._writer.run(work)

    def stats(self) -> StoreStats:
        return stats_of(self._readers, self._path)

    def backup(self, target: Path) -> Backup:
        with closing(self._readers.extra()) as source:
            return self._copy(source, target.absolute())

    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        work = pruning(self._readers, ended, drafts)
        self._reach("append.before")
        pruned = self._writer.run(work)
        self._reach("append.committed")
        return pruned

    def put_blob(self, content: bytes) -> str:
        packed = self._packed(content)
        self._writer.run(packed)
        return packed.digest.hex()

    def _packed(self, content: bytes, *, claimed: str | None = None) -> Content:
        digest = sha256(content)
        if claimed is not None and claimed != digest.hexdigest():
            raise StoreError("The content does not hash to its digest.", code="store.blob", digest=claimed)
        # Asking costs about as much as storing a small content once more; only large ones are worth it.
        large = len(content) > _WORTH_ASKING_BYTES
        known = large and self._readers.first(_HAS_BLOB, (digest.digest(),)) is not None
        return pack(content, digest.digest(), known=known)

    def blob(self, digest: str) -> bytes:
        row = self._readers.first(_BLOB, (bytes.fromhex(digest),)) if _is_digest(digest) else None
        if row is None:
            raise NotFound("There is no content of that digest.", where=digest)
        content = unpack(*row)
        if content is None or sha256(content).hexdigest() != digest:
            raise StoreCorrupt("The content does not hash to its digest.", code="store.changed", where=digest)
        return content

    def post(self, session_id: str, command_id: str, body: bytes) -> Posted:
        return self._writer.run(Post(session_id, command_id, body))

    def take(self, session_id: str) -> Sequence[Posted]:
        where = " WHERE session = ? AND taken_seq IS NULL ORDER BY position"
        return [Posted(*row) for row in self._readers.all(_POSTED + where, (session_id,))]

    def posted(self, command_id: str) -> Posted | None:
        row = self._readers.first(_POSTED + " WHERE command_id = ?", (command_id,))
        return Posted(*row) if row else None

    def change_counter(self) -> int:
        # SQLite counts, for each connection, the commits of all others: so this one never writes.
        with self._watch_lock:
            if self._watch is None:
                self._watch = self._readers.extra()
            try:
                counter: int = self._watch.execute("PRAGMA data_version").fetchone()[0]
            except DriverError as error:
                raise self._failure(error) from error
        return counter

    def close(self) -> None:
        connection = self._writer.close()
        if connection is None:
            return
        self._readers.close()
        with self._watch_lock:
            if self._watch is not None:
                self._watch.close()
        with suppress(DriverError):  # another process may be reading; then it, or the next one, does this
            connection.execute("PRAGMA busy_timeout = 0").close()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        connection.close()


def _is_digest(digest: str) -> bool:
    return len(digest) == 64 and not digest.strip("0123456789abcdef")
