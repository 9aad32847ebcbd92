"""The loop under the simulated ports: many interleavings of submitters, workers and waiters, and one order of events.

A toy machine stands in for the kernel: items have chains of parts, a part is an effect, an item is closed when all its
chains have ended. It is small enough to say what the log must look like.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.shell import loop
from harness_core.shell.loop import SessionLoop
from harness_core.shell.loop_parts import LoopHooks, Ticket
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_core.shell.ports.threads import ThreadPorts
from harness_hookspecs.errors import HarnessError, IllegalMove, InternalError, StoreError
from harness_hookspecs.host import Ports
from harness_hookspecs.store import Draft, Store, StoredEvent, verify_chain
from harness_store_memory.log import Log
from harness_store_memory.store import MemoryStore
from tests.reference import PATIENCE_SECONDS

STREAM = "session:toy"
SEEDS = range(2_000 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 60)
CHAINS, PARTS = 2, 3  # an item has two chains of three parts each


class Add(NamedTuple):
    """Open an item; a second time is refused."""

    item: str


class Broken(NamedTuple):
    """Adds an item, and then something that no log can hold."""

    item: str


class Did(NamedTuple):
    """A part was performed."""

    key: str


class Part(NamedTuple):
    """The effect: perform the next part of a chain."""

    key: str


class State:
    """Open items with how many parts of each chain are done."""

    def __init__(self) -> None:
        self.open: dict[str, list[int]] = {}
        self.closed: list[str] = []


class Toy:
    """The machine; ``waiting`` are the types that must be on the disk at once."""

    def __init__(self, waiting: frozenset[str]) -> None:
        self.waiting_types = waiting

    def new_state(self) -> State:
        return State()

    def decide(self, command: Any, state: State) -> Decision:
        if isinstance(command, Add):
            if command.item in state.open or command.item in state.closed:
                raise IllegalMove(f"{command.item} was added before")
            return Decision((Fact("item.added", {"item": command.item}),), reply=f"added {command.item}")
        if isinstance(command, Broken):
            return Decision((Fact("item.added", {"item": command.item}), Fact("item.closed", {"item": "\ud800"})))
        item, chain, part = command.key.split("/")
        if state.open[item][int(chain)] != int(part):
            raise IllegalMove(f"{command.key} was done before")
        return Decision((Fact("part.done", {"key": command.key}),))

    def advance(self, state: State, running: Collection[str]) -> Decision:
        done = [item for item, parts in state.open.items() if all(part == PARTS for part in parts)]
        return Decision(tuple(Fact("item.closed", {"item": item}) for item in done))

    def evolve(self, state: State, event: Event) -> None:
        if event.type == "item.added":
            state.open[event.payload["item"]] = [0] * CHAINS
        elif event.type == "part.done":
            item, chain, part = event.payload["key"].split("/")
            state.open[item][int(chain)] = int(part) + 1
        elif event.type == "item.closed":
            del state.open[event.payload["item"]]
            state.closed.append(event.payload["item"])

    def react(self, state: State) -> Sequence[Part]:
        return [
            Part(f"{item}/{chain}/{part}")
            for item, parts in state.open.items()
            for chain, part in enumerate(parts)
            if part < PARTS
        ]

    def check(self, decision: Decision) -> None:
        """Anything goes."""

    def cause(self, fact: Fact, state: State) -> str | None:
        return None

    def version(self, event_type: str) -> int:
        return 1

    def blob(self, digest: str) -> bytes:
        raise NotImplementedError

    def summary(self, state: State, events: Sequence[Any]) -> bytes | None:
        return None


class World:
    """A loop over a store in memory, and notes of what was performed, told and found out."""

    def __init__(self, ports: Ports, *, waiting: frozenset[str] = frozenset({"item.closed"})) -> None:
        self.ports = ports
        self.store: Store = MemoryStore(Log(), ports)
        self.performed: list[str] = []
        self.told: list[int] = []
        self.turning = 0
        self.turns, self.fails_at = 0, -1
        self.machine = Toy(waiting)
        hooks = LoopHooks(perform=self.perform, committed=self.committed, turned=self.turned)
        self.loop = SessionLoop(STREAM, ports=ports, store=self.store, machine=self.machine, hooks=hooks)
        self.loop.load()

    def perform(self, effect: Part) -> Did | None:
        self.ports.clock.sleep(self.ports.random.uniform(0, 0.001))
        if "/" not in effect.key:  # one that the state does not ask for
            return None
        self.performed.append(effect.key)
        return Did(effect.key)

    def committed(self, stored: Sequence[StoredEvent]) -> None:
        assert self.turning == 0  # one turn at any instant
        self.turning = 1
        self.ports.clock.monotonic()  # whoever would like to be here too may try
        self.told += [event.seq for event in stored]
        self.turning = 0

    def turned(self, state: State) -> None:
        assert self.turning == 0
        self.turns += 1
        if self.turns == self.fails_at:
            raise ZeroDivisionError
        self.turning = 1
        self.ports.clock.monotonic()
        self.turning = 0

    def events(self) -> list[StoredEvent]:
        return list(self.store.read(STREAM))


def keys_of(item: str) -> list[str]:
    return [f"{item}/{chain}/{part}" for chain in range(CHAINS) for part in range(PARTS)]


def check_rest(world: World, items: Sequence[str]) -> None:
    """At rest the log alone says: each command once, each effect once, causes first, nothing open, nothing held."""
    events = world.events()
    verify_chain(events, world.store.head(STREAM))
    assert world.told == [event.seq for event in events]
    told = [(event.type, *json.loads(event.payload).values()) for event in events]
    assert len(set(told)) == len(told)
    place = {entry: index for index, entry in enumerate(told)}
    for item in items:
        order = [place["item.added", item]]
        for chain in range(CHAINS):
            parts = [place["part.done", f"{item}/{chain}/{part}"] for part in range(PARTS)]
            assert order[0] < parts[0] and parts == sorted(parts)
            order += parts
        assert place["item.closed", item] > max(order)
    assert len(told) == len(items) * (2 + CHAINS * PARTS)
    assert sorted(world.performed) == sorted(key for item in items for key in keys_of(item))
    assert (world.loop.state.open, sorted(world.loop.state.closed)) == ({}, sorted(items))
    assert world.loop.quiescent()


def busy(world: World, *, submitters: int, items: int) -> list[str]:
    """Several threads add items while effects run and others wait for what they add; to the end of it all."""
    names = [[f"{number}-{index}" for index in range(items)] for number in range(submitters)]

    def submit(mine: list[str]) -> None:
        for index, item in enumerate(mine):
            assert world.loop.submit(Add(item), durable=index % 2 == 0) == f"added {item}"
            with pytest.raises(IllegalMove):
                world.loop.submit(Add(item))
        world.loop.wait_until(lambda state: mine[0] in state.closed)
        world.loop.flush()
        stored = {json.loads(event.payload).get("item") for event in world.events()}
        assert stored.issuperset(mine)

    tasks = [world.ports.spawn(submit, mine, name="submitter") for mine in names]
    for task in tasks:
        task.join()
    world.loop.wait_quiescent()
    return list(itertools.chain(*names))


# -------------------------------------------------------------------------------------------------- simulations


@contextlib.contextmanager
def told(note: str) -> Iterator[None]:
    """Whatever fails carries how to repeat it."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise


