"""An event and its row: drafts and a head go in, values for the INSERT come out; a row goes in, an event comes out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.store import Draft, StoredEvent

__all__ = ["Chained", "chained", "event", "stored", "type_of"]

_new = tuple.__new__  # a third of the time of ``StoredEvent(...)``
_LINES = 5  # id, type, version, actor, timestamp; then the refs, to the end


class Chained(NamedTuple):
    """Drafts chained after a head, not yet stored.

    ``values`` holds hash, envelope and payload of each, flat; ``keys`` the key of each, or nothing when none has one.
    """

    hashes: list[bytes]
    values: list[Any]
    keys: list[str | None]


def chained(stream: str, seq: int, last: bytes, drafts: Sequence[Draft]) -> Chained:
    """Chain the drafts after the head ``(seq, last)``.

    This is ``chain_hash`` of the contract, written out: the envelope is put together once, for hash and row. Every
    append runs through here between two waits for the disk, with cold caches, so it is as plain as can be.

    Raises:
        StoreError: ``store.line_break``: a field of the envelope holds one, so the chain would be ambiguous;
            ``store.timestamp``: a time is not in UTC.
    """
    hashes: list[bytes] = []
    values: list[Any] = []
    keyed = False
    for identity, kind, version, actor, timestamp, refs, payload, key in drafts:
        seq += 1
        envelope = f"{identity}\n{kind}\n{version}\n{actor}\n{timestamp}\n{refs.decode()}"
        if envelope.count("\n") != _LINES and not _is_unambiguous(envelope, refs):
            raise StoreError("A field of the envelope holds a line break.", code="store.line_break", where=stream)
        if timestamp[-1:] != "Z":
            raise StoreError("The time of an event is not in UTC.", code="store.timestamp", where=stream)
        last = sha256(last + f"{stream}\n{seq}\n{envelope}\n".encode() + payload).digest()
        hashes.append(last)
        # The driver asks each bytes, but no bytearray, how it wants to be stored: four times the cost of a copy.
        values += (bytearray(last), envelope, bytearray(payload))
        if key is not None:
            keyed = True
    return _new(Chained, (hashes, values, [draft[7] for draft in drafts] if keyed else []))


def _is_unambiguous(envelope: str, refs: bytes) -> bool:
    return envelope.count("\n") == _LINES + refs.count(b"\n")


def stored(
    stream: str, seq: int, last_position: int, drafts: Sequence[Draft], hashes: list[bytes]
) -> tuple[StoredEvent, ...]:
    """The events as they stand after ``seq``; positions of one transaction are contiguous, since nobody else writes."""
    if len(hashes) == 1:  # an append of one event is the one that waits for the disk most
        return (_new(StoredEvent, (last_position, stream, seq + 1, *drafts[0][:7], hashes[0])),)
    position = last_position - len(hashes)
    events = []
    for draft, own_hash in zip(drafts, hashes, strict=True):
        position += 1
        seq += 1
        events.append(_new(StoredEvent, (position, stream, seq, *draft[:7], own_hash)))
    return tuple(events)


def event(stream: str, row: Sequence[Any]) -> StoredEvent:
    """Make an event of ``schema.EVENT_COLUMNS``.

    Raises:
        StoreCorrupt: ``store.changed``: the envelope is none.
    """
    position, seq, envelope, payload, own_hash = row
    try:
        identity, kind, version, actor, timestamp, refs = envelope.split("\n", _LINES)
        fields = (stream, seq, identity, kind, int(version), actor, timestamp, refs.encode(), payload, own_hash)
        return _new(StoredEvent, (position, *fields))
    except ValueError as error:
        raise StoreCorrupt(f"event {seq} has no envelope", code="store.changed", where=stream, seq=seq) from error


def type_of(envelope: str) -> str:
    """The event's type."""
    return envelope.split("\n", 2)[1]
