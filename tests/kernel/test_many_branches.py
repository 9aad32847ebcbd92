"""Thousands of open branches in: a turn looks at what is new, and not at all of them."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.commands import PauseNow, Resume, RoleReturned, RoleSuspended
from harness_core.kernel.react import react
from harness_hookspecs.executor import Finish, Opens, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.canonical import canonical, digest
from tests.playing import Play, definition

OUT = digest("out")


class Fan:
    """Branches of calls; it says what each outcome opens, and remembers how many requests it has named."""

    def __init__(self, branches: int, steps: int) -> None:
        self._branches, self._steps = branches, steps
        self.named = self.asked_for_all = 0

    def start(self, stage_input: StageInput) -> Any:
        return {"had": [0] * self._branches, "last": None}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        last = int(outcome.request_id.partition(".")[0])
        return {"had": [count + (branch == last) for branch, count in enumerate(state["had"])], "last": last}

    def next(self, state: Any) -> tuple[Request, ...]:
        self.asked_for_all += 1
        return self._named(state, range(self._branches))

    def opened(self, state: Any) -> tuple[Request, ...]:
        return self._named(state, (state["last"],))

    def _named(self, state: Any, branches: Any) -> tuple[Request, ...]:
        if min(state["had"]) == self._steps:
            return (Finish(output="joined"),)
        left = [branch for branch in branches if state["had"][branch] < self._steps]
        self.named += len(left)
        return tuple(
            RoleCall(request_id=f"{one}.{state['had'][one]}", role="worker.ai-generate", task={}) for one in left
        )


def ends(play: Play, request_id: str) -> list[str]:
    assert play.state.visit is not None
    role_call_id = play.state.visit.requested[request_id]
    return play.send(RoleReturned(role_call_id, OUT, (), {OUT: canonical("out")}))


def test_an_executor_that_says_what_an_outcome_opens_is_not_asked_for_all_again() -> None:
    executor = Fan(50, 3)
    assert isinstance(executor, Opens)
    play = Play(definition(executors={"agent": executor}, requests_per_attempt=200)).to_role()
    play.machine.advance(play.state, ())
    executor.named = executor.asked_for_all = 0
    for branch in range(50):
        assert ends(play, f"{branch}.0") == ["role.returned", "role.requested"]
        assert ends(play, f"{branch}.1") == ["role.returned", "role.requested"]
    assert executor.asked_for_all == 0
    assert executor.named == 100
    for branch in range(49):
        ends(play, f"{branch}.2")
    types = ends(play, "49.2")
    assert types[:2] == ["role.returned", "artifact.proposed"]


@pytest.mark.inv("I-18")
def test_what_two_outcomes_open_is_asked_for_in_one_order_by_all_who_go_on() -> None:
    def asked(*, before: bool) -> list[str]:
        play = Play(definition(executors={"agent": Fan(4, 2)})).to_role()
        if before:
            play.machine.advance(play.state, ())
        assert play.state.visit is not None
        for branch in (3, 1):  # the later one ends first, and both before anybody asks what follows
            call = play.state.visit.requested[f"{branch}.0"]
            play.take(RoleReturned(call, OUT, (), {OUT: canonical("out")}))
        play.advance()
        return [fact.payload["request_id"] for fact in play.facts if fact.type == "role.requested"]

    assert asked(before=True)[-2:] == asked(before=False)[-2:] == ["1.1", "3.1"]


def test_a_process_that_goes_on_with_them_asks_for_all_once() -> None:
    executor = Fan(20, 2)
    play = Play(definition(executors={"agent": executor})).to_role()
    for branch in range(5):
        ends(play, f"{branch}.0")
    play.found(*play.facts[:-3])  # its last answers were never committed
    executor.asked_for_all = 0
    play.advance()
    assert executor.asked_for_all == 2  # one decision, which the play takes twice
    while play.state.role_calls:
        [first, *_] = [one for one, call in play.state.visit.requested.items() if call in play.state.role_calls]  # type: ignore[union-attr]
        ends(play, first)
    assert "artifact.proposed" in play.types()


def test_an_effect_is_given_once_and_again_after_what_may_change_it() -> None:
    play = Play(definition(executors={"agent": Fan(30, 2)})).to_role()
    react_now = play.machine.react
    assert len(react_now(play.state)) == 30
    assert react_now(play.state) == []
    ends(play, "4.0")
    [fresh] = react_now(play.state)
    assert fresh.effect_id == [*play.state.open][-1]  # type: ignore[union-attr]
    first = next(iter(play.state.role_calls))
    play.send(RoleSuspended(first, "pause", ""))
    assert {effect.key for effect in react_now(play.state)} == {effect.key for effect in react(play.state)}
    play.send(PauseNow("interrupted"))
    assert react_now(play.state) == []
    play.send(Resume("resume"))
    assert len(react_now(play.state)) == 30
    play.machine.new_state()
    assert len(react_now(play.state)) == 30  # whoever folds again begins with all


@pytest.mark.req("B-05")
def test_how_much_an_attempt_may_ask_for_is_bounded_and_the_end_says_how_to_raise_it() -> None:
    play = Play(definition(executors={"agent": Fan(3, 3)}, requests_per_attempt=5)).to_role()
    for request_id in ("0.0", "0.1", "1.0", "2.0"):
        ends(play, request_id)
    while play.state.role_calls:
        [first, *_] = [one for one, call in play.state.visit.requested.items() if call in play.state.role_calls]  # type: ignore[union-attr]
        ends(play, first)
    failed = play.last("session.failed")
    assert (failed["code"], failed["hint"]) == ("executor.too_many_calls", "raise run.max_requests, or see why it does")