def _run(seed: int, work: Callable[[World], Any], **options: Any) -> tuple[Any, ...]:
    with told(f"seed {seed}"), SimulatedPorts(seed) as ports:
        world = World(ports, **options)
        work(world)
        return tuple(world.events()), tuple(ports.trace)


def _all_added_are_closed(world: World) -> None:
    check_rest(world, busy(world, submitters=3, items=2))


WAITING = {
    "closing waits": frozenset({"item.closed"}),
    "everything waits": frozenset({"item.added", "part.done", "item.closed"}),
    "nothing waits": frozenset[str](),
}


@pytest.mark.parametrize("waiting", WAITING.values(), ids=WAITING)
def test_no_command_is_lost_and_the_order_is_one_in_every_interleaving(waiting: frozenset[str]) -> None:
    logs, seeds = set(), SEEDS if waiting == WAITING["closing waits"] else SEEDS[: len(SEEDS) // 4]
    for seed in seeds:
        events, trace = _run(seed, _all_added_are_closed, waiting=waiting)
        assert (events, trace) == _run(seed, _all_added_are_closed, waiting=waiting), f"seed {seed} differs on a rerun"
        logs.add(events)
    assert len(logs) == len(seeds)


def _rest_means_rest(world: World) -> None:
    """Whoever is told that nothing is under way finds done what he had asked for, however many ask."""
    items = [f"item-{index}" for index in range(4)]

    def add(item: str) -> None:
        world.loop.submit(Add(item), durable=False)
        world.loop.wait_quiescent()
        assert item in world.loop.state.closed

    for task in [world.ports.spawn(add, item) for item in items]:
        task.join()
    check_rest(world, items)


def test_rest_is_never_told_while_something_is_under_way() -> None:
    for seed in SEEDS:
        _run(seed, _rest_means_rest)


def add_for_ever(world: World, number: int) -> None:
    for index in itertools.count():
        world.loop.submit(Add(f"{number}-{index}"), durable=bool(index % 3))


def _nobody_hangs(world: World) -> None:
    """Somebody stops the loop in the middle: whoever submits or waits is let go, and nothing is appended any more."""
    ends = list[str]()

    def submit(number: int) -> None:
        with pytest.raises(HarnessError) as caught:
            add_for_ever(world, number)
        ends.append(caught.value.code)

    def wait() -> None:
        with pytest.raises(HarnessError) as caught:
            world.loop.wait_until(lambda state: False)
        ends.append(caught.value.code)

    def stop() -> None:
        for _ in range(int(world.ports.random.uniform(0, 300))):
            world.ports.clock.monotonic()
        world.loop.stop(InternalError("enough", code="test.stopped"))

    tasks = [world.ports.spawn(work) for work in (wait, stop)]
    tasks += [world.ports.spawn(submit, number) for number in range(3)]
    for task in tasks:
        task.join()
    assert ends == ["test.stopped"] * 4
    with pytest.raises(InternalError, match="enough"):
        world.loop.submit(Add("late"))
    length = len(world.events())
    world.ports.clock.sleep(0.01)
    assert len(world.events()) == length


def test_stop_refuses_and_releases_everyone() -> None:
    for seed in SEEDS:
        _run(seed, _nobody_hangs)


class Full:
    """A store that is full from the n-th append on."""

    def __init__(self, store: Store, room: int) -> None:
        self._store, self._room = store, room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append(self, stream: str, drafts: Sequence[Draft], **options: Any) -> tuple[StoredEvent, ...]:
        self._room -= 1
        if self._room < 0:
            raise StoreError("no space left", code="store.full")
        return self._store.append(stream, drafts, **options)


def _full_for_all(world: World) -> None:
    world.loop._store = Full(world.store, 4)
    ends = list[str]()

    def submit(number: int) -> None:
        try:
            for index in range(20):
                world.loop.submit(Add(f"{number}-{index}"))
            world.loop.wait_until(lambda state: False)
        except StoreError as error:
            ends.append(error.code)

    for task in [world.ports.spawn(submit, number) for number in range(4)]:
        task.join()
    assert ends == ["store.full"] * 4
    with pytest.raises(StoreError):
        world.loop.wait_quiescent()
    assert world.told == [event.seq for event in world.events()]


def test_a_failed_append_ends_the_loop_for_everyone() -> None:
    for seed in SEEDS:
        _run(seed, _full_for_all)


def _shown_is_stored(world: World) -> None:
    """Whoever waited for something finds it in the store."""

    def watch(item: str) -> None:
        while not world.loop.wait_until(lambda state: item in state.closed, timeout_seconds=0.0001):
            world.ports.clock.monotonic()
        assert any(item.encode() in event.payload for event in world.events() if event.type == "item.closed")

    items = [f"item-{index}" for index in range(3)]
    tasks = [world.ports.spawn(watch, item) for item in items]
    tasks += [world.ports.spawn(world.loop.submit, Add(item)) for item in items]
    for task in tasks:
        task.join()


def test_what_was_waited_for_is_in_the_store() -> None:
    for seed in SEEDS:
        _run(seed, _shown_is_stored)


def test_nothing_is_shown_of_a_look_that_a_turn_fell_into() -> None:
    def look_and_submit(state: State, item: str) -> State:
        with contextlib.suppress(StoreError):
            world.loop.submit(Add(item))
        return state

    with SimulatedPorts(1) as ports:
        world = World(ports)
        assert world.loop.stored(lambda state: look_and_submit(state, "stored")) is None
        world.loop.wait_quiescent()
        assert world.loop.stored(lambda state: state.closed) == ["stored"]
        world.loop._store = Full(world.store, 0)
        assert world.loop.stored(lambda state: look_and_submit(state, "lost")) is None
        assert world.loop.stored(lambda state: state.open) is None


def _foreign_events(world: World) -> None:
    """Others append to the stream too, so that the loop's head is stale again and again."""

    def write() -> None:
        for index in range(4):
            draft = Draft(f"foreign-{index}", "foreign.noted", 1, "system", "Z", b"{}", b'{"foreign":%d}' % index)
            world.store.append(STREAM, [draft], expected_seq=None)
            world.ports.clock.sleep(0.0003)

    tasks = [world.ports.spawn(write)]
    items = [f"item-{index}" for index in range(3)]
    tasks += [world.ports.spawn(world.loop.submit, Add(item), name="submitter") for item in items]
    for task in tasks:
        task.join()
    world.loop.wait_quiescent()
    told = [json.loads(event.payload) for event in world.events() if event.type != "foreign.noted"]
    assert len(told) == len(items) * (2 + CHAINS * PARTS)
    assert sorted(world.performed) == sorted(key for item in items for key in keys_of(item))


@pytest.mark.parametrize("waiting", WAITING.values(), ids=WAITING)
def test_a_moved_head_loses_no_command_and_repeats_no_effect(waiting: frozenset[str]) -> None:
    for seed in SEEDS:
        _run(seed, _foreign_events, waiting=waiting)


def _quiet_effects(world: World) -> None:
    """Effects without an outcome end while other commands ride along and the head moves."""
    for index in range(3):
        world.loop.launch(Part(f"quiet-{index}"))
    _foreign_events(world)


def test_a_moved_head_is_no_matter_for_an_effect_without_an_outcome() -> None:
    for seed in range(200):
        _run(seed, _quiet_effects, waiting=WAITING["nothing waits"])


def _never_half_folded(world: World) -> None:
    """Whoever looks at the state while it is folded again finds what was there before."""
    world.loop.submit(Add("known"))

    def known(state: State) -> bool:
        assert "known" in state.open or "known" in state.closed
        return False

    def look() -> None:
        for _ in range(5):
            assert not world.loop.wait_until(known, timeout_seconds=0.0002)

    def write() -> None:
        for index in range(4):
            draft = Draft(f"foreign-{index}", "foreign.noted", 1, "system", "Z", b"{}", b"{}")
            world.store.append(STREAM, [draft], expected_seq=None)
            world.ports.clock.sleep(0.0003)

    for task in [world.ports.spawn(look), world.ports.spawn(look), world.ports.spawn(write)]:
        task.join()
    world.loop.wait_quiescent()


def test_a_state_that_is_folded_again_is_never_seen_half() -> None:
    for seed in SEEDS:
        _run(seed, _never_half_folded)


class Scarce(SimulatedPorts):
    """Ports that have no thread for the n-th of a kind."""

    kind, room = "effect", 10

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> Any:
        self.room -= name == self.kind
        if self.room < 0:
            raise RuntimeError("can't start new thread")
        return super().spawn(function, *args, name=name)


def test_a_lack_of_threads_is_heard_by_everyone() -> None:
    for seed in SEEDS:
        with told(f"seed {seed}"), Scarce(seed) as ports:
            _all_hear(World(ports), RuntimeError)


def test_a_lack_of_a_thread_for_the_next_leader_is_heard_by_who_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = list[Ticket]()

    def turned(state: State) -> None:
        if not waiting:
            waiting.append(world.loop.lay_down(Add("second"), durable=True))

    monkeypatch.setattr(loop, "_MAX_ROUNDS", 1)
    monkeypatch.setattr(Scarce, "kind", "lead")
    monkeypatch.setattr(Scarce, "room", 0)
    with Scarce(1) as ports:
        world = World(ports)
        world.loop._hooks = world.loop._hooks._replace(turned=turned)
        world.loop.flush()
        assert isinstance(waiting[0].error, RuntimeError)
        with pytest.raises(RuntimeError):
            world.loop.carry_out(waiting[0])


class Late(SimulatedPorts):
    """Ports whose workers come only when they are let."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.workers: list[Callable[..., object]] = []

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> Any:
        if name != "effect":
            return super().spawn(function, *args, name=name)
        self.workers.append(function)
        return None

    def come(self) -> None:
        """The worker who was called first does what it finds to do."""
        self.workers.pop(0)()


@pytest.mark.parametrize("when", ["before a worker comes", "in the turn that asks for it"])
def test_what_is_due_when_the_loop_ends_is_never_begun(when: str) -> None:
    with Late(1) as ports:
        world = World(ports)
        if when == "in the turn that asks for it":  # what is due is put down after the end: nobody else takes it away
            world.loop._hooks = world.loop._hooks._replace(turned=lambda state: world.loop.stop())
            world.loop.submit(Add("item"))
        else:
            world.loop.submit(Add("item"))
            world.loop.stop()
        ports.come()
        assert world.performed == []
        assert world.loop.quiescent()


def test_an_end_that_no_worker_comes_after_leaves_nothing_under_way() -> None:
    with Late(1) as ports:
        world = World(ports)
        world.loop.submit(Add("item"))
        assert not world.loop.quiescent()
        world.loop.stop()
        assert world.loop.quiescent()


def test_an_outcome_that_is_refused_ends_the_loop_with_why() -> None:
    """Nobody waits for it who could be told, and its effect would be due again for ever."""

    def perform(effect: Part) -> Did:
        performed.append(effect.key)
        assert len(performed) < 10
        return Did("item/0/2")

    performed = list[str]()
    with SimulatedPorts(1) as ports:
        world = World(ports)
        world.loop._hooks = world.loop._hooks._replace(perform=perform)
        world.loop.submit(Add("item"))
        with pytest.raises(IllegalMove, match="item/0/2 was done before"):
            world.loop.wait_until(lambda state: "item" in state.closed)


def test_an_outcome_is_taken_however_long_the_next_effect_of_its_worker_takes() -> None:
    """The worker who was on its way while the outcome was laid down comes in the middle of the next effect."""

    def perform(effect: Part) -> Did | None:
        if effect.key == "item/1/0":
            assert "part.done" not in [event.type for event in world.events()]
            ports.come()
            taken.extend(json.loads(event.payload)["key"] for event in world.events() if event.type == "part.done")
        return world.perform(effect)

    taken = list[str]()
    with Late(1) as ports:
        world = World(ports)
        world.loop._hooks = world.loop._hooks._replace(perform=perform)
        world.loop.submit(Add("item"))
        while ports.workers:
            ports.come()
        assert taken == keys_of("item")[:PARTS]  # the other chain went on to its end meanwhile
        check_rest(world, ["item"])


def test_a_worker_who_comes_to_several_effects_calls_the_next_one_before_it_waits_for_the_disk() -> None:
    called = list[int]()
    with Late(1) as ports:
        world = World(ports, waiting=WAITING["everything waits"])
        world.loop.submit(Add("item"))
        ticket = world.loop.lay_down(Add("more"), durable=True)
        world.loop._hooks = world.loop._hooks._replace(committed=lambda stored: called.append(len(ports.workers)))
        ports.come()
        assert called[0] == 1
        while ports.workers:
            ports.come()
        assert world.loop.carry_out(ticket) == "added more"


def test_steps_that_follow_one_another_are_done_by_the_worker_who_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.CHAINS", 1)
    with Late(1) as ports:
        world = World(ports, waiting=WAITING["everything waits"])
        world.loop.submit(Add("item"))
        ports.come()
        assert ports.workers == []
        check_rest(world, ["item"])


def test_a_worker_who_leads_on_has_what_he_kept_for_himself_begun_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command comes while his effect's outcome is taken: what follows from that waits for no further turn."""
    tickets, called = list[Ticket](), list[int]()

    def turned(state: State) -> None:
        if state.open["item"] == [1] and not tickets:
            tickets.append(world.loop.lay_down(Add("more"), durable=True))

    def committed(stored: Sequence[StoredEvent]) -> None:
        called.append(len(ports.workers))

    monkeypatch.setattr(f"{__name__}.CHAINS", 1)
    with Late(1) as ports:
        world = World(ports, waiting=WAITING["everything waits"])
        world.loop.submit(Add("item"))
        world.loop._hooks = world.loop._hooks._replace(turned=turned, committed=committed)
        ports.come()
        assert called[:2] == [0, 1]  # in the turn that took the outcome, and in the one that took the command
        assert world.loop.carry_out(tickets[0]) == "added more"


def test_what_ends_while_somebody_is_on_the_way_to_what_is_due_is_committed_together() -> None:
    with Late(1) as ports:
        world = World(ports, waiting=WAITING["everything waits"])
        world.loop.submit(Add("item"))
        before = world.turns
        ports.come()
        assert world.turns - before == PARTS  # and not a turn for each part of each chain
        check_rest(world, ["item"])


def _all_begun_at_once(world: World) -> None:
    """Effects of several turns and of one wait for one another: each of them is begun while all others go on."""
    items, begun, all_begun = 4, list[str](), world.ports.wait.event()

    def perform(effect: Part) -> Did | None:
        if effect.key.endswith("/0"):
            begun.append(effect.key)
            if len(begun) == items * CHAINS:
                all_begun.set()
            all_begun.wait()
        return world.perform(effect)

    def submit(mine: list[str]) -> None:
        for ticket in [world.loop.lay_down(Add(item), durable=True) for item in mine]:
            world.loop.carry_out(ticket)

    world.loop._hooks = world.loop._hooks._replace(perform=perform)
    names = [f"item-{index}" for index in range(items)]
    for task in [world.ports.spawn(submit, mine) for mine in (names[:1], names[1:2], names[2:])]:
        task.join()
    world.loop.wait_quiescent()
    check_rest(world, names)


@pytest.mark.inv("I-22")
def test_effects_that_wait_for_one_another_are_all_begun() -> None:
    for seed in SEEDS:
        _run(seed, _all_begun_at_once)


def _all_hear(world: World, kind: type[BaseException]) -> None:
    ends = list[str]()

    def submit(number: int) -> None:
        with pytest.raises(kind):
            add_for_ever(world, number)
        ends.append("heard")

    def wait() -> None:
        with pytest.raises(kind):
            world.loop.wait_until(lambda state: False)
        ends.append("heard")

    for task in [*(world.ports.spawn(submit, number) for number in range(3)), world.ports.spawn(wait)]:
        task.join()
    assert ends == ["heard"] * 4


def _half_a_decision(world: World) -> None:
    with pytest.raises(HarnessError):
        world.loop.submit(Broken("item"))
    assert world.loop.submit(Add("item")) == "added item"
    world.loop.wait_quiescent()
    check_rest(world, ["item"])


def test_a_refused_decision_leaves_no_trace() -> None:
    for seed in SEEDS:
        _run(seed, _half_a_decision)


def _broken_predicate(world: World) -> None:
    """A waiter's own mistake is his alone."""

    def watch() -> None:
        with pytest.raises(ZeroDivisionError):
            world.loop.wait_until(lambda state: bool(state.closed) and bool(1 / 0))

    tasks = [world.ports.spawn(watch)]
    tasks += [world.ports.spawn(world.loop.submit, Add(item)) for item in ("a", "b", "c")]
    for task in tasks:
        task.join()
    world.loop.wait_quiescent()
    check_rest(world, ["a", "b", "c"])


def test_a_predicate_that_raises_hurts_its_waiter_only() -> None:
    for seed in SEEDS:
        _run(seed, _broken_predicate)


def _broken_hook(world: World) -> None:
    world.fails_at = 5
    _all_hear(world, ZeroDivisionError)


def test_a_hook_that_raises_is_heard_by_everyone() -> None:
    for seed in SEEDS:
        _run(seed, _broken_hook)


# ------------------------------------------------------------------------------------------------------- threads


class Failing:
    """A store that takes nothing, and says so once somebody has looked."""

    def __init__(self, store: Store, error: StoreError, before: Callable[[], None]) -> None:
        self._store, self._error, self._before = store, error, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append(self, stream: str, drafts: Sequence[Draft], **options: Any) -> tuple[StoredEvent, ...]:
        self._before()
        raise self._error


@pytest.mark.inv("I-1")
@pytest.mark.parametrize("stopped", [False, True], ids=["going on", "stopped meanwhile"])
def test_a_look_that_falls_into_a_turn_that_fails_tells_nothing_but_the_failure(stopped: bool) -> None:
    ports = ThreadPorts()
    world = World(ports)
    decided, looked, over = (threading.Event() for _ in range(3))

    def before_it_fails() -> None:
        decided.set()
        assert looked.wait(PATIENCE_SECONDS)
        if stopped:
            world.loop.stop()

    def submit() -> None:
        with pytest.raises(StoreError, match="no space"):
            world.loop.submit(Add("item"))
        over.set()

    def holds(state: State) -> bool:
        """Look into the turn, and go on once it is over."""
        seen = "item" in state.open
        if seen and not looked.is_set():
            looked.set()
            assert over.wait(PATIENCE_SECONDS)
        return seen

    world.loop._store = Failing(world.store, StoreError("no space left", code="store.full"), before_it_fails)
    task = ports.spawn(submit)
    try:
        assert decided.wait(PATIENCE_SECONDS)
        with pytest.raises(StoreError, match="no space"):
            world.loop.wait_until(holds)
        assert world.events() == []
    finally:
        task.join()
        ports.close()


def test_no_command_is_lost_with_real_threads() -> None:
    ports = ThreadPorts()
    world = World(ports)
    try:
        items = busy(world, submitters=8, items=25)  # eight threads, 200 commands, 1,200 effects
        check_rest(world, items)
    finally:
        ports.close()


def test_stop_releases_everyone_with_real_threads() -> None:
    for _ in range(20):
        ports = ThreadPorts()
        try:
            _nobody_hangs(World(ports))
        finally:
            ports.close()
