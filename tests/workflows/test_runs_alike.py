"""Random plans, random outcomes in random orders: the run is what the slow interpreter says, in any order the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.plan.paths import parse_path
from harness_executor_workflow.running.program import Program, program_of
from harness_executor_workflow.running.run import apply, end_of, next_asks, opened_asks, start
from harness_hookspecs.executor import Outcome
from harness_hookspecs.kit import codec
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules

from .plans import INPUT, answer, document, plans
from .slow_run import SlowRun

RULES = CelRules()
ABOUT = {"id": "r", "attempt": 1}


def begun(plan: Any) -> tuple[Program, dict[str, Any]]:
    program = program_of(Workflow.from_wire(plan), RULES)
    return program, start(program, INPUT, run=ABOUT, seed="seed")


def outcome(ask: Any, value: Any, error: Any) -> Outcome:
    return Outcome(request_id=ask["id"], ok=error is None, value=value, error=error)


def step_of(plan: Any, path: str) -> Any:
    found, steps = None, plan["steps"]
    for one in parse_path(path):
        found = next(step for step in steps if step["id"] == one.step)
        steps = found.get("steps", ())
    return found


def seen(ask: Any) -> Any:
    """What both say of a call: the task of a step is compared by what was filled in."""
    args = (
        ask["task"]["step"]["with"].get("args") if isinstance(ask.get("task"), dict) and "step" in ask["task"] else None
    )
    return (ask["kind"], ask["path"], ask["visit"], ask.get("delay_ms"), args or None)


def seen_slowly(ask: Any) -> Any:
    return (ask["kind"], ask["path"], ask["visit"], ask.get("delay_ms"), ask.get("task") or None)


def unsaid(value: Any) -> Any:
    """A value without messages, whose wording the slow interpreter does not know."""
    if isinstance(value, dict):
        return {key: unsaid(item) for key, item in value.items() if key != "message"}
    return [unsaid(item) for item in value] if isinstance(value, (list, tuple)) else value


def drive(plan: Any, salt: str, order: Any, failures: int, at_once: int = 100) -> tuple[Any, dict[str, Any]]:
    """A whole run: its end, and all that was asked by id."""
    program = program_of(Workflow.from_wire(plan), RULES)._replace(at_once=at_once)
    state = start(program, INPUT, run=ABOUT, seed="seed")
    asked: dict[str, Any] = {}
    while (end := end_of(state)) is None:
        asks = next_asks(program, state)
        asked |= {ask["id"]: seen(ask) for ask in asks}
        ask = asks[order(len(asks))]
        value, error = answer(salt, ask, step_of(plan, ask["path"]), failures=failures)
        state = apply(program, state, outcome(ask, value, error))
    return end, asked


def stopped(plan: Any, salt: str, failures: int) -> bool:
    """Whether a failure stops anything; if in one order, then in any."""
    slow = SlowRun(plan, INPUT, ABOUT, "seed", RULES)
    while slow.end is None:
        ask = next(iter(slow.open().values()))
        slow.hear(ask["id"], *answer(salt, ask, step_of(plan, ask["path"]), failures=failures))
    return slow.failures > 0


@given(plans(), st.integers(0, 9), st.sampled_from((0, 2, 5)), st.data())
def test_a_run_is_what_the_slow_interpreter_says(plan: Any, salt: int, failures: int, data: st.DataObject) -> None:
    program, state = begun(plan)
    slow = SlowRun(plan, INPUT, ABOUT, "seed", RULES)
    while True:
        asks = {ask["id"]: ask for ask in next_asks(program, state)}
        assert unsaid({name: seen(ask) for name, ask in asks.items()}) == unsaid(
            {name: seen_slowly(ask) for name, ask in slow.open().items()}
        )
        end = end_of(state)
        if end is not None or slow.end is not None:
            assert end is not None
            found = ("output", end["output"]) if "output" in end else ("error", end["error"]["code"])
            assert unsaid(slow.end) == unsaid(found)
            return
        ask = asks[data.draw(st.sampled_from(sorted(asks)))]
        value, error = answer(str(salt), ask, step_of(plan, ask["path"]), failures=failures)
        state = apply(program, state, outcome(ask, value, error))
        slow.hear(ask["id"], value, error)


@given(plans(), st.integers(0, 9), st.sampled_from((0, 2)), st.randoms(use_true_random=False))
def test_another_order_of_outcomes_changes_nothing(plan: Any, salt: int, failures: int, chance: Any) -> None:
    first = drive(plan, str(salt), lambda size: 0, failures)
    kept = not stopped(plan, str(salt), failures)  # how far the rest had come when a failure stopped it, is the order's
    for order in (lambda size: size - 1, chance.randrange):
        found = drive(plan, str(salt), order, failures)
        if kept:
            assert found == first


@given(plans(), st.integers(0, 9), st.integers(1, 3), st.randoms(use_true_random=False))
def test_how_many_branches_a_run_may_have_at_once_changes_nothing_but_the_order(
    plan: Any, salt: int, at_once: int, chance: Any
) -> None:
    first = drive(plan, str(salt), lambda size: 0, 2)
    found = drive(plan, str(salt), chance.randrange, 2, at_once)
    if not stopped(plan, str(salt), 2):
        assert found == first


def branches(level: Any) -> list[int]:
    """How many branches each group that is under way has, of a level and all below."""
    fans = [step["fan"]["active"] for step in level["steps"].values() if "fan" in step]
    return [*map(len, fans), *(size for one in fans for below in one.values() for size in branches(below))]


@pytest.mark.req("A-94")
def test_branches_within_branches_have_no_more_calls_open_than_a_run_may_have_branches() -> None:
    step = {"id": "s", "uses": "tool.call", "with": {"tool": "t"}, "output": {"mode": "json"}}
    settings = {
        "items": "{{ input.xs }}", "itemKey": "{{ item }}", "maxBranches": 30, "maxConcurrency": 30,
        "failureMode": "all_settled",
    }  # fmt: skip
    inner = {"id": "g", "uses": "parallel", "with": settings, "steps": [step]}
    plan = document([{"id": "f", "uses": "parallel", "with": settings, "steps": [inner]}])
    program = program_of(Workflow.from_wire(plan), RULES)._replace(at_once=10)
    state = start(program, {"xs": [*range(30)], "none": []}, run=ABOUT, seed="seed")
    heard, fewest = 0, 10
    while end_of(state) is None:
        asks = next_asks(program, state)
        assert len(asks) <= 10
        if heard < 800:  # then groups come to their ends
            fewest = min(fewest, len(asks))
        [outer, *below] = branches(state["root"])
        assert state["branches"] == outer + sum(below) - len(below) <= 10
        state = apply(program, state, outcome(asks[heard % len(asks)], 1, None))
        heard += 1
    assert (heard, fewest) == (900, 10)
    assert "output" in (end_of(state) or {})
    assert state["branches"] == 0


@given(plans(), st.integers(0, 9), st.randoms(use_true_random=False))
def test_a_step_of_a_run_is_pure_and_its_state_is_plain(plan: Any, salt: int, chance: Any) -> None:
    program, state = begun(plan)
    while end_of(state) is None:
        asks = next_asks(program, state)
        assert next_asks(program, state) == asks
        assert len({ask["id"] for ask in asks}) == len(asks)
        ask = chance.choice(asks)
        value, error = answer(str(salt), ask, step_of(plan, ask["path"]), failures=2)
        told = outcome(ask, value, error)
        before = copy.deepcopy(state)
        after = apply(program, state, told)
        assert state == before
        assert apply(program, codec.loads(codec.dumps(state)), told) == after
        assert codec.loads(codec.dumps(after)) == after
        assert apply(program, after, told) == {**after, "opened": []}  # it was heard already
        state = after


@given(plans(), st.integers(0, 9), st.sampled_from((0, 2, 5)), st.randoms(use_true_random=False))
def test_what_an_outcome_opens_is_what_was_not_open_before(plan: Any, salt: int, failures: int, chance: Any) -> None:
    program, state = begun(plan)
    assert opened_asks(state) == next_asks(program, state)
    while end_of(state) is None:
        before = {ask["id"] for ask in next_asks(program, state)}
        ask = chance.choice(next_asks(program, state))
        value, error = answer(str(salt), ask, step_of(plan, ask["path"]), failures=failures)
        told = outcome(ask, value, error)
        state = apply(program, state, told)
        assert opened_asks(state) == tuple(one for one in next_asks(program, state) if one["id"] not in before)
        assert opened_asks(apply(program, state, told)) == ()


@pytest.mark.parametrize("request_id", ["", "s9#1", "s0[x]#1", "s0.s1#1", "../x"])
def test_an_outcome_of_what_no_run_asks_is_refused(request_id: str) -> None:
    from harness_hookspecs.errors import IllegalMove

    plan = document([{"id": "s0", "uses": "tool.call", "with": {"tool": "t"}, "output": {"mode": "json"}}])
    program, state = begun(plan)
    with pytest.raises(IllegalMove) as caught:
        apply(program, state, Outcome(request_id=request_id, ok=True))
    assert caught.value.code == "executor.unknown_request"
