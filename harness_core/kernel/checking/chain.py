"""A stored event in, what is wrong with its bytes and its place out: the chain, the envelope, the payload's form."""

from __future__ import annotations

import re
from typing import Any

from harness_core.kernel.facts import Event
from harness_core.kernel.upcast import upcast
from harness_hookspecs.errors import CodecError, VocabularyError
from harness_hookspecs.events import ACTORS, EVENTS, check_payload
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.store import Draft, Head, StoredEvent, chain_hash

from .history import NOTHING, Broken

__all__ = ["Chain"]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_MAX_DEPTH = 254


class Chain:
    """How far the log is proved.

    Args:
        stream: Whose log it is.

    Attributes:
        head: The last event that is proved.
        unknown_seq: The first event of a type or version that this code does not know, ``None`` as long as there is
            none: what is said from there on refers to it, or follows from it.
    """

    def __init__(self, stream: str) -> None:
        self.head = NOTHING
        self.unknown_seq: int | None = None
        self._stream = stream
        self._position = 0
        self._ids: set[str] = set()

    def prove(self, event: StoredEvent) -> Broken | None:
        """Prove that this is the next event of this stream; what is wrong makes all that follows worthless."""
        seq = self.head.seq + 1
        if event.seq != seq:
            return Broken("I-3", seq, f"expected seq {seq}, found {event.seq}", "store.gap")
        draft = Draft(event.id, event.type, event.version, event.actor, event.timestamp, event.refs, event.payload)
        computed = chain_hash(self.head.hash, event.stream, seq, draft)
        if computed != event.hash or event.stream != self._stream:
            return Broken("I-7", seq, f"event {seq} does not match its hash", "store.changed")
        self.head = Head(seq, computed)
        return None

    def read(self, stored: StoredEvent) -> tuple[Event | None, list[Broken]]:
        """The event decoded, ``None`` where its meaning is not known or it has none; and what is wrong with it."""
        flaws = self._envelope(stored)
        try:
            refs, payload = _strict(stored.refs), _strict(stored.payload)
        except CodecError as error:
            return None, [*flaws, Broken("I-8", stored.seq, f"event {stored.seq} is no strict JSON: {error.message}")]
        try:
            version, payload = _today(stored, payload)
            known = EVENTS.get(stored.type)
            if known is None or version != known.version:
                self.unknown_seq = self.unknown_seq or stored.seq
                return None, flaws
            check_payload(stored.type, payload)
        except VocabularyError as error:
            message = f"event {stored.seq} is not what its type says: {error.message}"
            return None, [*flaws, Broken("I-11", stored.seq, message)]
        return Event(stored.seq, stored.id, stored.type, payload, refs, stored.timestamp, version), flaws

    def _envelope(self, event: StoredEvent) -> list[Broken]:
        flaws = []
        if event.id in self._ids:
            flaws.append(Broken("I-5", event.seq, f"event {event.seq} has the id of an event before it"))
        self._ids.add(event.id)
        if event.position <= self._position:
            flaws.append(Broken("I-9", event.seq, f"event {event.seq} was stored before its predecessor"))
        self._position = event.position
        if not _TIME.fullmatch(event.timestamp):
            flaws.append(Broken("I-10", event.seq, f"the time of event {event.seq} is not UTC with milliseconds"))
        if event.version < 1:
            flaws.append(Broken("I-11", event.seq, f"event {event.seq} has no schema version"))
        if event.actor not in ACTORS:
            flaws.append(Broken("I-8", event.seq, f"the actor of event {event.seq} is none there is"))
        return flaws


def _strict(data: bytes) -> dict[str, Any]:
    value = loads(data, max_bytes=len(data), max_depth=_MAX_DEPTH)
    if not isinstance(value, dict):
        raise CodecError("The document is no object.")
    return value


def _today(stored: StoredEvent, payload: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    try:
        version, upcasted = upcast(stored.type, stored.version, payload)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # not a payload its version could have had
        raise VocabularyError(f"{stored.type} {stored.version}: {error!r}", code="vocabulary.payload") from error
    return version, dict(upcasted)
