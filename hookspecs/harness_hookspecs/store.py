"""Kind ``store``: drafts in, stored events out, in one order that can be proved afterwards."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from .errors import StoreCorrupt

__all__ = [
    "GENESIS_HASH",
    "Backup",
    "Draft",
    "Head",
    "Posted",
    "Pruned",
    "Snapshot",
    "Store",
    "StoreStats",
    "StoredEvent",
    "chain_hash",
    "digests_in",
    "verify_chain",
]

GENESIS_HASH = b"\x00" * 32

_DIGEST_CHARACTERS = 64
_DIGESTS = re.compile(rb"[0-9a-f]{64,}")


class Draft(NamedTuple):
    """An event before the store has given it a place.

    ``refs`` and ``payload`` are strict JSON objects as bytes (``kit.codec.dumps``); what is stored and hashed is
    exactly these bytes. ``refs`` holds the optional envelope fields that are set (domain.md: ``stage_visit_id``,
    ``role_call_id``, ``step_path``, ``visit_index``, ``task_id``, ``attempt_id``, ``causation_id``,
    ``correlation_id``, ``occurrence_id``, ``source_event_id``).
    """

    id: str
    type: str
    version: int
    actor: str
    timestamp: str  # UTC with milliseconds, "2026-11-29T18:30:05.123Z"
    refs: bytes
    payload: bytes
    key: str | None = None  # foreign id or command id, unique within the stream (invariant I-5)


class StoredEvent(NamedTuple):
    """An event as it stands in the log; a plain row, its payload decoded by whoever needs it."""

    position: int  # monotone over all streams in commit order (invariant I-9)
    stream: str
    seq: int
    id: str
    type: str
    version: int
    actor: str
    timestamp: str
    refs: bytes
    payload: bytes
    hash: bytes


class Head(NamedTuple):
    """The last event of a stream: its seq and its hash; ``Head(0, GENESIS_HASH)`` for an empty one."""

    seq: int
    hash: bytes


class Posted(NamedTuple):
    """A command in the durable inbox; ``taken_seq`` is the seq of its ``command.received``, or ``None``."""

    session_id: str
    command_id: str
    body: bytes
    taken_seq: int | None


class Snapshot(NamedTuple):
    """What somebody made of a stream's events up to ``seq``: a cache, in a form that only its maker knows."""

    seq: int
    content: bytes


class StoreStats(NamedTuple):
    """How much a store holds and what room it takes; the first five are ``None`` for one that lies in no file."""

    place: str | None  # the file
    format: int | None  # the version of its form
    size_bytes: int | None  # of the file
    wal_bytes: int | None  # of what is committed beside the file and not yet folded into it
    free_bytes: int | None  # of the file, for what comes next
    streams: int
    events: Mapping[str, int]  # by type
    event_bytes: int  # of their envelopes and payloads
    blobs: int
    content_bytes: int  # of the blobs as they were given
    blob_bytes: int  # of the blobs as they are kept
    commands: int  # in the inbox, taken or not
    summaries: int
    snapshots: int


class Backup(NamedTuple):
    """A copy of a store as it was proved."""

    size_bytes: int
    heads: Mapping[str, Head]  # of each stream in it
    contents: int  # blobs that were hashed again


class Pruned(NamedTuple):
    """What went with the streams that were removed."""

    events: int
    blobs: int
    content_bytes: int  # of those blobs as they were given
    commands: int


def digests_in(payload: bytes) -> set[str]:
    """Every text in a payload that may be the digest of a content: lower-case SHA-256 hex, wherever it stands."""
    last = _DIGEST_CHARACTERS - 1
    return {
        run[start : start + _DIGEST_CHARACTERS].decode()
        for run in _DIGESTS.findall(payload)
        for start in range(len(run) - last)
    }


def chain_hash(previous: bytes, stream: str, seq: int, draft: Draft) -> bytes:
    """SHA-256 over the predecessor's hash and the stored bytes of one event (invariant I-7).

    Only JSON texts without line breaks and fields that cannot hold one are joined, so the form is unambiguous.
    """
    head = f"{stream}\n{seq}\n{draft.id}\n{draft.type}\n{draft.version}\n{draft.actor}\n{draft.timestamp}\n"
    return hashlib.sha256(b"".join((previous, head.encode(), draft.refs, b"\n", draft.payload))).digest()


def verify_chain(events: Iterable[StoredEvent], head: Head, *, start: Head = Head(0, GENESIS_HASH)) -> Head:
    """Prove a stream: every byte, every seq, and that nothing is missing at the end.

    Args:
        events: The stream's events in order, from ``start`` on.
        head: The head row the store keeps in the same transaction.
        start: Where the events begin.

    Returns:
        The proved head.

    Raises:
        StoreCorrupt: ``store.gap``, ``store.changed`` or ``store.tail_missing``, naming the first bad seq.
    """
    seq, last = start
    for event in events:
        if event.seq != seq + 1:
            raise StoreCorrupt(f"expected seq {seq + 1}, found {event.seq}", code="store.gap", seq=seq + 1)
        draft = Draft(event.id, event.type, event.version, event.actor, event.timestamp, event.refs, event.payload)
        last = chain_hash(last, event.stream, event.seq, draft)
        if last != event.hash:
            raise StoreCorrupt(f"event {event.seq} does not match its hash", code="store.changed", seq=event.seq)
        seq = event.seq
    if (seq, last) != (head.seq, head.hash):
        raise StoreCorrupt(
            f"the log ends at seq {seq}, its head says {head.seq}", code="store.tail_missing", seq=seq + 1
        )
    return Head(seq, last)


