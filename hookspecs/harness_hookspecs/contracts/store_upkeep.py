"""Rules for looking after a store: a store goes in, its caches, its numbers and its copies are judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.errors import NotFound, StoreConflict, StoreError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import GENESIS_HASH, Backup, Draft, Head, Pruned, Store, digests_in

from .rules import rule
from .store_case import OTHER, STREAM, StoreCase, draft, proved, seen

__all__ = ["UpkeepRules"]

MAIN = "store:main"


class UpkeepRules(StoreCase):
    """Summaries put in place by hand, statistics, backups, streams that are removed."""

    @rule("store.put_summary")
    def test_a_summary_is_put_in_place_as_if_it_had_come_with_the_last_event(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1)], expected_seq=0, summary=b"first")
        store.append(OTHER, [draft(1), draft(2)], expected_seq=0)
        before = list(store.read(STREAM)), list(store.read(OTHER)), store.change_counter()
        assert store.put_summary(STREAM, 1, b"second") is True
        assert store.change_counter() != before[2]
        assert list(store.summaries()) == [(STREAM, b"second")]
        assert store.put_summary(OTHER, 2, b"other") is True
        assert list(store.summaries()) == [(OTHER, b"other"), (STREAM, b"second")]
        assert store.put_summary(STREAM, 1, b"third") is True
        assert list(store.summaries()) == [(OTHER, b"other"), (STREAM, b"third")]
        assert store.put_summary(OTHER, 2, None) is True
        assert list(store.summaries()) == [(STREAM, b"third")]
        assert (list(store.read(STREAM)), list(store.read(OTHER))) == before[:2]

    @rule("store.put_summary_of_the_end")
    def test_a_summary_of_what_the_log_no_longer_ends_with_is_not_put(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1)], expected_seq=0, summary=b"first")
        store.append(STREAM, [draft(2)], expected_seq=1, summary=b"second")
        for stream, seq in ((STREAM, 1), (STREAM, 3), (STREAM, 0), ("session:none", 0), ("session:none", 1)):
            assert store.put_summary(stream, seq, b"other") is False
            assert store.put_summary(stream, seq, None) is False
        assert list(store.summaries()) == [(STREAM, b"second")]
        assert list(store.streams()) == [STREAM]

    @rule("store.stats")
    def test_its_numbers_are_those_of_what_it_holds(self) -> None:
        store = self.opened()
        empty = store.stats()
        assert (empty.streams, dict(empty.events), empty.event_bytes, empty.blobs, empty.snapshots) == (0, {}, 0, 0, 0)
        drafts = [draft(1, text="x" * 1000), draft(2)._replace(type="stage.left")]
        store.append(STREAM, drafts, expected_seq=0, summary=b"{}")
        store.append(OTHER, [draft(3)], expected_seq=0)
        for content in (b"a" * 5000, b"b"):
            store.put_blob(content)
        store.post("s1", "c1", b"{}")
        store.put_snapshot(STREAM, 1, "m1", b"one")
        before = seen(store), store.change_counter()
        found = store.stats()
        assert (found.streams, dict(found.events)) == (2, {"role.note": 2, "stage.left": 1})
        assert (found.blobs, found.content_bytes, found.commands) == (2, 5001, 1)
        assert (found.summaries, found.snapshots) == (1, 1)
        assert sum(len(one.payload) + len(one.refs) for one in drafts) < found.event_bytes < 3000
        assert 0 < found.blob_bytes <= found.content_bytes + 1000
        assert (seen(store), store.change_counter()) == before

    @rule("store.backup_is_whole")
    def test_a_copy_holds_all_that_was_there_and_nothing_of_what_came_later(self) -> None:
        store = self._filled()
        target, before = self.folder / "copy", seen(store)
        made = self._backup(store, target)
        assert seen(store) == before
        if made is None:
            assert not list(self.folder.glob("*copy*")), "a refusal leaves nothing"
            return
        store.append(STREAM, [draft(9)], expected_seq=2)
        copy = self.restored(target)
        assert copy is not None, "who makes a copy can open it"
        self.kept(copy)
        assert (seen(copy), dict(made.heads), made.contents) == (before, dict(before[0]), 1)
        assert copy.append(OTHER, [draft(5)], expected_seq=1)[0].seq == 2
        posted = copy.posted("c1")
        assert posted is not None
        assert (posted.body, copy.blob(store.put_blob(b"a" * 5000))) == (b"{}", b"a" * 5000)

    @rule("store.backup_replaces_nothing")
    def test_a_copy_takes_the_place_of_nothing(self) -> None:
        store = self._filled()
        target = self.folder / "copy"
        target.write_bytes(b"somebody's")
        with pytest.raises(StoreError) as caught:
            store.backup(target)
        assert caught.value.code in ("store.exists", "store.no_file")
        assert target.read_bytes() == b"somebody's"
        assert [file.name for file in self.folder.glob("*copy*")] == ["copy"]

    @rule("store.prune_is_whole")
    def test_a_stream_goes_with_all_that_is_its_own_and_the_log_says_so(self) -> None:
        store = self.opened()
        own, shared, loose = b"a" * 5000, b"b" * 5000, b"c"
        digests = [store.put_blob(content) for content in (own, shared, loose)]
        store.append(OTHER, [draft(1, ref=digests[1])], expected_seq=0, summary=b"other")
        store.append(STREAM, [draft(2, key="k"), draft(3, refs=digests[:2])], expected_seq=0, summary=b"{}")
        store.put_snapshot(STREAM, 1, "m1", b"one")
        for session in (STREAM, OTHER):
            store.post(session.removeprefix("session:"), f"of {session}", b"{}")
        kept, counter, head = proved(store, OTHER), store.change_counter(), store.head(STREAM)
        assert store.prune({STREAM: head}, [_said(store, STREAM)]) == Pruned(2, 1, 5000, 1)
        assert store.change_counter() != counter
        again = self.reopen(store)
        store = store if again is None else self.kept(again)
        assert (proved(store, OTHER), proved(store, STREAM)) == (kept, [])
        assert (store.head(STREAM), list(store.streams())) == (Head(0, GENESIS_HASH), [OTHER, MAIN])
        assert [event.type for event in proved(store, MAIN)] == ["store.pruned"]
        assert (list(store.summaries()), store.snapshot(STREAM, "m1")) == ([(OTHER, b"other")], None)
        assert (store.posted(f"of {STREAM}"), store.posted(f"of {OTHER}") is None) == (None, False)
        assert [store.blob(digest) for digest in digests[1:]] == [shared, loose]
        with pytest.raises(NotFound):
            store.blob(digests[0])
        found = store.stats()
        assert (found.streams, found.blobs, found.commands, found.snapshots) == (2, 2, 1, 0)

    @rule("store.prune_goes_on")
    def test_after_a_stream_was_removed_the_log_goes_on_and_no_position_comes_twice(self) -> None:
        store = self.opened()
        store.append(OTHER, [draft(1)], expected_seq=0)
        last = store.append(STREAM, [draft(2), draft(3, key="k")], expected_seq=0)[-1].position
        store.prune({STREAM: store.head(STREAM)}, [_said(store, STREAM)])
        (told,) = proved(store, MAIN)
        assert told.position > last
        before = seen(store)
        with pytest.raises(StoreConflict):
            store.append(STREAM, [draft(4)], expected_seq=2)
        store.put_snapshot(STREAM, 2, "m1", b"one")
        assert (store.put_summary(STREAM, 2, b"{}"), store.put_summary(STREAM, 0, b"{}")) == (False, False)
        assert (seen(store), store.stats().snapshots, store.snapshot(STREAM, "m1")) == (before, 0, None)
        assert store.append(OTHER, [draft(5)], expected_seq=1)[0].position > told.position
        (first,) = store.append(STREAM, [draft(6, key="k")], expected_seq=0)
        assert (first.seq, [event.id for event in proved(store, STREAM)]) == (1, [draft(6).id])

    @rule("store.prune_of_what_was_judged")
    def test_nothing_is_removed_of_what_has_another_head_by_now(self) -> None:
        store = self._filled()
        now, other, said = store.head(STREAM), store.head(OTHER), [_said(store, STREAM)]
        before = seen(store), store.stats()
        stale = {STREAM: Head(1, next(store.read(STREAM)).hash)}, {STREAM: Head(2, b"x" * 32)}
        for ended in (*stale, {OTHER: other, STREAM: Head(3, now.hash)}, {OTHER: other, "session:none": other}):
            with pytest.raises(StoreConflict) as refused:
                store.prune(ended, said)
            assert refused.value.code == "store.conflict"
        store.append(MAIN, [draft(8)], expected_seq=0)
        before = seen(store), store.stats()
        nothing: Any = ({}, said, "store.empty"), ({STREAM: now}, [], "store.empty")
        for heads, drafts, code in (*nothing, ({MAIN: store.head(MAIN)}, said, "store.kept")):
            with pytest.raises(StoreError) as caught:
                store.prune(heads, drafts)
            assert caught.value.code == code
        assert (seen(store), store.stats()) == before

    @rule("store.prune_of_contents")
    def test_a_content_that_another_stream_names_in_any_way_stays(self) -> None:
        store = self.opened()
        digests = [store.put_blob(bytes([number]) * 300) for number in range(4)]
        store.append(STREAM, [draft(1, refs=digests)], expected_seq=0)
        texts = [f"artifact://sha256-{digests[0]}", f"ab{digests[1]}", {"deep": [{digests[2]: 1}]}]
        store.append(OTHER, [draft(2, of=texts)], expected_seq=0)
        assert store.prune({STREAM: store.head(STREAM)}, [_said(store, STREAM)]).blobs == 1
        assert [len(store.blob(digest)) for digest in digests[:3]] == [300] * 3
        assert store.put_blob(bytes([3]) * 300) == digests[3]
        assert store.blob(digests[3]) == bytes([3]) * 300
        assert digests_in(dumps({"a": digests[0].upper(), "b": digests[0][1:]})) == set()

    @rule("store.prune_amid_others")
    def test_a_content_that_is_named_meanwhile_stays(self) -> None:
        store = self.opened()
        large, small = b"a" * 9000, b"b" * 300
        digests = [store.put_blob(content) for content in (large, small)]
        store.append(STREAM, [draft(1, refs=digests)], expected_seq=0)
        ended, said = {STREAM: store.head(STREAM)}, [_said(store, STREAM)]
        self._once(lambda: store.append(OTHER, [draft(2, ref=digests[1])], expected_seq=0))
        assert store.prune(ended, said).blobs == 1
        assert store.blob(digests[1]) == small
        store.put_blob(large)
        store.append(STREAM, [draft(3, refs=digests)], expected_seq=0)
        ended, said = {STREAM: store.head(STREAM)}, [_said(store, STREAM)]
        self._once(lambda: store.prune(ended, said))
        store.append(OTHER, [draft(4, ref=digests[0])], expected_seq=1, blobs={digests[0]: large})
        assert [store.blob(digest) for digest in digests] == [large, small]

    def _once(self, then: Callable[[], object]) -> None:
        """Do it when the next write is about to begin."""

        def act() -> None:
            del self.host.ports.at["append.before"]
            then()

        self.host.ports.at["append.before"] = act

    def _filled(self) -> Store:
        store = self.opened()
        store.append(STREAM, [draft(1), draft(2)], expected_seq=0, summary=b"{}")
        store.append(OTHER, [draft(3)], expected_seq=0)
        store.put_blob(b"a" * 5000)
        store.post("s1", "c1", b"{}")
        return store

    def _backup(self, store: Store, target: Path) -> Backup | None:
        try:
            return store.backup(target)
        except StoreError as error:
            assert error.code == "store.no_file"
            return None


def _said(store: Store, stream: str) -> Draft:
    seq, last = store.head(stream)
    payload = {"stream": stream, "last_seq": seq, "last_hash": last.hex()}
    return draft(7)._replace(type="store.pruned", payload=dumps(payload))
