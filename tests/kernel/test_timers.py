"""Timers of an executor in, when each is due and what follows from its end out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from harness_core.kernel.commands import PauseNow, RoleFailed, RoleReturned, TimersElapsed
from harness_core.kernel.projections.session import left_amid_work, session_document
from harness_core.kernel.react import react
from harness_core.kernel.snapshot import snapshot_of, state_of
from harness_core.kernel.state import OpenRequest
from harness_core.kernel.timers import due_at, seconds_left
from harness_hookspecs.executor import MAX_DELAY_MS, Fail, Finish, Outcome, Request, RoleCall, StageInput, Timer
from harness_hookspecs.kit.canonical import canonical, digest
from tests.playing import Play, definition, retry, stage

Ends = Callable[[dict[str, list[Any]]], Request | None]
OUT = digest("out")
HOUR_MS = 3_600_000


class Plan:
    """Branches of role calls and timers, written ``call``, ``5`` (ms); the output is what each branch has had."""

    def __init__(self, ends: Ends = lambda had: None, **branches: str) -> None:
        self._ends, self._branches = ends, {name: steps.split() for name, steps in branches.items()}

    def start(self, stage_input: StageInput) -> Any:
        return {name: [] for name in self._branches}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        name = outcome.request_id.partition(".")[0]
        return {**state, name: [*state[name], outcome.value if outcome.ok else outcome.error["code"]]}

    def next(self, state: Any) -> tuple[Request, ...]:
        end = self._ends(state)
        open_ones = [_request(f"{name}.{len(had)}", self._branches[name][len(had)])
                     for name, had in state.items() if len(had) < len(self._branches[name])]  # fmt: skip
        return (end,) if end is not None else tuple(open_ones) or (Finish(output=state),)


def _request(request_id: str, step: str) -> Request:
    if step == "call":
        return RoleCall(request_id=request_id, role="worker.ai-generate", task={})
    return Timer(request_id=request_id, delay_ms=int(step))


def begun(executor: Any, **stage_options: Any) -> Play:
    plan = stage("work", ('artifact.status == "success"', "completed"), **stage_options)
    return Play(definition(plan, executors={"agent": executor})).to_role()


def ends(play: Play, request_id: str) -> list[str]:
    """What was asked for under that id ends well; what follows."""
    assert play.state.visit is not None
    name = play.state.visit.requested[request_id]
    if name in play.state.timers:
        return play.send(TimersElapsed((name,)))
    return play.send(RoleReturned(name, OUT, (), {OUT: canonical("out")}))


def asked(play: Play) -> list[str]:
    return [fact.payload["request_id"] for fact in play.facts if fact.type in ("role.requested", "timer.requested")]


def test_a_timer_ends_well_and_tells_its_executor_nothing_else() -> None:
    play = begun(Plan(a="5"))
    assert play.last("timer.requested")["delay_ms"] == 5
    assert ends(play, "a.0")[:2] == ["timer.elapsed", "artifact.proposed"]
    assert play.blobs[play.last("artifact.proposed")["output_ref"]] == canonical({"a": [None]})


@pytest.mark.inv("I-22")
def test_a_fast_branch_never_waits_for_a_timer_of_another() -> None:
    play = begun(Plan(slow=str(HOUR_MS), fast="call 5 call"))
    for name in ("fast.0", "fast.1", "fast.2"):
        ends(play, name)
    assert asked(play) == ["slow.0", "fast.0", "fast.1", "fast.2"]
    assert "artifact.proposed" not in play.types()
    ends(play, "slow.0")
    assert "artifact.proposed" in play.types()


@pytest.mark.inv("I-20")
def test_nothing_is_to_be_performed_while_only_timers_are_open() -> None:
    play = begun(Plan(a=str(HOUR_MS)))
    assert react(play.state) == []
    assert not left_amid_work(play.state)
    play = begun(Plan(a=str(HOUR_MS), b="call"))
    assert left_amid_work(play.state)  # whoever ran the call is gone, if nobody runs the session


def failing(had: dict[str, list[Any]]) -> Request | None:
    return Fail(code="plan.failed", message="enough") if "provider.down" in had["b"] else None


def breaking(had: dict[str, list[Any]]) -> Request | None:
    if had["b"]:
        raise RuntimeError("boom")
    return None


def finishing(had: dict[str, list[Any]]) -> Request | None:
    return Finish(output="early") if had["b"] else None


@pytest.mark.inv("I-21")
@pytest.mark.parametrize(("ending", "follows"), [
    (failing, "session.failed"), (breaking, "session.failed"), (finishing, "artifact.proposed"),
])  # fmt: skip
def test_no_end_waits_for_a_timer_and_each_end_waits_for_the_calls(ending: Any, follows: str) -> None:
    play = begun(Plan(ending, a=str(HOUR_MS), b="call", c="call"))
    assert play.state.visit is not None
    failed = {"name": "Error", "message": "no", "code": "provider.down"}
    types = play.send(RoleFailed(play.state.visit.requested["b.0"], failed))
    assert types == ["role.failed"]
    assert ends(play, "c.0")[:3] == ["role.returned", "timer.cancelled", follows]
    assert not play.state.timers


class Silent(Plan):
    """It breaks at an outcome of ``b``, and says of each that it opens nothing."""

    def apply(self, state: Any, outcome: Outcome) -> Any:
        if outcome.request_id.startswith("b"):
            raise RuntimeError("boom")
        return super().apply(state, outcome)

    def opened(self, state: Any) -> tuple[Request, ...]:
        return ()


@pytest.mark.inv("I-21")
def test_no_timer_is_waited_for_by_an_executor_that_broke_and_says_what_outcomes_open() -> None:
    play = begun(Silent(a=str(HOUR_MS), b="call"))
    assert ends(play, "b.0")[:3] == ["role.returned", "timer.cancelled", "session.failed"]


def test_an_attempt_that_is_tried_again_has_timers_of_its_own() -> None:
    play = begun(Plan(failing, a=str(HOUR_MS), b="call"), retry=retry("retry", 2))
    assert play.state.visit is not None
    first = play.last("timer.requested")["effect_id"]
    failed = {"name": "Error", "message": "no", "code": "provider.down"}
    types = play.send(RoleFailed(play.state.visit.requested["b.0"], failed))
    assert types[1:3] == ["timer.cancelled", "retry.scheduled"]
    play.context()
    assert play.last("timer.requested")["effect_id"] != first
    assert play.send(TimersElapsed((first,))) == []  # it came too late, and nobody is told


@pytest.mark.inv("I-17")
def test_a_timer_ends_once() -> None:
    play = begun(Plan(a="5 5"))
    first = play.last("timer.requested")["effect_id"]
    assert play.send(TimersElapsed((first, first, "eff_none"))) == ["timer.elapsed", "timer.requested"]
    assert play.send(TimersElapsed((first,))) == []


@pytest.mark.inv("I-20")
@pytest.mark.parametrize("kind", ["pause", "cancel"])
def test_neither_a_pause_nor_a_cancel_waits_for_a_timer(kind: str) -> None:
    play = begun(Plan(a=str(HOUR_MS)))
    effect_id = play.last("timer.requested")["effect_id"]
    assert play.receive(kind, reason="operator")[-1] == ("session.paused" if kind == "pause" else "session.cancelled")
    assert play.send(TimersElapsed((effect_id,))) == []  # it is due when the session goes on


def test_a_paused_session_goes_on_with_the_timers_it_had() -> None:
    play = begun(Plan(a=str(HOUR_MS)))
    play.send(PauseNow("interrupted"))
    assert [one["kind"] for one in session_document(play.state)["waiting"]] == ["timer"]
    assert play.folded_again().timers.keys() == play.state.timers.keys()


def test_a_snapshot_has_the_very_timers_that_are_open() -> None:
    state = begun(Plan(a="5", b="call", c="7")).state
    again = state_of(snapshot_of(state))
    assert [*again.timers] == [*state.timers]
    assert all(again.open[name] is timer for name, timer in again.timers.items())


def timer(delay_ms: int, asked_at: str = "2026-01-01T00:00:00.500Z") -> OpenRequest:
    return OpenRequest("timer", "eff", {"delay_ms": delay_ms}, 1, "event", asked_at=asked_at)


ASKED = datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(("gone", "left"), [
    (0.0, 2.0), (1.5, 0.5), (2.0, 0.0), (86_400.0, 0.0), (-0.5, 2.0), (-86_400.0, 2.0),
])  # fmt: skip
def test_a_clock_that_was_set_back_makes_no_timer_longer(gone: float, left: float) -> None:
    assert seconds_left(timer(2_000), ASKED + timedelta(seconds=gone)) == pytest.approx(left)


def test_until_when_it_waits_is_said_in_the_order_in_which_timers_are_due() -> None:
    assert due_at(timer(2_000)) == "2026-01-01T00:00:02.500Z"
    play = begun(Plan(a=str(HOUR_MS), b="1000"))
    waiting = session_document(play.state)["waiting"]
    assert [one["kind"] for one in waiting] == ["timer", "timer"]
    assert waiting[0]["until"] < waiting[1]["until"] < "2026-01-01T01:00:01Z"


def test_a_delay_is_at_most_a_century() -> None:
    assert due_at(timer(MAX_DELAY_MS)).startswith("2125-")
    assert due_at(timer(2**53)).startswith("9999-")  # what another version may have recorded
    for wrong in (-1, MAX_DELAY_MS + 1):
        with pytest.raises(ValidationError):
            Timer(request_id="t", delay_ms=wrong)
