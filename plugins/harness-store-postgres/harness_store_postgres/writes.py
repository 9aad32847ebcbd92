"""What can be written: drafts, content or a command go in, statements in a transaction come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from harness_hookspecs.errors import StoreConflict
from harness_hookspecs.store import GENESIS_HASH, Posted, StoredEvent

from .rows import Encoded, chained, event, stored, type_of
from .schema import EVENT_COLUMNS
from .transaction import Place, Transaction

__all__ = ["POSTED", "Append", "Content", "DropSnapshots", "Keep", "Post", "Summarise", "posted"]

_NEW_STREAM: Final = "INSERT INTO streams (name, seq, hash) VALUES (%s, 0, %s) RETURNING id"
_INSERT: Final = (
    "INSERT INTO events (position, stream, seq, batch, key, hash, envelope, payload)"
    " SELECT %s::bigint + n, %s::bigint, %s::bigint + n, CASE WHEN n = %s::bigint THEN n::integer END,"
    " key, hash, envelope, payload"
    " FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[], %s::bytea[])"
    " WITH ORDINALITY AS given (key, hash, envelope, payload, n) ORDER BY n"
)
_BY_KEY: Final = "SELECT seq, envelope, payload FROM events WHERE stream = %s AND sha256(key) = sha256(%s)"
_RANGE: Final[LiteralString] = (
    f"SELECT {EVENT_COLUMNS}, batch FROM events WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq"
)
_WORTH_ASKING_BYTES: Final = 4096
_HAS_BLOB: Final = "SELECT 1 FROM blobs WHERE digest = %s"
_PUT: Final = "INSERT INTO blobs (digest, content) VALUES (%s, %s) ON CONFLICT (digest) DO NOTHING"
_MARK: Final = "UPDATE inbox SET taken_seq = %s WHERE sha256(command_id) = sha256(%s)"
_SUMMARY: Final = (
    "INSERT INTO summaries (stream, changed, document) VALUES (%s, %s, %s)"
    " ON CONFLICT (stream) DO UPDATE SET changed = excluded.changed, document = excluded.document"
)
_POSITION: Final = "SELECT position FROM events WHERE stream = %s AND seq = %s"
_NO_SUMMARY: Final = "DELETE FROM summaries WHERE stream = %s"
_OTHERS: Final = "DELETE FROM snapshots WHERE stream = %s AND maker <> %s"
_KEEP: Final = (
    "INSERT INTO snapshots (stream, seq, maker, content) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (stream, seq) DO UPDATE SET maker = excluded.maker, content = excluded.content"
)
_DROP: Final = "DELETE FROM snapshots"
_POST: Final = "INSERT INTO inbox (session, command_id, body) VALUES (%s, %s, %s)"
POSTED: Final = "SELECT session, command_id, body, taken_seq FROM inbox"
"""What :func:`posted` makes a command of."""

_BY_ID: Final[LiteralString] = f"{POSTED} WHERE sha256(command_id) = sha256(%s)"


class Content(NamedTuple):
    """A blob; what is large is compressed by the server, and asked for first: within the transaction, for until then
    the last stream that names it may be removed."""

    digest: bytes
    content: bytes

    def within(self, transaction: Transaction) -> bool:
        """One statement, or a look at what is there."""
        execute = transaction.connection.execute
        if len(self.content) > _WORTH_ASKING_BYTES and execute(_HAS_BLOB, (self.digest,)).fetchone() is not None:
            return True
        if execute(_PUT, self).rowcount:
            transaction.wrote = True
        return True


class Post(NamedTuple):
    """A command for the inbox."""

    session_id: bytes
    command_id: bytes
    body: bytes

    def within(self, transaction: Transaction) -> Posted:
        """The row that stands, or a new one."""
        row = _command(transaction, self.command_id)
        if row is not None:
            return posted(row)
        transaction.connection.execute(_POST, self)
        transaction.wrote = True
        return posted((*self, None))


def posted(row: Sequence[Any]) -> Posted:
    """Make a command of its row."""
    session_id, command_id, body, taken_seq = row
    return Posted(session_id.decode(), command_id.decode(), body, taken_seq)


def _command(transaction: Transaction, command_id: bytes) -> Any:
    return transaction.connection.execute(_BY_ID, (command_id,), binary=True).fetchone()


class Keep(NamedTuple):
    """A snapshot."""

    stream: bytes
    seq: int
    maker: bytes
    content: bytes

    def within(self, transaction: Transaction) -> bool:
        """In place of those of other makers; of a stream without events there is none."""
        number, seq, _ = transaction.place(self.stream)
        if number is not None and seq:
            transaction.connection.execute(_OTHERS, (number, self.maker))
            transaction.connection.execute(_KEEP, (number, self.seq, self.maker, self.content))
            transaction.wrote = True
        return True


class DropSnapshots:
    """The end of all snapshots."""

    def within(self, transaction: Transaction) -> bool:
        """One statement."""
        if transaction.connection.execute(_DROP).rowcount:
            transaction.wrote = True
        return True


class Summarise(NamedTuple):
    """A summary in place of a stream's own, or none."""

    stream: bytes
    seq: int
    summary: bytes | None

    def within(self, transaction: Transaction) -> bool:
        """Only while the log still ends there."""
        place, execute = transaction.place(self.stream), transaction.connection.execute
        if place.stream is None or not place.seq or place.seq != self.seq:
            return False
        if self.summary is None:
            written = execute(_NO_SUMMARY, (place.stream,)).rowcount
        else:
            (position,) = execute(_POSITION, (place.stream, place.seq)).fetchone() or (None,)
            written = execute(_SUMMARY, (place.stream, position, self.summary)).rowcount
        transaction.wrote = transaction.wrote or written > 0
        return True


