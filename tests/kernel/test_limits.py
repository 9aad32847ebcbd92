"""What is spent and a wanted model call in, a yes or the dimension that is used up out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.definition import Limits
from harness_core.kernel.facts import Event
from harness_core.kernel.limits import exhausted_by
from harness_core.kernel.state import SessionState, Usage
from harness_hookspecs.events import check_payload
from tests.playing import Play, definition, event_of

LIMITS = Limits(max_visits=9, budget_tokens=100, budget_calls=3, budget_seconds=10.0)


def asked(wanted: int = 0, elapsed: float = 0.0, **state: Any) -> dict[str, Any] | None:
    payload = exhausted_by(SessionState(**state), LIMITS, wanted_tokens=wanted, elapsed_seconds=elapsed)
    if payload is not None:
        check_payload("budget.exhausted", payload)
    return payload


FITS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"wanted": 100}, {"wanted": 101}),
    ({"wanted": 60, "spent_tokens": 40}, {"wanted": 61, "spent_tokens": 40}),
    (
        {"wanted": 10, "spent_tokens": 40, "reserved": {"a": 50}},
        {"wanted": 11, "spent_tokens": 40, "reserved": {"a": 50}},
    ),
    ({"usage": Usage(calls=2)}, {"usage": Usage(calls=3)}),
    ({"elapsed": 4.0, "active_ms": 6_000}, {"elapsed": 4.1, "active_ms": 6_000}),
    ({"wanted": 500, "budget": {"tokens": 500}}, {"wanted": 60, "budget": {"tokens": 50}}),
]


@pytest.mark.req("B-05")
@pytest.mark.parametrize(("fits", "too_much"), FITS)
def test_a_call_runs_as_long_as_it_fits_and_not_one_step_further(
    fits: dict[str, Any], too_much: dict[str, Any]
) -> None:
    assert asked(**fits) is None
    payload = asked(**too_much)
    assert payload is not None
    assert payload["used"] + payload["wanted"] > payload["limit"]


def told(play: Play, event_type: str, **payload: Any) -> None:
    check_payload(event_type, payload)
    refs = {"role_call_id": play.open_one("role").payload["role_call_id"]}
    play.machine.evolve(play.state, Event(99, "event", event_type, payload, refs))


def test_a_reservation_counts_until_it_is_settled_and_then_what_was_used_counts() -> None:
    play = Play(definition(budget_tokens=100)).to_role()
    told(play, "budget.reserved", call_id="a", tokens=80)
    state, limits = play.state, play.machine.definition.limits
    assert exhausted_by(state, limits, wanted_tokens=21, elapsed_seconds=0)
    told(play, "budget.settled", call_id="a", tokens=30, known=True, elapsed_ms=1_500)
    assert exhausted_by(state, limits, wanted_tokens=70, elapsed_seconds=0) is None
    assert exhausted_by(state, limits, wanted_tokens=71, elapsed_seconds=0)
    told(play, "budget.reserved", call_id="b", tokens=70)
    told(play, "budget.settled", call_id="b", tokens=70, known=False)  # nobody said what it used
    assert exhausted_by(state, limits, wanted_tokens=1, elapsed_seconds=0)
    assert (state.reserved, state.active_ms) == ({}, 1_500)


def test_the_budget_of_the_run_is_its_own_and_can_be_raised() -> None:
    play = Play(definition(budget_tokens=100), start=False)
    play.start(budget={"tokens": 10, "calls": 1})
    limits = play.machine.definition.limits
    assert exhausted_by(play.state, limits, wanted_tokens=11, elapsed_seconds=0)
    play.receive("raise_budget", limits={"tokens": 20})
    assert exhausted_by(play.state, limits, wanted_tokens=20, elapsed_seconds=0) is None
    assert play.state.budget == {"tokens": 20, "calls": 1}
    again = play.machine.new_state()
    for number, fact in enumerate(play.facts, start=1):
        play.machine.evolve(again, event_of(fact, number))
    assert again.budget == play.state.budget
