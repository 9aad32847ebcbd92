"""What a log in memory consists of: checked batches go in, lists and dictionaries hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from harness_hookspecs.errors import StoreConflict
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Posted, Pruned, StoredEvent, chain_hash, digests_in

__all__ = ["MAIN", "Log", "Stream", "bytes_of", "chained", "first_result", "pruned_from"]

MAIN: Final = "store:main"
"""The store's own stream."""


class Stream:
    """One stream: its events, where each batch began, the seq of each key, and what is kept beside."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.batches: dict[int, int] = {}  # seq of the first event -> how many there are
        self.keys: dict[str, int] = {}
        self.head = Head(0, GENESIS_HASH)
        self.summary: bytes | None = None
        self.snapshots: dict[int, bytes] = {}  # those of one maker
        self.maker = ""
        self.changed = 0


class Log:
    """Everything a store holds."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.blobs: dict[str, bytes] = {}
        self.inbox: dict[str, Posted] = {}
        self.last_position = 0
        self.commits = 0


def chained(stream: str, head: Head, position: int, drafts: Sequence[Draft]) -> Iterator[StoredEvent]:
    """The drafts as events after that head and position."""
    last = head.hash
    for index, draft in enumerate(drafts, 1):
        seq = head.seq + index
        last = chain_hash(last, stream, seq, draft)
        yield StoredEvent._make((position + index, stream, seq, *draft[:7], last))


def bytes_of(event: StoredEvent) -> int:
    """Bytes of its envelope and its payload."""
    envelope = (event.id, event.type, str(event.version), event.actor, event.timestamp, "")
    return len("\n".join(envelope).encode()) + len(event.refs) + len(event.payload)


def pruned_from(log: Log, names: Collection[str]) -> Pruned:
    """Remove those streams, what is kept beside them, and the contents that nobody else names."""
    events = [event for name in names for event in log.streams[name].events]
    for name in names:
        log.streams[name] = Stream()  # its place among the streams is its own, should it begin anew
    named = {digest for event in events for digest in digests_in(event.payload)} & log.blobs.keys()
    for stream in log.streams.values():
        for event in stream.events:
            named -= digests_in(event.payload)
    contents = [log.blobs.pop(digest) for digest in named]
    sessions = {name.removeprefix("session:") for name in names}
    commands = [row.command_id for row in log.inbox.values() if row.session_id in sessions]
    for command_id in commands:
        del log.inbox[command_id]
    return Pruned(len(events), len(contents), sum(map(len, contents)), len(commands))


def first_result(name: str, stream: Stream, drafts: Sequence[Draft]) -> tuple[StoredEvent, ...] | None:
    """What an earlier append of the same keys gave; ``None`` when none of the keys is known.

    Raises:
        StoreConflict: ``store.key_conflict``.
    """
    keyed = [(index, draft) for index, draft in enumerate(drafts) if draft.key is not None]
    known = {draft.key: stream.keys.get(draft.key or "") for _, draft in keyed}
    if len(known) < len(keyed):
        raise _conflict(name, "a key stands twice in the batch")
    if all(seq is None for seq in known.values()):
        return None
    starts = set()
    for index, draft in keyed:
        seq = known[draft.key]
        if seq is None or not _equal(draft, stream.events[seq - 1]):
            raise _conflict(name, f"the key {draft.key!r} belongs to another event")
        starts.add(seq - index)
    start = min(starts)
    if len(starts) > 1 or stream.batches.get(start) != len(drafts):
        raise _conflict(name, "the keys are known from another batch")
    return tuple(stream.events[start - 1 : start - 1 + len(drafts)])


def _equal(draft: Draft, event: StoredEvent) -> bool:
    return (draft.type, draft.payload) == (event.type, event.payload)


def _conflict(name: str, text: str) -> StoreConflict:
    return StoreConflict(f"{name}: {text}", code="store.key_conflict", where=name)