class Append(NamedTuple):
    """A batch of events and what belongs to it."""

    stream: str
    batch: Sequence[Encoded]
    expected_seq: int | None
    blobs: Sequence[Content]
    taken: Mapping[bytes, int]
    summary: bytes | None

    def within(self, transaction: Transaction) -> tuple[StoredEvent, ...]:
        """Look first, then write."""
        name = self.stream.encode()
        place = transaction.place(name)
        first = _first_result(transaction, place, self)
        if first is not None:
            return first
        if self.expected_seq is not None and self.expected_seq != place.seq:
            text = f"the head of {self.stream} is {place.seq}, not {self.expected_seq}"
            raise StoreConflict(text, where=self.stream, head=place.seq, expected=self.expected_seq)
        taken = _marks(transaction, self.taken, place.seq, len(self.batch))
        return self._write(transaction, name, place, taken)

    def _write(
        self, transaction: Transaction, name: bytes, place: Place, taken: Sequence[tuple[int, bytes]]
    ) -> tuple[StoredEvent, ...]:
        execute, count, before = transaction.connection.execute, len(self.batch), transaction.position
        hashes = chained(self.stream, place.seq, place.hash, self.batch)
        number = place.stream
        if number is None:
            (number,) = execute(_NEW_STREAM, (name, GENESIS_HASH)).fetchone() or (None,)
        for content in self.blobs:
            content.within(transaction)
        keys, envelopes = [one.key for one in self.batch], [one.envelope for one in self.batch]
        payloads = [one.draft.payload for one in self.batch]
        execute(_INSERT, (before, number, place.seq, count, keys, hashes, envelopes, payloads))
        for mark in taken:
            execute(_MARK, mark)
        if self.summary is not None:
            execute(_SUMMARY, (number, before + count, self.summary))
        transaction.move(name, Place(number, place.seq + count, hashes[-1]), count)
        return stored(self.stream, place.seq, before, self.batch, hashes)


def _first_result(transaction: Transaction, place: Place, append: Append) -> tuple[StoredEvent, ...] | None:
    """What an earlier append of the same keys gave; ``None`` when none of the keys is known."""
    keyed = [(index, one) for index, one in enumerate(append.batch) if one.key is not None]
    if not keyed:
        return None
    if len({one.key for _, one in keyed}) < len(keyed):
        raise _key_conflict(append, "a key stands twice in the batch")
    execute = transaction.connection.execute
    found = [(*own, execute(_BY_KEY, (place.stream, own[1].key), binary=True).fetchone()) for own in keyed]
    if all(row is None for _, _, row in found):
        return None
    starts = set()
    for index, one, row in found:
        if row is None or (one.draft.type, one.draft.payload) != (type_of(row[1]), row[2]):
            key = one.draft.key
            raise _key_conflict(append, f"the key {key!r} belongs to another event", key=key)
        starts.add(row[0] - 1 - index)
    return _batch(transaction, place, append, starts)


def _batch(transaction: Transaction, place: Place, append: Append, starts: set[int]) -> tuple[StoredEvent, ...]:
    start, count = min(starts), len(append.batch)
    asked = (place.stream, start, start + count)
    rows = transaction.connection.execute(_RANGE, asked, binary=True).fetchall()
    batches = [row[-1] for row in rows]
    if len(starts) > 1 or len(rows) != count or batches != [*[None] * (count - 1), count]:
        raise _key_conflict(append, "the keys are known from another batch")
    return tuple(event(append.stream, row[:-1]) for row in rows)


def _key_conflict(append: Append, text: str, **facts: Any) -> StoreConflict:
    return StoreConflict(f"{append.stream}: {text}", code="store.key_conflict", where=append.stream, **facts)


def _marks(transaction: Transaction, taken: Mapping[bytes, int], seq: int, count: int) -> list[tuple[int, bytes]]:
    for command_id, index in taken.items():
        row = _command(transaction, command_id)
        if row is None or row[3] is not None or not 0 <= index < count:
            named = command_id.decode()
            text = "is unknown" if row is None else "was taken before" if row[3] is not None else "names no draft"
            raise StoreConflict(f"the command {named} {text}", code="store.taken", command_id=named)
    return [(seq + 1 + index, command_id) for command_id, index in taken.items()]
