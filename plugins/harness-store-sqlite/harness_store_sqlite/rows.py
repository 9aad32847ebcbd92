"""An event and its row: drafts and a head go in, values for the INSERT come out; a row goes in, an event comes out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.store import Draft, StoredEvent

__all__ = ["Batch", "event", "type_of"]

_event = tuple.__new__  # a third of the time of ``StoredEvent(...)``
_LINES = 5  # id, type, version, actor, timestamp; then the refs, to the end


class Batch:
    """Drafts chained after a head, not yet stored.

    Attributes:
        first_seq: The seq of the first of them.
        hashes: The hash of each.
        values: For each event hash, envelope, payload and, when ``keyed``, its key; flat.
        keyed: Whether any of them has a key.
    """

    __slots__ = ("drafts", "first_seq", "hashes", "keyed", "stream", "values")

    def __init__(self, stream: str, seq: int, last: bytes, drafts: Sequence[Draft]) -> None:
        """Chain the drafts after the head ``(seq, last)``.

        This is ``chain_hash`` of the contract, written out: the envelope is put together once, for hash and row.

        Raises:
            StoreError: ``store.line_break``: a field of the envelope holds one, so the chain would be ambiguous.
        """
        self.stream, self.drafts, self.first_seq = stream, drafts, seq + 1
        self.keyed = keyed = any([draft[7] is not None for draft in drafts])  # noqa: C419  # half the time of a generator
        self.hashes = hashes = list[bytes]()
        self.values = values = list[Any]()
        for identity, kind, version, actor, timestamp, refs, payload, key in drafts:
            seq += 1
            head = f"{identity}\n{kind}\n{version}\n{actor}\n{timestamp}\n"
            if head.count("\n") != _LINES:
                raise StoreError("A field of the envelope holds a line break.", code="store.line_break", where=stream)
            envelope = head + refs.decode()
            last = sha256(b"".join((last, f"{stream}\n{seq}\n{envelope}\n".encode(), payload))).digest()
            hashes.append(last)
            # The driver asks each bytes, but no bytearray, how it wants to be stored: four times the cost of a copy.
            row = (bytearray(last), envelope, bytearray(payload))
            values += (*row, key) if keyed else row

    def stored(self, last_position: int) -> tuple[StoredEvent, ...]:
        """The events as they now stand; positions of one transaction are contiguous, for nobody else can write."""
        stream, seq = self.stream, self.first_seq
        position = last_position - len(self.hashes) + 1
        return tuple([
            _event(StoredEvent, (position + index, stream, seq + index, *draft[:7], self.hashes[index]))
            for index, draft in enumerate(self.drafts)
        ])


def event(stream: str, row: Sequence[Any]) -> StoredEvent:
    """Make an event of ``schema.EVENT_COLUMNS``.

    Raises:
        StoreCorrupt: ``store.changed``: the envelope is none.
    """
    position, seq, envelope, payload, own_hash = row
    try:
        identity, kind, version, actor, timestamp, refs = envelope.split("\n", _LINES)
        fields = (stream, seq, identity, kind, int(version), actor, timestamp, refs.encode(), payload, own_hash)
        return _event(StoredEvent, (position, *fields))
    except ValueError as error:
        raise StoreCorrupt(f"event {seq} has no envelope", code="store.changed", where=stream, seq=seq) from error


def type_of(envelope: str) -> str:
    """The event's type."""
    return envelope.split("\n", 2)[1]
