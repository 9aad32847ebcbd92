"""Rules for a store's events: a store goes in, what it does to appends, heads and reads is judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import pytest

from harness_hookspecs.errors import StoreConflict, StoreCorrupt, StoreError
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Store, StoredEvent, chain_hash

from .rules import rule
from .store_case import OTHER, STREAM, StoreCase, draft, proved, refused, seen

__all__ = ["EventRules"]

_THREADS, _ROUNDS, _LONG = 4, 15, 1300


class EventRules(StoreCase):
    """Appending and reading (invariants I-1 to I-9)."""

    @rule("store.sequence")
    def test_events_get_contiguous_numbers_from_one(self) -> None:
        store = self.opened()
        first = store.append(STREAM, [draft(1), draft(2)], expected_seq=0)
        second = store.append(STREAM, [draft(3)], expected_seq=2)
        assert [event.seq for event in (*first, *second)] == [1, 2, 3]
        assert list(store.read(STREAM)) == [*first, *second]

    @rule("store.positions")
    def test_positions_grow_over_all_streams_in_the_order_of_commits(self) -> None:
        store = self.opened()
        events = [store.append(stream, [draft()], expected_seq=None)[0] for stream in (STREAM, OTHER, STREAM, OTHER)]
        positions = [event.position for event in events]
        assert positions == sorted(set(positions))
        assert [event.position for event in store.read(OTHER)] == [positions[1], positions[3]]

    @rule("store.bytes_are_kept")
    def test_what_is_stored_is_exactly_what_was_given(self) -> None:
        store = self.opened()
        odd = draft(1)._replace(
            id="an id", version=7, actor="runner:é\u2028\x00", refs=b'{ "a" :1}', payload=b'{"b":"\\u0000\xc3\xa9"}'
        )
        large = draft(2, text="x" * 1_200_000)
        stored = store.append(STREAM, [odd, large], expected_seq=0)
        for given, event in zip((odd, large), store.read(STREAM), strict=True):
            assert (*event[3:9], event.payload) == given[:7]
        assert list(store.read(STREAM)) == list(stored)

    @rule("store.keeps_copies")
    def test_what_the_caller_changes_afterwards_stays_as_it_was(self) -> None:
        store = self.opened()
        drafts, blobs = [draft(1)], {sha256(b"one").hexdigest(): b"one"}
        stored = store.append(STREAM, drafts, expected_seq=0, blobs=blobs)
        drafts.append(draft(2))
        blobs.clear()
        assert list(store.read(STREAM)) == list(stored)
        assert store.blob(sha256(b"one").hexdigest()) == b"one"

    @rule("store.chain")
    def test_each_hash_covers_the_event_and_the_hash_before_it(self) -> None:
        store = self.opened()
        drafts = [draft(number) for number in range(1, 4)]
        store.append(STREAM, drafts[:1], expected_seq=0)
        store.append(STREAM, drafts[1:], expected_seq=1)
        last = GENESIS_HASH
        for seq, (given, event) in enumerate(zip(drafts, store.read(STREAM), strict=True), 1):
            last = chain_hash(last, STREAM, seq, given)
            assert event.hash == last
        proved(store, STREAM)

    @rule("store.head")
    def test_the_head_is_the_last_event_of_its_stream(self) -> None:
        store = self.opened()
        assert store.head(STREAM) == Head(0, GENESIS_HASH)
        event = store.append(STREAM, [draft(1), draft(2)], expected_seq=0)[-1]
        assert store.head(STREAM) == Head(2, event.hash)
        assert store.head(OTHER) == Head(0, GENESIS_HASH)

    @rule("store.cut_tail_shows")
    def test_a_log_that_lost_its_end_or_all_of_it_is_never_read_as_a_shorter_one(self) -> None:
        for lost in (3, 5):
            store = self.fresh()
            store.append(STREAM, [draft(number) for number in range(1, 6)], expected_seq=0)
            if not self.cut_tail(store, STREAM, lost):
                return
            found: list[int] = []
            with pytest.raises(StoreCorrupt) as caught:
                found.extend(event.seq for event in store.read(STREAM))
            assert (caught.value.code, caught.value.facts["seq"]) == ("store.tail_missing", 6 - lost)
            assert (found, store.head(STREAM).seq) == (list(range(1, 6 - lost)), 5)

    @rule("store.atomic")
    def test_a_batch_is_stored_whole_or_not_at_all(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1, key="k")], expected_seq=0)
        refused(store, "store.key_conflict", STREAM, [draft(2), draft(3, key="k")], expected_seq=1, summary=b"{}")

    @rule("store.atomic")
    def test_a_batch_that_stops_half_way_leaves_nothing(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1)], expected_seq=0)
        before, digest = seen(store), sha256(b"content").hexdigest()
        self.host.ports.at["append.inside"] = _stop
        with suppress(_Stopped):
            store.append(STREAM, [draft(2), draft(3)], expected_seq=1, blobs={digest: b"content"}, summary=b"{}")
        self.host.ports.at.clear()
        after = seen(store)
        assert after == before or (len(after[1]), after[2], store.blob(digest)) == (3, {STREAM: b"{}"}, b"content")
        store.append(STREAM, [draft(4)], expected_seq=len(after[1]))

    @rule("store.uncommitted_is_unseen")
    def test_nobody_sees_an_event_before_it_is_committed(self) -> None:
        store = self.opened()
        inside: list[list[StoredEvent]] = []
        self.host.ports.at["append.inside"] = lambda: inside.append(list(store.read(STREAM)))
        store.append(STREAM, [draft(1)], expected_seq=0, blobs={sha256(b"x").hexdigest(): b"x"})
        assert not any(inside)

    @rule("store.large_batch")
    def test_a_batch_may_be_large(self) -> None:
        store = self.opened()
        for count, expected in ((64, 0), (65, 64), (200, 129)):
            drafts = [draft(number) for number in range(expected + 1, expected + count + 1)]
            stored = store.append(STREAM, drafts, expected_seq=expected)
            assert [event.seq for event in stored] == list(range(expected + 1, expected + count + 1))
        assert [event.position for event in proved(store, STREAM)] == [event.seq for event in proved(store, STREAM)]

    @rule("store.expected_seq")
    def test_an_append_on_another_head_is_a_conflict(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1), draft(2)], expected_seq=0)
        for wrong in (0, 1, 3):
            refused(store, "store.conflict", STREAM, [draft(3)], expected_seq=wrong)
        refused(store, "store.conflict", OTHER, [draft(3)], expected_seq=1, summary=b"{}")
        assert store.append(STREAM, [draft(3)], expected_seq=2)[0].seq == 3

    @rule("store.race")
    def test_of_those_who_decided_on_one_head_one_wins(self) -> None:
        store = self.opened()
        won: list[StoredEvent] = []

        def compete(name: int) -> None:
            for round_number in range(_ROUNDS):
                seq = store.head(STREAM).seq
                with suppress(StoreConflict):
                    event = store.append(STREAM, [draft(name * 1000 + round_number)], expected_seq=seq)[0]
                    assert event.seq == seq + 1
                    won.append(event)

        self._together(compete)
        assert sorted(won, key=lambda event: event.seq) == proved(store, STREAM)

    @rule("store.any_head")
    def test_appends_without_an_expected_head_are_all_stored(self) -> None:
        store = self.opened()

        def add(name: int) -> None:
            for round_number in range(_ROUNDS):
                store.append(STREAM, [draft(name * 1000 + round_number), draft(name)], expected_seq=None)
                store.append(f"{OTHER}{name}", [draft(round_number)], expected_seq=round_number)

        self._together(add)
        assert len(proved(store, STREAM)) == 2 * _THREADS * _ROUNDS
        assert all(len(proved(store, f"{OTHER}{name}")) == _ROUNDS for name in range(_THREADS))

    def _together(self, work: Callable[[int], None]) -> None:
        tasks = [self.host.ports.spawn(work, name) for name in range(_THREADS)]
        assert all(task.join(60) for task in tasks)

    @rule("store.keys_repeat")
    def test_the_same_again_gives_the_first_result_and_writes_nothing(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1)], expected_seq=0)
        first = store.append(STREAM, [draft(2), draft(3, key="k"), draft(4)], expected_seq=1)
        before = (seen(store), store.change_counter())
        for expected in (1, 4, None):
            again = store.append(STREAM, [draft(9), draft(3, key="k"), draft(8)], expected_seq=expected, summary=b"{}")
            assert again == first
        assert (seen(store), store.change_counter()) == before

    @rule("store.key_conflict")
    def test_a_known_key_with_another_payload_is_a_conflict(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1, key="a"), draft(2, key="b")], expected_seq=0)
        for drafts in (
            [draft(9, key="a")],
            [draft(1, key="a"), draft(9, key="b")],
            [draft(1, key="a"), draft(2, key="c")],
            [draft(2, key="b"), draft(1, key="a")],
            [draft(3, key="d"), draft(4, key="d")],
            [draft(1, key="a")],
        ):
            for expected in (2, None):
                refused(store, "store.key_conflict", STREAM, drafts, expected_seq=expected)

    @rule("store.keys_per_stream")
    def test_a_key_belongs_to_its_stream(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(1, key="k")], expected_seq=0)
        assert store.append(OTHER, [draft(2, key="k")], expected_seq=0)[0].seq == 1

    @rule("store.line_break")
    def test_a_line_break_in_the_envelope_is_refused(self) -> None:
        store = self.opened()
        wrong = "a\nb"
        for one in (
            draft()._replace(id=wrong),
            draft()._replace(type=wrong),
            draft()._replace(actor=wrong),
            draft()._replace(timestamp=f"{wrong}Z"),
        ):
            self._refuses(store, "store.line_break", [draft(), one])

    @rule("store.utc")
    def test_a_time_that_is_not_said_to_be_utc_is_refused(self) -> None:
        store = self.opened()
        for wrong in ("2026-01-01T12:00:00.000", "2026-01-01T12:00:00.000+01:00", "2026-01-01T12:00:00.000z", ""):
            self._refuses(store, "store.timestamp", [draft(), draft()._replace(timestamp=wrong)])

    @rule("store.empty")
    def test_an_append_of_nothing_is_refused(self) -> None:
        self._refuses(self.opened(), "store.empty", [])

    def _refuses(self, store: Store, code: str, drafts: list[Draft]) -> None:
        with pytest.raises(StoreError) as caught:
            store.append(STREAM, drafts, expected_seq=0)
        assert (caught.value.code, store.head(STREAM).seq) == (code, 0)

    @rule("store.read_range")
    def test_a_read_gives_the_events_between_two_numbers(self) -> None:
        store = self.opened()
        store.append(STREAM, [draft(number) for number in range(1, 6)], expected_seq=0)
        for after, until, seqs in (
            (0, None, [1, 2, 3, 4, 5]),
            (2, None, [3, 4, 5]),
            (1, 3, [2, 3]),
            (4, 99, [5]),
            (5, None, []),
            (3, 3, []),
            (0, 0, []),
            (0, -1, []),
            (-1, 2, [1, 2]),
            (-(2**70), 2**70, [1, 2, 3, 4, 5]),
            (2**70, 2**71, []),
            (2**70, None, []),
        ):
            assert [event.seq for event in store.read(STREAM, after=after, until=until)] == seqs
        assert not list(store.read(OTHER))

    @rule("store.read_long")
    def test_a_long_read_is_whole_and_in_order_while_others_append(self) -> None:
        store = self.opened()
        for start in range(0, _LONG, 100):
            store.append(STREAM, [draft(number) for number in range(start + 1, start + 101)], expected_seq=start)
        seqs = []
        for event in store.read(STREAM, until=_LONG):
            seqs.append(event.seq)
            if event.seq % 500 == 0:
                store.append(STREAM, [draft()], expected_seq=None)
        assert seqs == list(range(1, _LONG + 1))


class _Stopped(Exception):  # it is no error, it stands for the end of a process
    pass


def _stop() -> None:
    raise _Stopped
