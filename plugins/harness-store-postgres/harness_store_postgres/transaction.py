"""A transaction of the writing connection: it takes the lock of the log, knows its end and moves it."""

from __future__ import annotations

from typing import Final, LiteralString, NamedTuple

from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.store import GENESIS_HASH

from .link import Connection

__all__ = ["Place", "Proof", "Transaction"]

# One message each way: what is said first and last costs no further round trip. A lock is waited for before the next
# statement looks, so at READ COMMITTED that one sees all that was committed before.
_BEGIN: Final[LiteralString] = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT position, commits FROM log FOR UPDATE"
_END: Final[LiteralString] = "UPDATE log SET position = {}, commits = commits + 1; COMMIT"
_PLACE: Final = "SELECT id, seq, hash FROM streams WHERE name = %s"
_STANDS: Final = (
    "SELECT 1 FROM events JOIN streams ON streams.id = stream"
    " WHERE name = %s AND events.seq = %s AND events.hash = %s"
)
_MAX_PLACES: Final = 4096


class Place(NamedTuple):
    """Where the next event of a stream goes: the stream's number, ``None`` before its first event, and its head."""

    stream: int | None
    seq: int
    hash: bytes


class Proof(NamedTuple):
    """The last event of a transaction: where it stands, the transaction was committed."""

    stream: bytes
    seq: int
    hash: bytes


class Transaction:
    """An open transaction as the works in it see it.

    Attributes:
        connection: The writing connection.
        position: The position of the last event.
        wrote: Whether anything was written.
        proof: The last event that was written in it.
        ending: Whether COMMIT is on its way, so that only the log itself knows what a loss of the connection means.

    Args:
        connection: The writing connection.
        earlier: The transaction before this one; what it knows holds when nobody else has written since.
    """

    def __init__(self, connection: Connection, earlier: Transaction | None) -> None:
        self.connection = connection
        self.position = 0
        self.wrote = False
        self.proof: Proof | None = None
        self.ending = False
        self._commits = -1
        self._places: dict[bytes, Place] = {}
        self._earlier = earlier

    def begin(self) -> None:
        """Wait for the lock of the log and see where it ends."""
        cursor = self.connection.execute(_BEGIN, prepare=False)
        cursor.nextset()
        row = cursor.fetchone()
        if row is None:
            raise StoreCorrupt("the row of the log is gone", code="store.corrupt")
        self.position, self._commits = row
        earlier, self._earlier = self._earlier, None
        if earlier is not None and earlier._commits == self._commits and len(earlier._places) < _MAX_PLACES:
            self._places = earlier._places

    def place(self, name: bytes) -> Place:
        """Where the next event of that stream goes."""
        known = self._places.get(name)
        if known is None:
            row = self.connection.execute(_PLACE, (name,), binary=True).fetchone()
            known = self._places[name] = Place._make(row) if row else Place(None, 0, GENESIS_HASH)
        return known

    def move(self, name: bytes, place: Place, count: int) -> None:
        """Note that ``count`` events were written, up to that place."""
        self.position += count
        self.proof = Proof(name, place.seq, place.hash)
        self._places[name] = place
        self.wrote = True

    def forget(self, name: bytes) -> None:
        """Note that a stream has no event any more."""
        self._places.pop(name, None)

    def finds(self, other: Transaction) -> bool:
        """Whether that transaction was committed; one without events may be written again in any case."""
        if other.proof is None:
            return False
        return self.connection.execute(_STANDS, other.proof).fetchone() is not None

    def end(self) -> None:
        """Commit, or only give the lock back when nothing was written."""
        if not self.wrote:
            self.connection.execute("ROLLBACK")
            return
        self.ending = True
        self.connection.execute(_END.format(int(self.position)), prepare=False)
        self._commits += 1
