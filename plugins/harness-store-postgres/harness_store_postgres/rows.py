"""An event and its row: drafts and a head go in, values for the INSERT come out; a row goes in, an event comes out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.store import Draft, StoredEvent

__all__ = ["Encoded", "chained", "encoded", "event", "stored", "type_of"]

_LINES = 5  # id, type, version, actor, timestamp; then the refs, to the end


class Encoded(NamedTuple):
    """A draft as it lies in the database; only its place and its hash are missing."""

    draft: Draft
    envelope: bytes
    key: bytes | None


def encoded(stream: str, drafts: Sequence[Draft]) -> tuple[Encoded, ...]:
    """Put the envelopes together: the very lines that the hash chain covers.

    Raises:
        StoreError: ``store.line_break``: a field of the envelope holds one, so the chain would be ambiguous;
            ``store.timestamp``: a time is not in UTC;
            ``store.malformed``: a value is of another type than the contract says.
    """
    found = []
    for draft in drafts:
        try:
            fields = f"{draft.id}\n{draft.type}\n{draft.version}\n{draft.actor}\n{draft.timestamp}\n".encode()
            envelope, _ = fields + draft.refs, b"" + draft.payload
            key = None if draft.key is None else draft.key.encode()
        except (AttributeError, TypeError, ValueError) as error:
            raise StoreError("A draft is not of the promised types.", code="store.malformed", where=stream) from error
        if fields.count(b"\n") != _LINES:
            raise StoreError("A field of the envelope holds a line break.", code="store.line_break", where=stream)
        if not draft.timestamp.endswith("Z"):
            raise StoreError("The time of an event is not in UTC.", code="store.timestamp", where=stream)
        found.append(Encoded(draft, envelope, key))
    return tuple(found)


def chained(stream: str, seq: int, last: bytes, batch: Sequence[Encoded]) -> list[bytes]:
    """The hashes of a batch after the head ``(seq, last)``: ``chain_hash`` of the contract, over what is encoded."""
    hashes = []
    for place, one in enumerate(batch, seq + 1):
        text = b"".join((last, f"{stream}\n{place}\n".encode(), one.envelope, b"\n", one.draft.payload))
        last = sha256(text).digest()
        hashes.append(last)
    return hashes


def stored(
    stream: str, seq: int, position: int, batch: Sequence[Encoded], hashes: Sequence[bytes]
) -> tuple[StoredEvent, ...]:
    """The events as they stand after that seq and position."""
    return tuple(
        StoredEvent._make((position + index, stream, seq + index, *one.draft[:7], own_hash))
        for index, (one, own_hash) in enumerate(zip(batch, hashes, strict=True), 1)
    )


def event(stream: str, row: Sequence[Any]) -> StoredEvent:
    """Make an event of ``schema.EVENT_COLUMNS``.

    Raises:
        StoreCorrupt: ``store.changed``: the envelope is none.
    """
    position, seq, envelope, payload, own_hash = row
    try:
        *fields, refs = envelope.split(b"\n", _LINES)
        identity, kind, version, actor, timestamp = (field.decode() for field in fields)
        own = (stream, seq, identity, kind, int(version), actor, timestamp, refs, payload, own_hash)
        return StoredEvent._make((position, *own))
    except ValueError as error:
        raise StoreCorrupt(f"event {seq} has no envelope", code="store.changed", where=stream, seq=seq) from error


def type_of(envelope: bytes) -> str:
    """The event's type."""
    return envelope.split(b"\n", 2)[1].decode()
