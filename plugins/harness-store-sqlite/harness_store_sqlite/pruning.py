"""Streams that are removed whole: their heads go in, a work for the writer comes out that deletes all that is theirs.

What else names their contents is looked up in pages before the transaction, which looks only at what was written since:
others wait for it no longer than for any other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harness_hookspecs.errors import StoreConflict, StoreError
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Pruned, digests_in

from .driver import Connection
from .reader import Readers
from .schema import guards
from .writer import Place, Transaction
from .writes import Append

__all__ = ["MAIN", "Prune", "pruning"]

MAIN: Final = "store:main"
_PAGE_ROWS: Final = 512
_GUARDED: Final = ("events", "blobs", "inbox")
_NUMBER = "SELECT id FROM streams WHERE name = ?"
_HEAD = "SELECT id, seq, hash FROM streams WHERE name = ?"
_PAGE = f"SELECT position, sid, payload FROM events WHERE position > ? ORDER BY position LIMIT {_PAGE_ROWS}"
_SINCE = "SELECT sid, payload FROM events WHERE position > ?"
_EMPTY = "UPDATE streams SET seq = 0, hash = ? WHERE id = ?"
_EVENTS = "DELETE FROM events WHERE sid = ?"
_CACHES = ("DELETE FROM summaries WHERE sid = ?", "DELETE FROM snapshots WHERE sid = ?")
_COMMANDS = "DELETE FROM inbox WHERE session = ?"
_SIZE = "SELECT size FROM blobs WHERE digest = ?"
_CONTENT = "DELETE FROM blobs WHERE digest = ?"


class Prune(NamedTuple):
    """The end of whole streams."""

    ended: Mapping[str, Head]
    said: Append
    named: frozenset[str]  # the digests that these streams name and no other event up to ``position`` does
    position: int

    def alone(self, connection: Connection, places: dict[str, Place]) -> Pruned | None:
        """It takes many statements."""
        return None

    def within(self, transaction: Transaction) -> Pruned:
        """Say it first, so that the last position stays taken; then take the guards away, delete, and set them again.

        The row of a stream stays, with no event to its head: who still knows the stream by its number finds out.
        """
        connection = transaction.connection
        numbers = {name: _number(connection, name, head) for name, head in self.ended.items()}
        self.said.within(transaction)
        free, guard = guards(*_GUARDED)
        for statement in free:
            connection.execute(statement)
        events = commands = 0
        for name, sid in numbers.items():
            events += connection.execute(_EVENTS, (sid,)).rowcount
            commands += connection.execute(_COMMANDS, (name.removeprefix("session:"),)).rowcount
            for statement in _CACHES:
                connection.execute(statement, (sid,))
            connection.execute(_EMPTY, (GENESIS_HASH, sid))
            transaction.places[name] = (sid, 0, GENESIS_HASH)
        sizes = list(self._contents(connection))
        for statement in guard:
            connection.execute(statement)
        return Pruned(events, len(sizes), sum(sizes), commands)

    def _contents(self, connection: Connection) -> Iterator[int]:
        """Delete what nobody names; gives the size of each."""
        named = set(self.named)
        for _, payload in connection.execute(_SINCE, (self.position,)):
            named -= digests_in(payload)
        for digest in map(bytes.fromhex, named):
            row = connection.execute(_SIZE, (digest,)).fetchone()
            if row is not None:
                connection.execute(_CONTENT, (digest,))
                yield row[0]


def _number(connection: Connection, name: str, head: Head) -> int:
    sid, *found = connection.execute(_HEAD, (name,)).fetchone() or (0, 0, GENESIS_HASH)
    if not sid or Head(*found) != head:
        raise StoreConflict(f"{name} does not end as it did", where=name, head=found[0], expected=head.seq)
    return int(sid)


def pruning(readers: Readers, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Prune:
    """Look up what nobody else names, and make the work.

    Raises:
        StoreError: ``store.empty`` or ``store.kept``.
    """
    if not ended or not drafts:
        raise StoreError("There is nothing to remove, or nothing to say of it.", code="store.empty", where=MAIN)
    if MAIN in ended:
        raise StoreError("The store's own stream is never removed.", code="store.kept", where=MAIN)
    own = {row[0] for name in ended for row in readers.all(_NUMBER, (name,))}
    events = (event for name in ended for event in readers.events(name, 0, None))
    named = {digest for event in events for digest in digests_in(event.payload)}
    position = 0
    for last, sid, payload in _payloads(readers):
        position = last
        if sid not in own:
            named -= digests_in(payload)
    return Prune(ended, Append(MAIN, drafts, None, (), None, None), frozenset(named), position)


def _payloads(readers: Readers) -> Iterator[tuple[int, int, bytes]]:
    """Position, stream and payload of every event."""
    position, rows = 0, [(0, 0, b"")] * _PAGE_ROWS
    while len(rows) == _PAGE_ROWS:
        rows = readers.all(_PAGE, (position,))
        yield from rows
        position = rows[-1][0] if rows else position