class Store(Protocol):
    """The log, the blobs, the inbox, and caches beside them. Every method may be called from any thread.

    A store that cannot read its file raises ``StoreCorrupt`` and leaves the file byte-identical; it never makes a
    fresh one in its place. What cannot be written for lack of space raises ``StoreError(code="store.full")``.
    """

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected_seq: int | None,
        blobs: Mapping[str, bytes] | None = None,
        taken: Mapping[str, int] | None = None,
        summary: bytes | None = None,
    ) -> tuple[StoredEvent, ...]:
        """Store all or none, durably, in one transaction; returns once committed (invariants I-1 to I-5).

        Args:
            stream: ``session:<uuid>`` or ``store:main``.
            drafts: One or more events; they get contiguous seqs.
            expected_seq: The head the caller decided on; ``None`` reads the head inside the transaction, retrying.
            blobs: Content by lower-case SHA-256 hex, stored once.
            taken: Command ids of the inbox, each with the index of its ``command.received`` in ``drafts``.
            summary: The session's document for listings, a cache; replaces the earlier one.

        Raises:
            StoreConflict: ``store.conflict``: the head is not ``expected_seq``, nothing was written;
                ``store.key_conflict``: a key exists with another type or payload, or in a batch of another shape.
                The same batch again (equal keys, types and payloads at the same places) returns the first result,
                whatever is expected, and writes nothing; ``store.taken``: a command was taken before, was never
                posted, or its index names no draft.
            StoreError: It could not be written (``store.full``, ``store.readonly``, ``store.io``, ``store.busy``), or
                may not be: ``store.empty`` (no draft), ``store.line_break`` (in a field of the envelope, where it
                would make the chain ambiguous), ``store.timestamp`` (one that does not end in ``Z``, so that nobody
                knows where its clock stood), ``store.blob`` (content under a digest not its own).
        """

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        """Events with ``after < seq <= until`` in order, streamed; never more than a page in memory.

        Both may be any whole number, whatever the store itself can count to.

        Raises:
            StoreCorrupt: ``store.gap`` or ``store.tail_missing`` with the first ``seq`` that is missing, after the
                events before it: a stream that lost some, or all, is never a shorter one. One that was pruned has
                none, and its head counts none.
        """

    def head(self, stream: str) -> Head:
        """The head row of the stream."""

    def streams(self) -> Sequence[str]:
        """Every stream with at least one event, oldest first."""

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        """(stream, summary) of every stream that has one, newest change first."""

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        """Keep what ``maker`` made of the stream's events up to ``seq``; replaces an earlier one of the same seq.

        It is a cache in a transaction of its own, and may be lost at any time: those of other makers are, and of a
        stream without events nothing is kept.

        Args:
            stream: The stream.
            seq: Of the last event it was made of.
            maker: Digest of the code that makes it, so that another version finds none.
            content: What was made.

        Raises:
            StoreError: It could not be written.
        """

    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        """The latest snapshot of that maker with ``seq <= until``, any whole number; ``None`` when there is none."""

    def drop_snapshots(self) -> None:
        """Delete all snapshots, of every stream and maker."""

    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        """Put a summary in place of the stream's own, as if it had come with the event ``seq``; ``None`` deletes it.

        Returns:
            Whether it was done: only while ``seq`` is the stream's last event. A log that has grown meanwhile has an
            owner, whose summaries are newer.

        Raises:
            StoreError: It could not be written.
        """

    def stats(self) -> StoreStats:
        """How much it holds and what room it takes; only reads."""

    def backup(self, target: Path) -> Backup:
        """Copy all of it, as it is at one moment, into a new file that the same kind of store can open.

        Others may read and write meanwhile. The file bears its name only when it is whole and proved: each chain
        against its head, each blob against its digest.

        Raises:
            StoreError: ``store.exists``: there is something of that name, which stays as it is; ``store.no_file``: this
                store lies in no file; or it could not be written. No part of a copy is left.
            StoreCorrupt: What was copied does not verify; no copy is left.
        """

    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        """Remove whole streams for ever and say so in ``store:main``, all or none, in one transaction (invariant I-6).

        With a stream go its summary, its snapshots, the commands of its session, and each content that its payloads
        name (:func:`digests_in`) and no payload of another stream does. It is then like one that never had an event,
        but no position is ever given again.

        Args:
            ended: The streams, each with the head that its caller has judged.
            drafts: One or more events for ``store:main``, a ``store.pruned`` of each stream.

        Raises:
            StoreConflict: ``store.conflict``: a stream has another head by now; nothing was removed.
            StoreError: ``store.empty``: no stream or no draft; ``store.kept``: ``store:main`` is never removed; or as
                for :meth:`append`.
        """

    def put_blob(self, content: bytes) -> str:
        """Store content once; returns its lower-case SHA-256 hex."""

    def blob(self, digest: str) -> bytes:
        """Content by digest; raises ``NotFound``, or ``StoreCorrupt`` when it does not hash to it."""

    def post(self, session_id: str, command_id: str, body: bytes) -> Posted:
        """Put a command into the inbox, idempotent by id: the row that stands is returned, the first one wins."""

    def take(self, session_id: str) -> Sequence[Posted]:
        """The commands not yet marked taken, oldest first; only reads."""

    def posted(self, command_id: str) -> Posted | None:
        """One command by id, taken or not."""

    def change_counter(self) -> int:
        """A number that differs after any commit of any process; cheap enough for four looks a second."""

    def close(self) -> None:
        """Flush and close; later calls raise ``StoreError`` (``store.closed``), except ``close``."""
