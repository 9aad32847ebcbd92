"""What can be written: drafts, content or a command go in, statements on the writer's connection come out."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import StoreConflict
from harness_hookspecs.store import GENESIS_HASH, Draft, Posted, StoredEvent

from .driver import Connection
from .rows import Chained, chained, event, stored, type_of
from .schema import EVENT_COLUMNS, MAX_ROWS, MAX_ROWS_ALONE, insert_events
from .writer import Place, Transaction

__all__ = ["Append", "Content", "DropSnapshots", "Keep", "Post", "Summarise", "pack", "unpack"]

_SMALL_BYTES: Final = 256
_SAMPLE_BYTES: Final = 65_536
_PLACE = "SELECT id, seq, hash FROM streams WHERE name = ?"
_NEW_STREAM = "INSERT INTO streams (name, seq, hash) VALUES (?, 0, ?)"
_BY_KEY = "SELECT seq, envelope, payload FROM events WHERE sid = ? AND key = ?"
_RANGE = f"SELECT {EVENT_COLUMNS}, batch FROM events WHERE sid = ? AND seq > ? AND seq <= ? ORDER BY seq"
_PUT = "INSERT INTO blobs (digest, size, deflated, content) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING"
_MARK = "UPDATE inbox SET taken_seq = ? WHERE command_id = ?"
_SUMMARY = (
    "INSERT INTO summaries (sid, changed, document) VALUES (?, ?, ?)"
    " ON CONFLICT (sid) DO UPDATE SET changed = excluded.changed, document = excluded.document"
)
_END = (
    "SELECT sid, position FROM events JOIN streams ON sid = id AND events.seq = streams.seq"
    " WHERE name = ? AND streams.seq = ?"
)
_NO_SUMMARY = "DELETE FROM summaries WHERE sid = ?"
_OTHERS = "DELETE FROM snapshots WHERE sid = (SELECT id FROM streams WHERE name = ?) AND maker <> ?"
_KEEP = (
    "INSERT INTO snapshots (sid, seq, maker, content) SELECT id, ?2, ?3, ?4 FROM streams WHERE name = ?1 AND seq > 0"
    " ON CONFLICT (sid, seq) DO UPDATE SET maker = excluded.maker, content = excluded.content"
)
_DROP = "DELETE FROM snapshots"
_POST = "INSERT INTO inbox (session, command_id, body) VALUES (?, ?, ?) ON CONFLICT (command_id) DO NOTHING"
_POSTED = "SELECT session, command_id, body, taken_seq FROM inbox WHERE command_id = ?"


class Content(NamedTuple):
    """A blob as it lies in the file."""

    digest: bytes
    size_bytes: int
    deflated: int
    stored: bytes

    def alone(self, connection: Connection, places: dict[str, Place]) -> bool:
        """One statement."""
        connection.execute(_PUT, self)
        return True

    def within(self, transaction: Transaction) -> bool:
        """The same statement."""
        return self.alone(transaction.connection, transaction.places)


def pack(content: bytes, digest: bytes, *, known: bool) -> Content:
    """Make the row of a blob, deflated where that is worth it.

    Args:
        content: What is to be stored.
        digest: Its SHA-256.
        known: Whether it seems to be there, so that no time need be spent on its form.
    """
    if not known and _shrinks(content):
        # The quickest level: what is stored is mostly text, on which the better ones gain little and cost much.
        return Content(digest, len(content), 1, zlib.compress(content, 1))
    return Content(digest, len(content), 0, content)


def unpack(size_bytes: int, deflated: int, stored: bytes) -> bytes | None:
    """The content of a row, ``None`` when it cannot be had; never more bytes than the row promises."""
    if not deflated:
        return stored
    try:
        return zlib.decompressobj().decompress(stored, size_bytes or 1)
    except zlib.error:
        return None


def _shrinks(content: bytes) -> bool:
    sample = content[:_SAMPLE_BYTES]
    return len(content) > _SMALL_BYTES and len(zlib.compress(sample, 1)) < 0.9 * len(sample)


class Post(NamedTuple):
    """A command for the inbox."""

    session_id: str
    command_id: str
    body: bytes

    def alone(self, connection: Connection, places: dict[str, Place]) -> Posted:
        """One statement, then a look at the row that stands."""
        connection.execute(_POST, self)
        return Posted(*connection.execute(_POSTED, (self.command_id,)).fetchone())

    def within(self, transaction: Transaction) -> Posted:
        """The same statements."""
        return self.alone(transaction.connection, transaction.places)


class Keep(NamedTuple):
    """A snapshot."""

    stream: str
    seq: int
    maker: str
    content: bytes

    def alone(self, connection: Connection, places: dict[str, Place]) -> bool | None:
        """It takes two statements."""
        return None

    def within(self, transaction: Transaction) -> bool:
        """In place of those of other makers."""
        transaction.connection.execute(_OTHERS, (self.stream, self.maker))
        transaction.connection.execute(_KEEP, self)
        return True


class DropSnapshots:
    """The end of all snapshots."""

    def alone(self, connection: Connection, places: dict[str, Place]) -> bool:
        """One statement."""
        connection.execute(_DROP)
        return True

    def within(self, transaction: Transaction) -> bool:
        """The same statement."""
        return self.alone(transaction.connection, transaction.places)


class Summarise(NamedTuple):
    """A summary in place of a stream's own, or none."""

    stream: str
    seq: int
    summary: bytes | None

    def alone(self, connection: Connection, places: dict[str, Place]) -> bool | None:
        """It takes a look at the head first."""
        return None

    def within(self, transaction: Transaction) -> bool:
        """Only while the log still ends there."""
        connection = transaction.connection
        end = connection.execute(_END, (self.stream, self.seq)).fetchone()
        if end is None:
            return False
        sid, position = end
        if self.summary is None:
            connection.execute(_NO_SUMMARY, (sid,))
        else:
            connection.execute(_SUMMARY, (sid, position, self.summary))
        return True


