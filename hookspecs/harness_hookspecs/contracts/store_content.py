"""Rules for what lies beside the events: a store goes in, its blobs, inbox, summaries and life are judged."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest

from harness_hookspecs.errors import NotFound, StoreError
from harness_hookspecs.store import Head, Posted, Snapshot, Store

from .rules import rule
from .store_case import OTHER, STREAM, StoreCase, draft, proved, refused, seen

__all__ = ["ContentRules"]

_CONTENTS = (b"", b"a", b"\x00\xff" * 40_000, b"text " * 40_000, bytes(range(256)) * 3)


class ContentRules(StoreCase):
    """Blobs, the inbox, summaries, snapshots, streams, the change counter, closing."""

    @rule("store.blobs")
    def test_content_is_found_by_its_digest(self) -> None:
        store = self.opened()
        for content in _CONTENTS:
            assert store.put_blob(content) == store.put_blob(content) == sha256(content).hexdigest()
        digests = {sha256(content).hexdigest(): content for content in (b"b", b"c" * 5000)}
        store.append(STREAM, [draft()], expected_seq=0, blobs={**digests, sha256(b"a").hexdigest(): b"a"})
        for content in (*_CONTENTS, *digests.values()):
            assert store.blob(sha256(content).hexdigest()) == content

    @rule("store.blob_unknown")
    def test_content_that_is_not_there_is_not_found(self) -> None:
        store = self.opened()
        store.put_blob(b"a")
        for digest in (sha256(b"other").hexdigest(), "", "no digest", sha256(b"a").hexdigest().upper()):
            with pytest.raises(NotFound):
                store.blob(digest)

    @rule("store.blob_is_checked")
    def test_content_under_a_digest_not_its_own_is_refused(self) -> None:
        store = self.opened()
        digest = sha256(b"a").hexdigest()
        with pytest.raises(StoreError):
            store.append(STREAM, [draft()], expected_seq=0, blobs={digest: b"b"})
        assert store.head(STREAM).seq == 0
        with pytest.raises(NotFound):
            store.blob(digest)

    @rule("store.inbox_first_wins")
    def test_of_two_commands_of_one_id_the_first_stands(self) -> None:
        store = self.opened()
        first = store.post("s1", "c1", b'{"n":1}')
        assert first == Posted("s1", "c1", b'{"n":1}', None)
        assert store.post("s1", "c1", b'{"n":2}') == store.post("s2", "c1", b"{}") == first
        assert (store.posted("c1"), store.posted("c2")) == (first, None)
        assert list(store.take("s2")) == []

    @rule("store.take_only_reads")
    def test_to_take_only_reads_the_oldest_first(self) -> None:
        store = self.opened()
        for session, command in (("s1", "z"), ("s2", "b"), ("s1", "a")):
            store.post(session, command, b"{}")
        counter = store.change_counter()
        for _ in range(2):
            assert [row.command_id for row in store.take("s1")] == ["z", "a"]
        assert [row.command_id for row in store.take("s2")] == ["b"]
        assert store.change_counter() == counter

    @rule("store.taken_marks")
    def test_a_taken_command_stays_with_the_number_of_its_event(self) -> None:
        store = self.opened()
        for command in ("c1", "c2", "c3"):
            store.post("s1", command, b"{}")
        store.append(STREAM, [draft(1)], expected_seq=0)
        drafts = [draft(2), draft(3), draft(4)]
        store.append(STREAM, drafts, expected_seq=1, taken={"c1": 0, "c3": 2})
        assert [row.command_id for row in store.take("s1")] == ["c2"]
        assert [_mark(store, command) for command in ("c1", "c2", "c3")] == [2, None, 4]
        assert store.post("s1", "c1", b'{"n":2}') == Posted("s1", "c1", b"{}", 2)

    @rule("store.taken_once")
    def test_a_command_is_taken_once_and_only_if_it_was_posted(self) -> None:
        store = self.opened()
        for command in ("c1", "c2"):
            store.post("s1", command, b"{}")
        store.append(STREAM, [draft(1)], expected_seq=0, taken={"c1": 0})
        for taken in ({"c1": 0}, {"c2": 0, "c1": 0}, {"c3": 0}, {"c2": 1}):
            refused(store, "store.taken", STREAM, [draft(2)], expected_seq=1, taken=taken)
        assert (_mark(store, "c1"), _mark(store, "c2")) == (1, None)

    @rule("store.refusal_leaves_nothing")
    def test_a_refused_append_leaves_neither_content_nor_marks(self) -> None:
        store = self.opened()
        store.post("s1", "c1", b"{}")
        digest = sha256(b"a").hexdigest()
        options = {"blobs": {digest: b"a"}, "taken": {"c1": 0}, "summary": b"{}"}
        refused(store, "store.conflict", STREAM, [draft()], expected_seq=5, **options)
        assert _mark(store, "c1") is None
        with pytest.raises(NotFound):
            store.blob(digest)

    @rule("store.summaries")
    def test_the_latest_summary_of_each_stream_the_last_change_first(self) -> None:
        store = self.opened()
        assert list(store.summaries()) == []
        store.append(STREAM, [draft(1)], expected_seq=0, summary=b'{"n":1}')
        store.append(OTHER, [draft(1)], expected_seq=0, summary=b'{"n":2}')
        assert list(store.summaries()) == [(OTHER, b'{"n":2}'), (STREAM, b'{"n":1}')]
        store.append(STREAM, [draft(2)], expected_seq=1, summary=b'{"n":3}')
        store.append(OTHER, [draft(2)], expected_seq=1)
        store.append("store:main", [draft(3)], expected_seq=None)
        assert list(store.summaries()) == [(STREAM, b'{"n":3}'), (OTHER, b'{"n":2}')]

    @rule("store.snapshot_nearest")
    def test_the_nearest_snapshot_at_or_before_a_seq_is_found(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(number) for number in range(1, 7)], expected_seq=0)
        for seq, content in ((2, b"two"), (5, b"old"), (4, b"\x00\xff"), (5, b"five")):
            store.put_snapshot(STREAM, seq, "m1", content)
        for until, seq, content in ((2, 2, b"two"), (3, 2, b"two"), (4, 4, b"\x00\xff"), (6, 5, b"five")):
            assert store.snapshot(STREAM, "m1", until=until) == Snapshot(seq, content)
        assert store.snapshot(STREAM, "m1") == store.snapshot(STREAM, "m1", until=2**70) == Snapshot(5, b"five")
        for until in (1, 0, -1, -(2**70)):
            assert store.snapshot(STREAM, "m1", until=until) is None

    @rule("store.snapshot_maker")
    def test_a_snapshot_is_its_maker_s_and_its_stream_s(self) -> None:
        store = self.opened()
        for stream in (STREAM, OTHER):
            store.append(stream, [draft(1), draft(2)], expected_seq=0)
        store.put_snapshot(STREAM, 1, "m1", b"one")
        store.put_snapshot("session:none", 1, "m1", b"of nothing")
        for stream, maker in ((STREAM, "m2"), (OTHER, "m1"), ("session:none", "m1")):
            assert store.snapshot(stream, maker) is None
        store.put_snapshot(STREAM, 2, "m2", b"two")
        assert store.snapshot(STREAM, "m2", until=1) is None
        assert store.snapshot(STREAM, "m2") == Snapshot(2, b"two")

    @rule("store.snapshots_are_caches")
    def test_snapshots_and_their_end_change_nothing_else(self) -> None:
        store = self.opened()
        for stream in (STREAM, OTHER):
            store.append(stream, [draft(1)], expected_seq=0, summary=b"{}")
        before = seen(store)
        for stream in (STREAM, OTHER):
            store.put_snapshot(stream, 1, "m1", b"one")
        assert seen(store) == before
        store.drop_snapshots()
        assert store.snapshot(STREAM, "m1") is store.snapshot(OTHER, "m1") is None
        assert seen(store) == before

    @rule("store.streams")
    def test_streams_with_events_are_listed_the_oldest_first(self) -> None:
        store = self.opened()
        assert list(store.streams()) == []
        for stream in ("store:main", OTHER, STREAM, OTHER):
            store.append(stream, [draft()], expected_seq=None)
        refused(store, "store.conflict", "session:none", [draft()], expected_seq=1)
        assert list(store.streams()) == ["store:main", OTHER, STREAM]

    @rule("store.change_counter")
    def test_the_change_counter_differs_after_each_commit_and_only_then(self) -> None:
        store = self.opened()
        commits: tuple[Callable[[], object], ...] = (
            lambda: store.append(STREAM, [draft(1)], expected_seq=0),
            lambda: store.append(STREAM, [draft(2)], expected_seq=1),
            lambda: store.append(STREAM, [draft(3)], expected_seq=2, summary=b"{}"),
            lambda: store.post("s1", "c1", b"{}"),
            lambda: store.put_blob(b"a"),
            lambda: store.put_snapshot(STREAM, 1, "m1", b"one"),
        )
        for commit in commits:
            before = store.change_counter()
            assert (list(store.read(STREAM)), store.change_counter())[1] == before
            commit()
            assert store.change_counter() != before

    @rule("store.closed")
    def test_a_closed_store_refuses_everything(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1)], expected_seq=0)
        store.close()
        store.close()
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.append(STREAM, [draft(2)], expected_seq=1),
            lambda: list(store.read(STREAM)),
            lambda: store.head(STREAM),
            store.streams,
            lambda: list(store.summaries()),
            lambda: store.put_snapshot(STREAM, 1, "m1", b"one"),
            lambda: store.snapshot(STREAM, "m1"),
            store.drop_snapshots,
            lambda: store.put_summary(STREAM, 1, b"{}"),
            store.stats,
            lambda: store.backup(self.folder / "copy"),
            lambda: store.put_blob(b"a"),
            lambda: store.blob(sha256(b"a").hexdigest()),
            lambda: store.post("s1", "c1", b"{}"),
            lambda: store.take("s1"),
            lambda: store.posted("c1"),
            store.change_counter,
        )
        for call in calls:
            with pytest.raises(StoreError) as caught:
                call()
            assert caught.value.code == "store.closed"

    @rule("store.reopens")
    def test_what_was_acknowledged_is_there_after_a_restart(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1, key="k")], expected_seq=0, summary=b"{}")
        store.post("s1", "c1", b"{}")
        digest = store.put_blob(b"a" * 1000)
        before = (seen(store), list(store.read(STREAM)), store.posted("c1"))
        again = self.reopen(store)
        if again is None:
            return
        self.kept(again)
        assert (seen(again), proved(again, STREAM), again.posted("c1")) == before
        assert again.blob(digest) == b"a" * 1000
        refused(again, "store.key_conflict", STREAM, [draft(2, key="k")], expected_seq=1)
        assert again.append(STREAM, [draft(2)], expected_seq=1)[0].seq == 2
        assert again.head(STREAM) != Head(1, before[1][0].hash)


def _mark(store: Store, command_id: str) -> int | None:
    row = store.posted(command_id)
    assert row is not None
    return row.taken_seq
