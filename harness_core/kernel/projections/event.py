"""A stored event in, the document people and programs read (``harness.event/1``) or its {type, payload} view out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from harness_core.kernel.facts import Event
from harness_core.kernel.upcast import upcast
from harness_hookspecs.errors import CodecError, ConfigError, Drift, IllegalMove, NotFound, StoreCorrupt
from harness_hookspecs.events import EVENTS, category_of
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.store import GENESIS_HASH, Draft, StoredEvent, chain_hash

__all__ = [
    "MISLED",
    "SCHEMA",
    "UNFORESEEN",
    "causes",
    "decoded",
    "event_document",
    "event_documents",
    "expanded_view",
    "folding",
    "keeps",
    "payload_of",
    "prove",
    "proved",
]

SCHEMA = "harness.event/1"
T = TypeVar("T")

_new = tuple.__new__  # a third of the time of ``Event(...)``
UNFORESEEN = (CodecError, AttributeError, LookupError, TypeError, ValueError)
"""What a payload leads to that its type could not have."""

MISLED = (*UNFORESEEN, ConfigError, Drift, IllegalMove, NotFound)
"""What is said of a configuration, a session or a caller, and may be the fault of a log that says something else."""

_OPTIONAL = ("role_call_id", "task_id", "attempt_id", "stage_visit_id", "step_path", "visit_index", "occurrence_id")


def decoded(stored: StoredEvent) -> Event:
    """The event as folds and projections take it, in the form of today whatever version wrote it (I-11)."""
    try:  # written out: a fold of a long log comes through here for each event
        written, refs = loads_trusted(stored.payload), loads_trusted(stored.refs)
        version, payload = upcast(stored.type, stored.version, written)
    except UNFORESEEN as error:
        raise _damaged(stored) from error
    if written.__class__ is not dict or refs.__class__ is not dict:
        raise _damaged(stored)
    return _new(Event, (stored.seq, stored.id, stored.type, payload, refs, stored.timestamp, version))


def payload_of(stored: StoredEvent) -> Mapping[str, Any]:
    """The payload alone, in the form of today; whoever reads what is stored reads it through this or ``decoded``."""
    return decoded(stored).payload


def proved(events: Iterable[StoredEvent], previous_hash: bytes = GENESIS_HASH) -> Iterator[StoredEvent]:
    """A stream's events, each proved by the chain before it is given.

    For what is shown to people: a fold only refuses what it cannot fold.

    Args:
        events: The events, from the first one on.
        previous_hash: The hash of the one before them, where they begin later.

    Raises:
        StoreCorrupt: ``store.changed``.
    """
    for stored in events:
        prove(stored, previous_hash)
        previous_hash = stored.hash
        yield stored


def prove(stored: StoredEvent, previous_hash: bytes) -> None:
    """Prove an event by the hash of the one before it in its stream.

    Raises:
        StoreCorrupt: ``store.changed``.
    """
    if chain_hash(previous_hash, stored.stream, stored.seq, Draft(*stored[3:10])) != stored.hash:
        raise _damaged(stored)


def folding(evolve: Callable[[T, Event], None], state: T, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    """Fold each event into the state, and give it.

    Raises:
        StoreCorrupt: ``store.changed``: an event cannot be folded; the state is not to be used.
    """
    for stored in events:
        event = decoded(stored)
        try:
            evolve(state, event)
        except UNFORESEEN as error:
            raise _damaged(stored) from error
        yield stored


def _written(stored: StoredEvent) -> tuple[dict[str, Any], dict[str, Any]]:
    """References and payload as they stand, in the version that wrote them."""
    try:
        refs, payload = loads_trusted(stored.refs), loads_trusted(stored.payload)
    except CodecError as error:
        raise _damaged(stored) from error
    if refs.__class__ is not dict or payload.__class__ is not dict:
        raise _damaged(stored)
    return refs, payload


def _damaged(stored: StoredEvent) -> StoreCorrupt:
    hint = "harness events verify tells what of it is whole; a copy that was made before may have the rest"
    text = f"event {stored.seq} of {stored.stream} is not what was stored there"
    return StoreCorrupt(text, code="store.changed", hint=hint, where=stored.stream, seq=stored.seq)


def event_document(stored: StoredEvent, previous_hash: bytes, root_id: str) -> dict[str, Any]:
    """The whole envelope of one event, as it is stored: what its hash covers, in the version that wrote it.

    Args:
        stored: The event.
        previous_hash: The hash of the event before it in its stream.
        root_id: The id of the stream's first event: the command everything in a session goes back to. It is the
            correlation of events that name none.
    """
    refs, payload = _written(stored)
    kind, _, name = stored.stream.partition(":")
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "id": stored.id,
        "source_event_id": refs.get("source_event_id"),
        "seq": stored.seq,
        "stream": stored.stream,
        "session_id": name if kind == "session" else None,
        **{field: refs.get(field) for field in _OPTIONAL},
        "timestamp": stored.timestamp,
        "category": category_of(stored.type),
        "type": stored.type,
        "version": stored.version,
        "actor": stored.actor,
        "payload": payload,
        "causation_id": refs.get("causation_id"),
        "correlation_id": refs.get("correlation_id", root_id),
        "prev_hash": previous_hash.hex(),
        "hash": stored.hash.hex(),
    }
    if stored.type not in EVENTS:
        document["unknown_type"] = True
    return document


def event_documents(
    events: Iterable[StoredEvent], *, previous_hash: bytes = GENESIS_HASH, root_id: str | None = None
) -> Iterator[tuple[StoredEvent, dict[str, Any]]]:
    """Each event with its document; the events follow each other without a gap.

    Args:
        events: The events.
        previous_hash: The hash of the one before the first.
        root_id: The id of the stream's first event; absent: the first of ``events`` is it.
    """
    for event in events:
        root_id = root_id or event.id
        yield event, event_document(event, previous_hash, root_id)
        previous_hash = event.hash


def keeps(types: str, category: str | None) -> Callable[[Mapping[str, Any]], bool]:
    """Make the test whether an event document passes the filters.

    Args:
        types: Globs over the type, separated by commas.
        category: One of the seven categories, or ``None`` for all.
    """
    patterns = [pattern.strip() for pattern in types.split(",") if pattern.strip()]

    def passes(document: Mapping[str, Any]) -> bool:
        fits = any(fnmatchcase(document["type"], pattern) for pattern in patterns)
        return fits and category in (None, document["category"])

    return passes


def causes(documents: Iterable[Mapping[str, Any]], event_id: str) -> list[Mapping[str, Any]]:
    """The chain from an event over what caused it to the command everything began with (B-90), that event first.

    Raises:
        NotFound: ``event.not_found``: it is none of them.
    """
    by_id = {document["id"]: document for document in documents}
    if event_id not in by_id:
        raise NotFound(f"there is no event {event_id}", code="event.not_found")
    chain: list[Mapping[str, Any]] = []
    current: str | None = event_id
    while current is not None and current in by_id:
        # Taken out, so that a chain that bites its own tail ends.
        chain.append(by_id.pop(current))
        current = chain[-1]["causation_id"]
    root = chain[-1]["correlation_id"]
    return [*chain, by_id[root]] if root in by_id else chain


def expanded_view(event: Event, read_json: Callable[[str], Any]) -> dict[str, Any]:
    """The event as {type, payload}, manifests, messages and outputs in their places instead of their digests.

    Args:
        event: The event.
        read_json: Gives stored JSON by its digest.
    """
    payload = dict(event.payload)
    expand = _EXPANDED.get(event.type)
    if expand is not None:
        expand(payload, read_json)
    return {"type": event.type, "payload": payload}


def _manifest(payload: dict[str, Any], read_json: Callable[[str], Any]) -> None:
    payload["manifest"] = read_json(payload["manifestHash"])


def _messages(payload: dict[str, Any], read_json: Callable[[str], Any]) -> None:
    request = dict(payload["request"])
    request["messages"] = [read_json(digest) for digest in request["messages"]]
    payload["request"] = request


def _output(payload: dict[str, Any], read_json: Callable[[str], Any]) -> None:
    if payload.get("outputRef") is not None:
        payload["output"] = read_json(payload.pop("outputRef"))


_EXPANDED: dict[str, Callable[[dict[str, Any], Callable[[str], Any]], None]] = {
    "harness.session.started": _manifest,
    "harness.model.called": _messages,
    "harness.execute_step.succeeded": _output,
    "harness.session.completed": _output,
}