class Append(NamedTuple):
    """A batch of events and what belongs to it."""

    stream: str
    drafts: Sequence[Draft]
    expected_seq: int | None
    blobs: Sequence[Content]
    taken: Mapping[str, int] | None
    summary: bytes | None

    def alone(self, connection: Connection, places: dict[str, Place]) -> tuple[StoredEvent, ...] | None:
        """One INSERT, whose constraints and trigger are the compare-and-set, when the head is known to fit."""
        stream, drafts, expected_seq, blobs, taken, summary = self
        place = places.get(stream)
        if place is None or place[0] is None or place[1] != expected_seq:
            return None
        count = len(drafts)
        if blobs or taken or summary is not None or count > MAX_ROWS_ALONE:
            return None
        sid, seq, last = place
        hashes, values, keys = chained(stream, seq, last, drafts)
        own = (sid, seq, count, *values, *keys)
        position = connection.execute(insert_events(count, bool(keys)), own).lastrowid
        assert position is not None
        places[stream] = (sid, seq + count, hashes[-1])
        return stored(stream, seq, position, drafts, hashes)

    def within(self, transaction: Transaction) -> tuple[StoredEvent, ...]:
        """Look first, then write."""
        connection = transaction.connection
        place = _place(transaction, self.stream, self.expected_seq)
        first = _first_result(connection, place, self)
        if first is not None:
            return first
        seq = place[1]
        if self.expected_seq is not None and self.expected_seq != seq:
            text = f"the head of {self.stream} is {seq}, not {self.expected_seq}"
            raise StoreConflict(text, where=self.stream, head=seq, expected=self.expected_seq)
        taken = _marks(connection, self.taken or {}, seq, len(self.drafts))
        return self._write(transaction, place, taken)

    def _write(self, transaction: Transaction, place: Place, taken: list[tuple[int, str]]) -> tuple[StoredEvent, ...]:
        connection = transaction.connection
        transaction.appends = True
        sid, seq, last = place
        batch = chained(self.stream, seq, last, self.drafts)
        if sid is None:
            sid = connection.execute(_NEW_STREAM, (self.stream, GENESIS_HASH)).lastrowid
        for content in self.blobs:
            connection.execute(_PUT, content)
        position = _insert(connection, sid, seq, batch)
        for mark in taken:
            connection.execute(_MARK, mark)
        if self.summary is not None:
            connection.execute(_SUMMARY, (sid, position, self.summary))
        transaction.places[self.stream] = (sid, seq + len(self.drafts), batch.hashes[-1])
        return stored(self.stream, seq, position, self.drafts, batch.hashes)


