"""The log itself: opened connections go in, the ``Store`` of the contract comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, LiteralString

from harness_hookspecs.errors import NotFound, StoreCorrupt, StoreError
from harness_hookspecs.host import Ports
from harness_hookspecs.store import GENESIS_HASH, Backup, Draft, Head, Posted, Pruned, Snapshot, StoredEvent, StoreStats

from .link import Connection, Link
from .pruning import pruning
from .reader import FOREVER, Readers
from .rows import encoded
from .stats import stats_of
from .writer import Writer
from .writes import POSTED, Append, Content, DropSnapshots, Keep, Post, Summarise, posted

__all__ = ["PostgresStore"]

_HEAD: Final = "SELECT seq, hash FROM streams WHERE name = %s"
_STREAMS: Final = "SELECT name FROM streams WHERE seq > 0 ORDER BY id"
_BLOB: Final = "SELECT content FROM blobs WHERE digest = %s"
_SNAPSHOT: Final = (
    "SELECT seq, content FROM snapshots WHERE stream = (SELECT id FROM streams WHERE name = %s)"
    " AND maker = %s AND seq <= %s::bigint ORDER BY seq DESC LIMIT 1"
)
_TAKE: Final[LiteralString] = f"{POSTED} WHERE session = %s AND taken_seq IS NULL ORDER BY position"
_BY_ID: Final[LiteralString] = f"{POSTED} WHERE sha256(command_id) = sha256(%s)"
_COPY_HINT: Final = "pg_dump copies a database; what was restored of it is proved by: harness events verify"
_COMMITS: Final = "SELECT commits FROM log"


class PostgresStore:
    """The ``Store`` over one schema of a database; see the protocol for what each method promises.

    Args:
        writer: The writing connection.
        link: Opens others.
        ports: For locks and boundaries.
    """

    def __init__(self, writer: Connection, *, link: Link, ports: Ports) -> None:
        self._writer = Writer(writer, link, ports)
        self._readers = Readers(link)
        self._reach = ports.reach

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
        batch = encoded(stream, drafts)
        contents = [_content(content, claimed=digest) for digest, content in (blobs or {}).items()]
        marks = {_encoded(command_id): index for command_id, index in (taken or {}).items()}
        work = Append(stream, batch, expected_seq, contents, marks, None if summary is None else _bytes(summary))
        self._reach("append.before")
        events = self._writer.run(work)
        self._reach("append.committed")
        return events

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        return self._readers.events(stream, after, until)

    def head(self, stream: str) -> Head:
        row = self._readers.first(_HEAD, (_sought(stream),))
        return Head(*row) if row else Head(0, GENESIS_HASH)

    def streams(self) -> Sequence[str]:
        return [name.decode() for (name,) in self._readers.all(_STREAMS)]

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        return self._readers.summaries()

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        self._writer.run(Keep(_encoded(stream), seq, _encoded(maker), _bytes(content)))

    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        last = FOREVER if until is None else max(-1, min(until, FOREVER))
        row = self._readers.first(_SNAPSHOT, (_sought(stream), _sought(maker), last))
        return Snapshot(*row) if row else None

    def drop_snapshots(self) -> None:
        self._writer.run(DropSnapshots())

    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        document = None if summary is None else _bytes(summary)
        return self._writer.run(Summarise(_encoded(stream), seq, document))

    def stats(self) -> StoreStats:
        return stats_of(self._readers)

    def backup(self, target: Path) -> Backup:
        self.change_counter()  # a log that cannot be asked says so first
        raise StoreError("the log lies in a database, not in a file", code="store.no_file", hint=_COPY_HINT)

    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        work = pruning(self._readers, ended, drafts)
        self._reach("append.before")
        pruned = self._writer.run(work)
        self._reach("append.committed")
        return pruned

    def put_blob(self, content: bytes) -> str:
        work = _content(content)
        self._writer.run(work)
        return work.digest.hex()

    def blob(self, digest: str) -> bytes:
        row = self._readers.first(_BLOB, (bytes.fromhex(digest),)) if _is_digest(digest) else None
        if row is None:
            raise NotFound("There is no content of that digest.", where=digest)
        content: bytes = row[0]
        if sha256(content).hexdigest() != digest:
            raise StoreCorrupt("The content does not hash to its digest.", code="store.changed", where=digest)
        return content

    def post(self, session_id: str, command_id: str, body: bytes) -> Posted:
        return self._writer.run(Post(_encoded(session_id), _encoded(command_id), _bytes(body)))

    def take(self, session_id: str) -> Sequence[Posted]:
        return [posted(row) for row in self._readers.all(_TAKE, (_sought(session_id),))]

    def posted(self, command_id: str) -> Posted | None:
        row = self._readers.first(_BY_ID, (_sought(command_id),))
        return posted(row) if row else None

    def change_counter(self) -> int:
        counter: int = self._readers.all(_COMMITS)[0][0]
        return counter

    def close(self) -> None:
        self._writer.close()
        self._readers.close()


def _content(content: bytes, *, claimed: str | None = None) -> Content:
    digest = sha256(content)
    if claimed is not None and claimed != digest.hexdigest():
        raise StoreError("The content does not hash to its digest.", code="store.blob", digest=claimed)
    return Content(digest.digest(), bytes(content))


def _is_digest(digest: str) -> bool:
    return len(digest) == 64 and not digest.strip("0123456789abcdef")


def _sought(name: str) -> bytes:
    """A name to look for; one that cannot be stored is the name of nothing."""
    return name.encode(errors="surrogatepass")


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except (AttributeError, ValueError) as error:
        raise _malformed() from error


def _bytes(value: bytes) -> bytes:
    try:
        return b"" + value
    except TypeError as error:
        raise _malformed() from error


def _malformed() -> StoreError:
    return StoreError("What is to be written is not of the promised types.", code="store.malformed")
