"""Where a process must have died for what a record says of its calls, and what it had given up by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from harness_core.kernel import commands
from harness_core.kernel.facts import Fact, effect_id
from harness_core.kernel.state import SessionState
from harness_core.shell.simulate_answers import Answers
from harness_core.shell.simulate_deaths import deaths
from harness_core.shell.simulate_loop import Asked
from harness_core.shell.simulate_record import Record
from harness_core.shell.simulate_unsaid import unsaid
from harness_hookspecs.errors import Suspend
from harness_hookspecs.events import EVENTS
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import StoredEvent

CALL = "role_1"


def record(*events: tuple[str, dict[str, Any]]) -> Record:
    """What a role call did: the type of each event and what it says."""
    return Record([stored(seq, *event) for seq, event in enumerate(events, 1)])


def stored(seq: int, event_type: str, said: dict[str, Any]) -> StoredEvent:
    refs, version = dumps({"role_call_id": CALL}), EVENTS[event_type].version
    return StoredEvent(seq, "session:s", seq, f"e{seq}", event_type, version, "system", "", refs, dumps(said), b"")


def started(call_id: str, effect_class: str) -> tuple[str, dict[str, Any]]:
    return "harness.tool_call.started", {"callId": call_id, "effectClass": effect_class}


def succeeded(call_id: str) -> tuple[str, dict[str, Any]]:
    return "harness.tool_call.succeeded", {"callId": call_id}


def in_doubt(call_id: str) -> tuple[str, dict[str, Any]]:
    return "effect.in_doubt", {"call_id": call_id, "effect_id": effect_id(CALL, call_id)}


def asked(call_id: str) -> tuple[str, dict[str, Any]]:
    return "approval.requested", {"call_id": call_id, "approval_id": f"approval-{call_id}"}


def granted(call_id: str) -> tuple[str, dict[str, Any]]:
    return "approval.granted", {"approval_id": f"approval-{call_id}", "kind": "person"}


def suspended(call_id: str) -> tuple[str, dict[str, Any]]:
    return "role.suspended", {"kind": "approval", "wait_id": f"approval-{call_id}"}


def lost(it: Record, results: Sequence[Fact]) -> bool:
    """Whether a result that waits is taken to have died with its process, when nobody can go on."""
    flag: Any = type("Flag", (), {"set": lambda self: None})()
    run: Any = None
    waiting = [Asked(commands.Record(CALL, results=tuple(results)), run, flag)]
    return unsaid([], waiting, SessionState(session_id="s"), it) and not waiting


def test_a_process_died_before_it_was_said_to_and_amid_no_call_that_was_made_once() -> None:
    assert deaths([(53, 55)], []) == {54}
    assert deaths([(53, 55)], [(54, 56)]) == {53}
    assert deaths([(50, 58)], [(55, 60), (53, 56), (40, 52)]) == {52}


def test_one_death_answers_for_all_calls_that_were_lost_in_it() -> None:
    assert deaths([(10, 20), (12, 22), (21, 30)], []) == {19, 29}


@pytest.mark.req("B-97")
def test_the_death_that_a_process_began_behind_is_not_its_own() -> None:
    it = record(started("a", "unkeyed"), in_doubt("a"), started("b", "unkeyed"), succeeded("b"))
    it.seq = 1
    assert it.dies(CALL)
    it.begins(CALL)
    it.dies_before(CALL, 3)
    assert it.dies_later(CALL)


@pytest.mark.req("B-97")
@pytest.mark.parametrize("effect_class", ["pure", "keyed", "unkeyed"])
def test_a_result_that_another_process_could_have_again_is_lost_with_the_one_that_had_it(effect_class: str) -> None:
    it = record(started("a", effect_class), started("b", "keyed"), succeeded("a"))
    it.seq = 1
    ended = Fact(*succeeded("a"), {"role_call_id": CALL})
    assert lost(it, [ended]) == (effect_class != "unkeyed")
    assert it.dies_later(CALL) == (effect_class != "unkeyed")


@pytest.mark.req("B-97")
def test_who_gives_a_call_up_that_the_record_goes_on_with_dies_before_that_from_then_on() -> None:
    it = record(in_doubt("a"), started("b", "keyed"), started("a", "unkeyed"), succeeded("a"), suspended("c"))
    it.seq = 1
    died: list[bool] = []

    def wait_for(_: Callable[[], bool]) -> None:
        died.append(it.dies_later(CALL))
        answers.suspends = True  # as another call does, of which it is recorded

    answers = Answers(it, CALL, lambda _: b"", wait_for, lambda: None)
    with pytest.raises(Suspend):
        answers.in_turn(Fact("role.suspended", {"kind": "in_doubt", "wait_id": effect_id(CALL, "a")}))
    assert died == [True]


@pytest.mark.req("B-97")
def test_an_approval_was_waited_for_when_its_call_goes_on_before_the_role_call_is_suspended() -> None:
    it = record(
        *(asked("a"), asked("b"), asked("c")),
        *(granted("a"), granted("b"), granted("c")),
        *(started("a", "keyed"), suspended("c"), started("b", "keyed")),
    )
    it.seq = 3
    assert [it.is_answered(CALL, f"approval-{one}") for one in "abc"] == [True, False, False]


class Looked(list[Any]):
    """A list that counts how often somebody takes something out of it."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for one in super().__iter__():
            self.looks += 1
            yield one

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)


def test_whose_turn_it_is_is_seen_without_a_look_at_all_that_has_happened() -> None:
    it = record(*(step(f"{at}") for at in range(200) for step in (lambda of: started(of, "keyed"), succeeded)))
    it.seq, it.events = 381, Looked(it.events)
    assert it.is_due(383, CALL, {382})
    assert it.events.looks < 5
