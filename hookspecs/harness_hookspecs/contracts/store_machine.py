"""Random walks: a way to open stores goes in, each answer is compared with that of a list and two dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from harness_hookspecs.errors import StoreConflict
from harness_hookspecs.store import Draft, Posted, Store

from .store_case import OTHER, STREAM, draft, proved

__all__ = ["walk"]

_STREAMS = (STREAM, OTHER)
_COMMANDS = ("c1", "c2", "c3", "c4")
_MANY = 70  # more than a store may put into one statement


_Found = tuple[int | None, int, Draft]  # where the key is known from, where the draft stands, the draft

_keys = some.sampled_from([None, None, "k1", "k2", "k3"])
_batches = some.one_of(
    some.lists(some.tuples(some.integers(1, 3), _keys), min_size=1, max_size=4),
    some.just([(number, None) for number in range(_MANY)]),
)


class _Model:
    """A log as simple as can be."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Draft]] = {name: [] for name in _STREAMS}
        self.batches: dict[str, dict[int, int]] = {name: {} for name in _STREAMS}
        self.inbox: dict[str, Posted] = {}
        self.summaries: dict[str, bytes] = {}

    def append(self, stream: str, drafts: list[Draft], expected: int | None) -> tuple[str | None, int]:
        """The code of the refusal, or ``None`` and the index of the first event; what is new is kept."""
        kept = self.streams[stream]
        keys = {one.key: index for index, one in enumerate(kept) if one.key}
        found = [(keys.get(one.key), index, one) for index, one in enumerate(drafts) if one.key]
        if len({one.key for _, _, one in found}) < len(found):
            return "store.key_conflict", 0
        if any(place is not None for place, _, _ in found):
            return self._repeat(stream, drafts, found)
        if expected is not None and expected != len(kept):
            return "store.conflict", 0
        self.batches[stream][len(kept)] = len(drafts)
        kept.extend(drafts)
        return None, len(kept) - len(drafts)

    def _repeat(self, stream: str, drafts: list[Draft], found: list[_Found]) -> tuple[str | None, int]:
        kept = self.streams[stream]
        for place, _, one in found:
            if place is None or (kept[place].type, kept[place].payload) != (one.type, one.payload):
                return "store.key_conflict", 0
        starts = {place - index for place, index, _ in found if place is not None}
        start = min(starts)
        if len(starts) > 1 or self.batches[stream].get(start) != len(drafts):
            return "store.key_conflict", 0
        return None, start


class _Walk(RuleBasedStateMachine):
    make: ClassVar[Callable[[], Store]]
    again: ClassVar[Callable[[Store], Store | None]]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).make()
        self.model = _Model()

    @rule(stream=some.sampled_from(_STREAMS), batch=_batches, offset=some.sampled_from([0, 0, 0, -1, 1, None]))
    def append(self, stream: str, batch: list[tuple[int, str | None]], offset: int | None) -> None:
        drafts = [draft(number, key=key) for number, key in batch]
        expected = None if offset is None else max(0, len(self.model.streams[stream]) + offset)
        self._append(stream, drafts, expected)

    @rule(stream=some.sampled_from(_STREAMS), text=some.sampled_from([b"{}", b'{"n":1}']))
    def summarise(self, stream: str, text: bytes) -> None:
        self._append(stream, [draft()], None, summary=text)
        self.model.summaries.pop(stream, None)
        self.model.summaries[stream] = text

    @rule(session=some.sampled_from(["s1", "s2"]), command=some.sampled_from(_COMMANDS))
    def post(self, session: str, command: str) -> None:
        body = b'{"n":%d}' % len(self.model.inbox)
        row = self.model.inbox.setdefault(command, Posted(session, command, body, None))
        assert self.store.post(session, command, body) == row

    @rule(command=some.sampled_from(_COMMANDS))
    def take(self, command: str) -> None:
        row = self.model.inbox.get(command)
        seq = len(self.model.streams[STREAM])
        if row is not None and row.taken_seq is None:
            self._append(STREAM, [draft(1), draft(2)], seq, taken={command: 1})
            self.model.inbox[command] = row._replace(taken_seq=seq + 2)
            return
        try:
            self.store.append(STREAM, [draft(1)], expected_seq=seq, taken={command: 0})
        except StoreConflict as conflict:
            assert conflict.code == "store.taken"
        else:
            raise AssertionError("a command was taken twice or from nowhere")

    @rule()
    def reopen(self) -> None:
        self.store = type(self).again(self.store) or self.store

    def _append(self, stream: str, drafts: list[Draft], expected: int | None, **options: Any) -> None:
        refusal, start = self.model.append(stream, drafts, expected)
        try:
            stored = self.store.append(stream, drafts, expected_seq=expected, **options)
        except StoreConflict as conflict:
            assert conflict.code == refusal
            return
        kept = self.model.streams[stream][start : start + len(drafts)]
        assert refusal is None
        assert [(event.seq, event.payload) for event in stored] == [
            (start + index, one.payload) for index, one in enumerate(kept, 1)
        ]

    @invariant()
    def agrees(self) -> None:
        for name, kept in self.model.streams.items():
            events = proved(self.store, name)
            assert [(*event[3:9], event.payload) for event in events] == [one[:7] for one in kept]
        assert [*self.store.summaries()] == [*reversed(self.model.summaries.items())]
        for session in ("s1", "s2"):
            waiting = [row for row in self.model.inbox.values() if row.taken_seq is None]
            assert [*self.store.take(session)] == [row for row in waiting if row.session_id == session]


def walk(
    make: Callable[[], Store], reopen: Callable[[Store], Store | None], *, walks: int = 20, shrink: bool = True
) -> None:
    """Walk at random, the same walks each time, and compare.

    Args:
        make: Opens an empty store.
        reopen: Closes a store and opens the same log again, ``None`` when there is no such thing.
        walks: How many.
        shrink: Whether to look for the shortest walk that fails, which takes seconds.
    """
    bound = type("Walk", (_Walk,), {"make": staticmethod(make), "again": staticmethod(reopen)})
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=walks,
            stateful_step_count=25,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
