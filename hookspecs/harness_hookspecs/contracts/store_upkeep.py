"""Rules for looking after a store: a store goes in, its caches, its numbers and its copies are judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_hookspecs.errors import StoreError
from harness_hookspecs.store import Backup, Store

from .rules import rule
from .store_case import OTHER, STREAM, StoreCase, draft, seen

__all__ = ["UpkeepRules"]


class UpkeepRules(StoreCase):
    """Summaries put in place by hand, statistics, backups."""

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
