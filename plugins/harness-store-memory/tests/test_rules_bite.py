"""For each rule of the suite a store that breaks it, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.rules import Contract, complaints
from harness_hookspecs.contracts.store import StoreContract
from harness_hookspecs.errors import NotFound, StoreConflict
from harness_hookspecs.store import (
    GENESIS_HASH,
    Backup,
    Draft,
    Head,
    Posted,
    Pruned,
    Snapshot,
    Store,
    StoredEvent,
    StoreStats,
    digests_in,
)
from harness_store_memory.log import Log, Stream
from harness_store_memory.store import MemoryStore

Events = tuple[StoredEvent, ...]


class Suite(StoreContract):
    """The suite with ways in, for whatever store of this file is its subject."""

    shrinks = False

    def reopen(self, store: Store) -> Store:
        assert isinstance(store, MemoryStore)
        store.close()
        return type(store)(store._log, self.host.ports)

    def cut_tail(self, store: Store, stream: str, count: int) -> bool:
        assert isinstance(store, MemoryStore)
        del store._log.streams[stream].events[-count:]
        return True


class RepeatsANumber(MemoryStore):
    def append(self, *arguments: Any, **options: Any) -> Events:
        events = super().append(*arguments, **options)
        return tuple(event._replace(seq=2) for event in events) if options["expected_seq"] == 2 else events


class PositionsPerStream(MemoryStore):
    def _extend(self, stream: Stream, drafts: Sequence[Draft], events: Events) -> None:
        super()._extend(stream, drafts, tuple(event._replace(position=event.seq) for event in events))

    def append(self, *arguments: Any, **options: Any) -> Events:
        return tuple(event._replace(position=event.seq) for event in super().append(*arguments, **options))


class Tidies(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], *rest: Any) -> Events:
        return super()._append(name, [draft._replace(refs=draft.refs.replace(b" ", b"")) for draft in drafts], *rest)


class KeepsTheCallersBlobs(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], expected: int | None, blobs: Any, *rest: Any) -> Events:
        events = super()._append(name, drafts, expected, blobs, *rest)
        self._log.blobs = _Chained(self._log.blobs, self.theirs)
        return events

    def append(self, *arguments: Any, **options: Any) -> Events:
        self.theirs = options.get("blobs") or {}
        return super().append(*arguments, **options)


class _Chained(dict[str, bytes]):
    """Contents of which some belong to somebody else."""

    def __init__(self, own: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> None:
        super().__init__({digest: content for digest, content in own.items() if digest not in theirs})
        self.theirs = theirs

    def get(self, digest: str, default: Any = None) -> Any:
        return self.theirs.get(digest) or super().get(digest, default)


class HashesWithoutPredecessor(MemoryStore):
    def _extend(self, stream: Stream, drafts: Sequence[Draft], events: Events) -> None:
        super()._extend(stream, drafts, events)
        stream.head = Head(stream.head.seq, GENESIS_HASH)


class HeadOfAnyStream(MemoryStore):
    def head(self, stream: str) -> Head:
        head = super().head(stream)
        return head if head.seq else Head(0, b"")


class TakesALostLogForAPrunedOne(MemoryStore):
    def read(self, stream: str, **between: Any) -> Iterator[StoredEvent]:
        found = self._open().streams.get(stream)
        return super().read(stream, **between) if found and found.events else iter(())


class KeepsSummariesOfRefusals(MemoryStore):
    def _append(self, name: str, *rest: Any) -> Events:
        try:
            return super()._append(name, *rest)
        except StoreConflict as conflict:
            if conflict.code == "store.key_conflict" and rest[-1] is not None:
                self._log.streams[name].summary = rest[-1]
            raise


class ShowsTheUncommitted(MemoryStore):
    def _append(self, name: str, *rest: Any) -> Events:
        events = super()._append(name, *rest)
        self._lock.release()
        try:
            self._reach("append.inside")
        finally:
            self._lock.acquire()
        return events


class LimitsBatches(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], *rest: Any) -> Events:
        return super()._append(name, drafts if len(drafts) == 100 else drafts[:150], *rest)


class OverwritesTheHead(MemoryStore):
    def _check(self, name: str, stream: Stream, expected_seq: int | None) -> None:
        super()._check(name, stream, expected_seq if expected_seq and expected_seq > stream.head.seq else None)


class LooksThenWrites(MemoryStore):
    """Decides on a head that it read before the transaction."""

    def append(self, stream: str, drafts: Sequence[Draft], *, expected_seq: int | None, **options: Any) -> Events:
        if expected_seq is not None and expected_seq == self.head(stream).seq and not options and len(drafts) == 1:
            time.sleep(0.0005)
            return super().append(stream, drafts, expected_seq=None, **options)
        return super().append(stream, drafts, expected_seq=expected_seq, **options)


class NeverTriesAgain(MemoryStore):
    def append(self, stream: str, drafts: Sequence[Draft], *, expected_seq: int | None, **options: Any) -> Events:
        if expected_seq is None and len(drafts) == 2:
            expected_seq = self.head(stream).seq
            time.sleep(0.0005)
        return super().append(stream, drafts, expected_seq=expected_seq, **options)


class WritesTwice(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], *rest: Any) -> Events:
        if name in self._log.streams and any(draft.key in self._log.streams[name].keys for draft in drafts):
            self._log.commits += 1
        return super()._append(name, drafts, *rest)


class AcceptsAnyPayload(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], *rest: Any) -> Events:
        keys = self._log.streams[name].keys if name in self._log.streams else {}
        if len(drafts) == 1 and drafts[0].key in keys and rest[-1] is None:
            return (self._log.streams[name].events[keys[drafts[0].key] - 1],)
        return super()._append(name, drafts, *rest)


class KeysOfAllStreams(MemoryStore):
    def _append(self, name: str, drafts: Sequence[Draft], *rest: Any) -> Events:
        others = [stream for other, stream in self._log.streams.items() if other != name]
        if any(draft.key in stream.keys for stream in others for draft in drafts):
            raise StoreConflict("known elsewhere", code="store.key_conflict")
        return super()._append(name, drafts, *rest)


class LetsLineBreaksIn(MemoryStore):
    def _check_content(self, name: str, drafts: Sequence[Draft], blobs: Mapping[str, bytes]) -> None:
        super()._check_content(name, [], blobs)


class TakesAnyTime(MemoryStore):
    def _check_content(self, name: str, drafts: Sequence[Draft], blobs: Mapping[str, bytes]) -> None:
        super()._check_content(name, [one._replace(timestamp=f"{one.timestamp}Z") for one in drafts], blobs)


class AppendsNothing(MemoryStore):
    def append(self, stream: str, drafts: Sequence[Draft], **options: Any) -> Events:
        return super().append(stream, drafts, **options) if drafts else ()


class ReadsFromTheStart(MemoryStore):
    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        return super().read(stream, after=max(0, after - 1), until=until)


class ReadsOnePage(MemoryStore):
    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        return super().read(stream, after=after, until=min(until or after + 512, after + 512) if until != 0 else 0)


class ConfusesContents(MemoryStore):
    def blob(self, digest: str) -> bytes:
        return super().blob(digest).replace(b"\x00\xff", b"\x00")


class FindsNothingEmpty(MemoryStore):
    def blob(self, digest: str) -> bytes:
        try:
            return super().blob(digest)
        except NotFound:
            if len(digest) != 64 or digest.isupper():
                return b""
            raise


class TrustsDigests(MemoryStore):
    def _check_content(self, name: str, drafts: Sequence[Draft], blobs: Mapping[str, bytes]) -> None:
        super()._check_content(name, drafts, {})


class LastCommandWins(MemoryStore):
    def post(self, session_id: str, command_id: str, body: bytes) -> Posted:
        row = super().post(session_id, command_id, body)
        if row.taken_seq is None and len(self._log.inbox) == 1 and body != row.body:
            row = self._log.inbox[command_id] = Posted(session_id, command_id, body, None)
        return row


class TakesAway(MemoryStore):
    def take(self, session_id: str) -> Sequence[Posted]:
        rows = super().take(session_id)
        if any(row.command_id == "z" for row in rows):
            self._log.inbox = {name: row for name, row in self._log.inbox.items() if row not in rows}
        return rows


class MarksTheFirstEvent(MemoryStore):
    def _marks(self, taken: Mapping[str, int], seq: int, count: int) -> dict[str, Posted]:
        marks = super()._marks(taken, seq, count)
        return {name: row._replace(taken_seq=seq + 1) if count == 3 else row for name, row in marks.items()}


class TakesTwice(MemoryStore):
    def _marks(self, taken: Mapping[str, int], seq: int, count: int) -> dict[str, Posted]:
        if seq == 1 and count == 1 and taken == {"c1": 0}:
            return {}
        return super()._marks(taken, seq, count)


class StoresBlobsFirst(MemoryStore):
    def _check(self, name: str, stream: Stream, expected_seq: int | None) -> None:
        try:
            super()._check(name, stream, expected_seq)
        except StoreConflict:
            self._log.blobs.update(self.given)
            raise

    def append(self, *arguments: Any, **options: Any) -> Events:
        self.given = options.get("blobs") or {}
        return super().append(*arguments, **options)


class SummariesByName(MemoryStore):
    def summaries(self) -> Iterator[tuple[str, bytes]]:
        return iter(sorted(super().summaries()))


class LatestSnapshotOnly(MemoryStore):
    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        latest = super().snapshot(stream, maker)
        return latest if latest is None or until is None or latest.seq <= until else None


class AnyMaker(MemoryStore):
    def snapshot(self, stream: str, maker: str, *, until: int | None = None) -> Snapshot | None:
        return super().snapshot(stream, "", until=until)

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        super().put_snapshot(stream, seq, "", content)


class DropsSummariesToo(MemoryStore):
    def drop_snapshots(self) -> None:
        super().drop_snapshots()
        for stream in self._log.streams.values():
            stream.summary = None


class PutsAnything(MemoryStore):
    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        found = self._log.streams.get(stream)
        return found is not None and super().put_summary(stream, found.head.seq, summary)


class KeepsTheOrder(MemoryStore):
    def put_summary(self, stream: str, seq: int, summary: bytes | None) -> bool:
        changed = self._log.streams[stream].changed if stream in self._log.streams else 0
        done = super().put_summary(stream, seq, summary)
        if done:
            self._log.streams[stream].changed = changed
        return done


class CountsStreamsAsEvents(MemoryStore):
    def stats(self) -> StoreStats:
        found = super().stats()
        return found._replace(events={"role.note": found.streams} if found.streams else {})


class CopiesNothing(MemoryStore):
    def backup(self, target: Path) -> Backup:
        return Backup(0, {stream: self.head(stream) for stream in self.streams()}, len(self._log.blobs))


class RefusesTooLate(MemoryStore):
    def backup(self, target: Path) -> Backup:
        if target.exists():
            target.write_bytes(b"")
        return super().backup(target)


class LeavesCommands(MemoryStore):
    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        inbox = dict(self._log.inbox)
        pruned = super().prune(ended, drafts)
        self._log.inbox.update(inbox)
        return pruned


class GivesPositionsAgain(MemoryStore):
    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        pruned = super().prune(ended, drafts)
        self._log.last_position -= pruned.events
        return pruned


class PrunesWhatStands(MemoryStore):
    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        known = {name: self.head(name) if name in self._log.streams else head for name, head in ended.items()}
        return super().prune(known, drafts)


class TakesContentsOfOthers(MemoryStore):
    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        named = {digest for name in ended for event in self.read(name) for digest in digests_in(event.payload)}
        pruned = super().prune(ended, drafts)
        for digest in named:
            self._log.blobs.pop(digest, None)
        return pruned


class LooksTooEarly(MemoryStore):
    def prune(self, ended: Mapping[str, Head], drafts: Sequence[Draft]) -> Pruned:
        names = {name: {d for event in self.read(name) for d in digests_in(event.payload)} for name in self.streams()}
        others = {digest for name, found in names.items() if name not in ended for digest in found}
        pruned = super().prune(ended, drafts)
        for digest in {digest for name in ended for digest in names.get(name, ())} - others:
            self._log.blobs.pop(digest, None)
        return pruned


class StreamsByName(MemoryStore):
    def streams(self) -> Sequence[str]:
        return sorted(super().streams())


class CountsEventsOnly(MemoryStore):
    def change_counter(self) -> int:
        return sum(self.head(stream).seq for stream in self.streams())


class ReadsAfterClosing(MemoryStore):
    def posted(self, command_id: str) -> Posted | None:
        return self._log.inbox.get(command_id)


class ForgetsKeys(MemoryStore):
    def __init__(self, log: Log, ports: Any) -> None:
        super().__init__(log, ports)
        for stream in log.streams.values():
            if len(stream.events) == 1 and log.blobs:
                stream.keys.clear()


class MixesCommands(MemoryStore):
    def take(self, session_id: str) -> Sequence[Posted]:
        rows = super().take(session_id)
        return rows[::-1] if len(rows) > 2 else rows


BROKEN: dict[str, type[MemoryStore]] = {
    "store.sequence": RepeatsANumber,
    "store.positions": PositionsPerStream,
    "store.bytes_are_kept": Tidies,
    "store.keeps_copies": KeepsTheCallersBlobs,
    "store.chain": HashesWithoutPredecessor,
    "store.head": HeadOfAnyStream,
    "store.cut_tail_shows": TakesALostLogForAPrunedOne,
    "store.atomic": KeepsSummariesOfRefusals,
    "store.uncommitted_is_unseen": ShowsTheUncommitted,
    "store.large_batch": LimitsBatches,
    "store.expected_seq": OverwritesTheHead,
    "store.race": LooksThenWrites,
    "store.any_head": NeverTriesAgain,
    "store.keys_repeat": WritesTwice,
    "store.key_conflict": AcceptsAnyPayload,
    "store.keys_per_stream": KeysOfAllStreams,
    "store.line_break": LetsLineBreaksIn,
    "store.utc": TakesAnyTime,
    "store.empty": AppendsNothing,
    "store.read_range": ReadsFromTheStart,
    "store.read_long": ReadsOnePage,
    "store.blobs": ConfusesContents,
    "store.blob_unknown": FindsNothingEmpty,
    "store.blob_is_checked": TrustsDigests,
    "store.inbox_first_wins": LastCommandWins,
    "store.take_only_reads": TakesAway,
    "store.taken_marks": MarksTheFirstEvent,
    "store.taken_once": TakesTwice,
    "store.refusal_leaves_nothing": StoresBlobsFirst,
    "store.summaries": SummariesByName,
    "store.snapshot_nearest": LatestSnapshotOnly,
    "store.snapshot_maker": AnyMaker,
    "store.snapshots_are_caches": DropsSummariesToo,
    "store.put_summary": KeepsTheOrder,
    "store.put_summary_of_the_end": PutsAnything,
    "store.stats": CountsStreamsAsEvents,
    "store.backup_is_whole": CopiesNothing,
    "store.backup_replaces_nothing": RefusesTooLate,
    "store.prune_is_whole": LeavesCommands,
    "store.prune_goes_on": GivesPositionsAgain,
    "store.prune_of_what_was_judged": PrunesWhatStands,
    "store.prune_of_contents": TakesContentsOfOthers,
    "store.prune_amid_others": LooksTooEarly,
    "store.streams": StreamsByName,
    "store.change_counter": CountsEventsOnly,
    "store.closed": ReadsAfterClosing,
    "store.reopens": ForgetsKeys,
    "store.model": MixesCommands,
}


def _maker(kind: type[MemoryStore]) -> Callable[[Contract], MemoryStore]:
    return lambda suite: kind(Log(), suite.host.ports)


@pytest.mark.req("B-134")
def test_each_rule_finds_the_store_that_breaks_it() -> None:
    broken = {label: _maker(kind) for label, kind in BROKEN.items()}
    # What breaks the chain is noticed wherever a chain is verified.
    found = complaints(Suite, good=_maker(MemoryStore), broken=broken, at_most=8, overall=["store.model"])
    assert found == []
