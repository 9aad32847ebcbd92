"""Streams that are removed whole: their heads go in, a work for the writer comes out that deletes all that is theirs.

What else names their contents is looked up in pages before the transaction, which looks only at what was written since:
others wait for it no longer than for any other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, LiteralString, NamedTuple

from harness_hookspecs.errors import StoreConflict, StoreError
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Pruned, digests_in

from .reader import Readers
from .rows import encoded
from .transaction import Transaction
from .writes import Append

__all__ = ["MAIN", "Prune", "pruning"]

MAIN: Final = "store:main"
_PAGE_ROWS: Final = 512
_GUARDED: Final[tuple[LiteralString, ...]] = ("events", "blobs", "inbox")
_NUMBER: Final = "SELECT id FROM streams WHERE name = %s"
_PAGE: Final[LiteralString] = (
    f"SELECT position, stream, payload FROM events WHERE position > %s::bigint ORDER BY position LIMIT {_PAGE_ROWS}"
)
_SINCE: Final = "SELECT payload FROM events WHERE position > %s::bigint"
_EMPTY: Final = "UPDATE streams SET seq = 0, hash = %s WHERE id = %s"
_EVENTS: Final = "DELETE FROM events WHERE stream = %s"
_CACHES: Final = ("DELETE FROM summaries WHERE stream = %s", "DELETE FROM snapshots WHERE stream = %s")
_COMMANDS: Final = "DELETE FROM inbox WHERE session = %s"
_CONTENT: Final = "DELETE FROM blobs WHERE digest = %s RETURNING octet_length(content)"


class Prune(NamedTuple):
    """The end of whole streams."""

    ended: Mapping[str, Head]
    said: Append
    named: frozenset[str]  # the digests that these streams name and no other event up to ``position`` does
    position: int

    def within(self, transaction: Transaction) -> Pruned:
        """Say it first, so that the last position stays taken; then take the guards away, delete, and set them again.

        The row of a stream stays, with no event to its head.
        """
        execute = transaction.connection.execute
        numbers = {name.encode(): _number(transaction, name, head) for name, head in self.ended.items()}
        self.said.within(transaction)
        for table in _GUARDED:
            execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_kept")
        events = commands = 0
        for name, number in numbers.items():
            events += execute(_EVENTS, (number,)).rowcount
            commands += execute(_COMMANDS, (name.removeprefix(b"session:"),)).rowcount
            for statement in _CACHES:
                execute(statement, (number,))
            execute(_EMPTY, (GENESIS_HASH, number))
            transaction.forget(name)
        sizes = list(self._contents(transaction))
        for table in _GUARDED:
            execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_kept")
        return Pruned(events, len(sizes), sum(sizes), commands)

    def _contents(self, transaction: Transaction) -> Iterator[int]:
        """Delete what nobody names; gives the size of each."""
        execute, named = transaction.connection.execute, set(self.named)
        for (payload,) in execute(_SINCE, (self.position,), binary=True).fetchall():
            named -= digests_in(payload)
        for digest in map(bytes.fromhex, named):
            for (size_bytes,) in execute(_CONTENT, (digest,)).fetchall():
                yield size_bytes


def _number(transaction: Transaction, name: str, head: Head) -> int:
    number, *found = transaction.place(name.encode())
    if number is None or Head._make(found) != head:
        raise StoreConflict(f"{name} does not end as it did", where=name, head=found[0], expected=head.seq)
    return int(number)


def pruning(readers: Readers, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Prune:
    """Look up what nobody else names, and make the work.

    Raises:
        StoreError: ``store.empty`` or ``store.kept``.
    """
    if not ended or not drafts:
        raise StoreError("There is nothing to remove, or nothing to say of it.", code="store.empty", where=MAIN)
    if MAIN in ended:
        raise StoreError("The store's own stream is never removed.", code="store.kept", where=MAIN)
    own = {row[0] for name in ended for row in readers.all(_NUMBER, (name.encode(errors="surrogatepass"),))}
    events = (event for name in ended for event in readers.events(name, 0, None))
    named = {digest for event in events for digest in digests_in(event.payload)}
    position = 0
    for last, number, payload in _payloads(readers):
        position = last
        if number not in own:
            named -= digests_in(payload)
    return Prune(ended, Append(MAIN, encoded(MAIN, drafts), None, (), {}, None), frozenset(named), position)


def _payloads(readers: Readers) -> Iterator[tuple[int, int, bytes]]:
    """Position, stream and payload of every event."""
    position, rows = 0, [(0, 0, b"")] * _PAGE_ROWS
    while len(rows) == _PAGE_ROWS:
        rows = readers.all(_PAGE, (position,))
        yield from rows
        position = rows[-1][0] if rows else position