def _place(transaction: Transaction, stream: str, expected_seq: int | None) -> Place:
    """Where the stream goes on; looked up unless it is known from before to be where it is expected to."""
    place = transaction.places.get(stream)
    if place is None:
        place = transaction.known.get(stream)
        if place is None or place[0] is None or place[1] != expected_seq:
            row = transaction.connection.execute(_PLACE, (stream,)).fetchone()
            place = row or (None, 0, GENESIS_HASH)
        transaction.places[stream] = place
    return place


def _insert(connection: Connection, sid: int | None, seq: int, batch: Chained) -> int:
    """Write the events; gives the position of the last one."""
    position = None
    count = len(batch.hashes)
    for start in range(0, count, MAX_ROWS):
        end = min(start + MAX_ROWS, count)
        values, keys = batch.values[3 * start : 3 * end], batch.keys[start:end]
        own = (sid, seq + start, count if end == count else None, *values, *keys)
        position = connection.execute(insert_events(end - start, bool(keys)), own).lastrowid
    assert position is not None
    return position


def _first_result(connection: Connection, place: Place, append: Append) -> tuple[StoredEvent, ...] | None:
    """What an earlier append of the same keys gave; ``None`` when none of the keys is known."""
    keyed = [(index, draft) for index, draft in enumerate(append.drafts) if draft.key is not None]
    if not keyed:
        return None
    if len({draft.key for _, draft in keyed}) < len(keyed):
        raise _key_conflict(append, "a key stands twice in the batch")
    found = [(index, draft, connection.execute(_BY_KEY, (place[0], draft.key)).fetchone()) for index, draft in keyed]
    if all(row is None for _, _, row in found):
        return None
    starts = set()
    for index, draft, row in found:
        if row is None or (draft.type, draft.payload) != (type_of(row[1]), row[2]):
            raise _key_conflict(append, f"the key {draft.key!r} belongs to another event", key=draft.key)
        starts.add(row[0] - 1 - index)
    return _batch(connection, place, append, starts)


def _batch(connection: Connection, place: Place, append: Append, starts: set[int]) -> tuple[StoredEvent, ...]:
    start, count = min(starts), len(append.drafts)
    rows = connection.execute(_RANGE, (place[0], start, start + count)).fetchall()
    batches = [row[-1] for row in rows]
    if len(starts) > 1 or len(rows) != count or batches != [*[None] * (count - 1), count]:
        raise _key_conflict(append, "the keys are known from another batch")
    return tuple(event(append.stream, row[:-1]) for row in rows)


def _key_conflict(append: Append, text: str, **facts: Any) -> StoreConflict:
    return StoreConflict(f"{append.stream}: {text}", code="store.key_conflict", where=append.stream, **facts)


def _marks(connection: Connection, taken: Mapping[str, int], seq: int, count: int) -> list[tuple[int, str]]:
    for command_id, index in taken.items():
        row = connection.execute(_POSTED, (command_id,)).fetchone()
        if row is None or row[3] is not None or not 0 <= index < count:
            text = "is unknown" if row is None else "was taken before" if row[3] is not None else "names no draft"
            raise StoreConflict(f"the command {command_id} {text}", code="store.taken", command_id=command_id)
    return [(seq + 1 + index, command_id) for command_id, index in taken.items()]
