"""Where a process must have died for what a record says of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.kernel import commands
from harness_core.kernel.facts import Fact, effect_id
from harness_core.kernel.state import SessionState
from harness_core.shell.simulate_deaths import deaths
from harness_core.shell.simulate_loop import Asked
from harness_core.shell.simulate_record import Record
from harness_core.shell.simulate_unsaid import unsaid
from harness_hookspecs.events import EVENTS
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import StoredEvent

CALL = "role_1"


def record(*events: tuple[str, str, str]) -> Record:
    """What a role call did: each event's type, the call it is about and the class of that call's effect."""
    return Record([stored(seq, *event) for seq, event in enumerate(events, 1)])


def stored(seq: int, event_type: str, call_id: str, effect_class: str) -> StoredEvent:
    payload = {"callId": call_id, "effectClass": effect_class, "effect_id": effect_id(CALL, call_id)}
    refs, said = dumps({"role_call_id": CALL}), dumps(payload)
    version = EVENTS[event_type].version
    return StoredEvent(seq, "session:s", seq, f"e{seq}", event_type, version, "system", "", refs, said, b"")


def lost(it: Record, results: Sequence[Fact]) -> bool:
    """Whether a result that waits is taken to have died with its process, when nobody can go on."""
    flag: Any = type("Flag", (), {"set": lambda self: None})()
    run: Any = None
    asked = [Asked(commands.Record(CALL, results=tuple(results)), run, flag)]
    return unsaid([], asked, SessionState(session_id="s"), it) and not asked


def test_a_process_died_before_it_was_said_to_and_amid_no_call_that_was_made_once() -> None:
    assert deaths([(53, 55)], []) == {54}
    assert deaths([(53, 55)], [(54, 56)]) == {53}
    assert deaths([(50, 58)], [(55, 60), (53, 56), (40, 52)]) == {52}


def test_one_death_answers_for_all_calls_that_were_lost_in_it() -> None:
    assert deaths([(10, 20), (12, 22), (21, 30)], []) == {19, 29}


@pytest.mark.req("B-97")
def test_the_death_that_a_process_began_behind_is_not_its_own() -> None:
    it = record(
        ("harness.tool_call.started", "a", "unkeyed"),
        ("effect.in_doubt", "a", "unkeyed"),
        ("harness.tool_call.started", "b", "unkeyed"),
        ("harness.tool_call.succeeded", "b", "unkeyed"),
    )
    it.seq = 1
    assert it.dies(CALL)
    it.begins(CALL)
    it.dies_before(CALL, 3)
    assert it.dies_later(CALL)


@pytest.mark.req("B-97")
@pytest.mark.parametrize("effect_class", ["pure", "keyed", "unkeyed"])
def test_a_result_that_another_process_could_have_again_is_lost_with_the_one_that_had_it(effect_class: str) -> None:
    it = record(
        ("harness.tool_call.started", "a", effect_class),
        ("harness.tool_call.started", "b", "keyed"),
        ("harness.tool_call.succeeded", "a", effect_class),
    )
    it.seq = 1
    ended = Fact("harness.tool_call.succeeded", {"callId": "a"}, {"role_call_id": CALL})
    assert lost(it, [ended]) == (effect_class != "unkeyed")
    assert it.dies_later(CALL) == (effect_class != "unkeyed")
