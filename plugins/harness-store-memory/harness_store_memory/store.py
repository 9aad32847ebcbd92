"""The store ``memory``: settings and a host go in, a ``Store`` over lists and dictionaries comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from harness_hookspecs.errors import NotFound, StoreConflict, StoreCorrupt, StoreError
from harness_hookspecs.host import Ports, StoreHost
from harness_hookspecs.kit.whole_pages import tail_missing
from harness_hookspecs.store import (
    GENESIS_HASH,
    Backup,
    Draft,
    Head,
    Posted,
    Pruned,
    Snapshot,
    StoredEvent,
    StoreStats,
)

from .log import MAIN, Log, Stream, bytes_of, chained, first_result, pruned_from

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["MemoryStore", "open_store"]

_PAGE_EVENTS = 512
_LOGS: dict[str, Log] = {}


def open_store(settings: Settings, host: StoreHost) -> MemoryStore:
    """Open a log: a new one, or the one of that name."""
    log = Log() if settings.name is None else _LOGS.setdefault(settings.name, Log())
    return MemoryStore(log, host.ports)


class MemoryStore:
    """The ``Store`` in memory; see the protocol for what each method promises.

    Args:
        log: What it reads and writes.
        ports: For the lock and the boundaries.
    """

    def __init__(self, log: Log, ports: Ports) -> None:
        self._log = log
        self._lock = ports.wait.lock()
        self._reach = ports.reach
        self._closed = False

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
        if not drafts:
            raise StoreError("An append needs at least one event.", code="store.empty", where=stream)
        self._reach("append.before")
        with self._lock:
            events = self._append(stream, drafts, expected_seq, dict(blobs or {}), dict(taken or {}), summary)
        self._reach("append.committed")
        return events

    def _append(
        self,
        name: str,
        drafts: Sequence[Draft],
        expected_seq: int | None,
        blobs: dict[str, bytes],
        taken: dict[str, int],
        summary: bytes | None,
    ) -> tuple[StoredEvent, ...]:
        log = self._open()
        stream = log.streams.get(name) or Stream()
        first = first_result(name, stream, drafts)
        if first is not None:
            return first
        self._check(name, stream, expected_seq)
        self._check_content(name, drafts, blobs)
        marks = self._marks(taken, stream.head.seq, len(drafts))
        events = tuple(chained(name, stream.head, log.last_position, drafts))
        # From here on nothing can fail.
        log.blobs.update(blobs)
        log.inbox.update(marks)
        self._extend(stream, drafts, events)
        if summary is not None:
            stream.summary, stream.changed = summary, events[-1].position
        log.streams[name] = stream
        log.last_position = events[-1].position
        log.commits += 1
        return events

    def _open(self) -> Log:
        if self._closed:
            raise StoreError("The store is closed.", code="store.closed")
        return self._log

    def _check(self, name: str, stream: Stream, expected_seq: int | None) -> None:
        seq = stream.head.seq
        if expected_seq is not None and expected_seq != seq:
            text = f"the head of {name} is {seq}, not {expected_seq}"
            raise StoreConflict(text, where=name, head=seq, expected=expected_seq)

    def _check_content(self, name: str, drafts: Sequence[Draft], blobs: Mapping[str, bytes]) -> None:
        for digest, content in blobs.items():
            if sha256(content).hexdigest() != digest:
                raise StoreError("The content does not hash to its digest.", code="store.blob", digest=digest)
        if any("\n" in field for draft in drafts for field in (draft.id, draft.type, draft.actor, draft.timestamp)):
            raise StoreError("A field of the envelope holds a line break.", code="store.line_break", where=name)
        if not all(draft.timestamp.endswith("Z") for draft in drafts):
            raise StoreError("The time of an event is not in UTC.", code="store.timestamp", where=name)

    def _marks(self, taken: Mapping[str, int], seq: int, count: int) -> dict[str, Posted]:
        marks = {}
        for command_id, index in taken.items():
            row = self._log.inbox.get(command_id)
            if row is None or row.taken_seq is not None or not 0 <= index < count:
                text = "is unknown" if row is None else "was taken before" if row.taken_seq else "names no draft"
                raise StoreConflict(f"the command {command_id} {text}", code="store.taken", command_id=command_id)
            marks[command_id] = row._replace(taken_seq=seq + 1 + index)
        return marks

    def _extend(self, stream: Stream, drafts: Sequence[Draft], events: tuple[StoredEvent, ...]) -> None:
        stream.batches[events[0].seq] = len(events)
        for draft, event in zip(drafts, events, strict=True):
            if draft.key is not None:
                stream.keys[draft.key] = event.seq
        stream.events.extend(events)
        stream.head = Head(events[-1].seq, events[-1].hash)

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        after = max(after, 0)
        while True:
            with self._lock:
                found = self._open().streams.get(stream)
                events, head = (found.events, found.head.seq) if found else ([], 0)
                last = max(head, len(events)) if until is None else max(0, until)
                page = events[after : min(last, after + _PAGE_EVENTS)]
            if not page:
                if after < min(last, head):
                    raise tail_missing(stream, after, head)
                return
            yield from page
            after += len(page)

    def head(self, stream: str) -> Head:
        with self._lock:
            found = self._open().streams.get(stream)
            return found.head if found else Head(0, GENESIS_HASH)

    def streams(self) -> Sequence[str]:
        with self._lock:
            return [name for name, stream in self._open().streams.items() if stream.events]

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        with self._lock:
            found = [(stream.changed, name, stream.summary) for name, stream in self._open().streams.items()]
        for _, name, summary in sorted(found, reverse=True):
            if summary is not None:
                yield name, summary

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        with self._lock:
            found = self._open().streams.get(stream)
            if found is not None and found.events:
                found.snapshots = {**(found.snapshots if found.maker == maker else {}), seq: bytes(content)}
                found.maker = maker
                self._log.commits += 1

    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        with self._lock:
            found = self._open().streams.get(stream)
            kept = found.snapshots if found is not None and found.maker == maker else {}
            seq = max((one for one in kept if until is None or one <= until), default=None)
            return None if seq is None else Snapshot(seq, kept[seq])

    def drop_snapshots(self) -> None:
        with self._lock:
            for stream in self._open().streams.values():
                stream.snapshots = {}
            self._log.commits += 1

    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        with self._lock:
            found = self._open().streams.get(stream)
            if found is None or not found.events or found.head.seq != seq:
                return False
            found.summary, found.changed = summary, found.events[-1].position
            self._log.commits += 1
            return True

    def stats(self) -> StoreStats:
        with self._lock:
            log = self._open()
            streams = [stream for stream in log.streams.values() if stream.events]
            events = [event for stream in streams for event in stream.events]
            content_bytes = sum(map(len, log.blobs.values()))
            return StoreStats(
                place=None,
                format=None,
                size_bytes=None,
                wal_bytes=None,
                free_bytes=None,
                streams=len(streams),
                events=Counter(event.type for event in events),
                event_bytes=sum(map(bytes_of, events)),
                blobs=len(log.blobs),
                content_bytes=content_bytes,
                blob_bytes=content_bytes,
                commands=len(log.inbox),
                summaries=sum(stream.summary is not None for stream in streams),
                snapshots=sum(len(stream.snapshots) for stream in streams),
            )

    def backup(self, target: Path) -> Backup:
        self._open()
        raise StoreError("This log lies in no file and ends with its process.", code="store.no_file")

    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        if not ended or not drafts:
            raise StoreError("There is nothing to remove, or nothing to say of it.", code="store.empty", where=MAIN)
        if MAIN in ended:
            raise StoreError("The store's own stream is never removed.", code="store.kept", where=MAIN)
        self._reach("append.before")
        with self._lock:
            log = self._open()
            for name, head in ended.items():
                found = log.streams.get(name)
                if found is None or found.head != head:
                    raise StoreConflict(f"{name} does not end as it did", where=name, expected=head.seq)
            self._append(MAIN, drafts, None, {}, {}, None)
            pruned = pruned_from(log, ended)
        self._reach("append.committed")
        return pruned

    def put_blob(self, content: bytes) -> str:
        digest = sha256(content).hexdigest()
        with self._lock:
            if digest not in self._open().blobs:
                self._log.blobs[digest] = bytes(content)
                self._log.commits += 1
        return digest

    def blob(self, digest: str) -> bytes:
        with self._lock:
            content = self._open().blobs.get(digest)
        if content is None:
            raise NotFound("There is no content of that digest.", where=digest)
        if sha256(content).hexdigest() != digest:
            raise StoreCorrupt("The content does not hash to its digest.", code="store.changed", where=digest)
        return content

    def post(self, session_id: str, command_id: str, body: bytes) -> Posted:
        with self._lock:
            row = self._open().inbox.get(command_id)
            if row is None:
                row = self._log.inbox[command_id] = Posted(session_id, command_id, body, None)
                self._log.commits += 1
            return row

    def take(self, session_id: str) -> Sequence[Posted]:
        with self._lock:
            waiting = [row for row in self._open().inbox.values() if row.taken_seq is None]
        return [row for row in waiting if row.session_id == session_id]

    def posted(self, command_id: str) -> Posted | None:
        with self._lock:
            return self._open().inbox.get(command_id)

    def change_counter(self) -> int:
        with self._lock:
            return self._open().commits

    def close(self) -> None:
        self._closed = True
