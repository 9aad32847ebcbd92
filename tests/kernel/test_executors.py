"""An executor in, whatever it does, a decision out: it is pure, and what breaks in it breaks one attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from harness_core.kernel.commands import Migrate, RoleFailed, RoleReturned
from harness_core.kernel.guard import guarded
from harness_core.kernel.react import react
from harness_hookspecs.errors import HarnessError, RuleError
from harness_hookspecs.executor import (
    ChildSession,
    Executor,
    Fail,
    Finish,
    Outcome,
    Request,
    RoleCall,
    StageInput,
    Timer,
)
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.kit.codec import loads
from tests.playing import REF, OneCall, Play, definition, retry, stage
from tests.reference import cases

CASES = cases("runtime")


class Odd:
    """An executor that breaks in one of its three functions, or asks for something odd."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        usual: dict[str, Callable[..., Any]] = {
            "start": lambda stage_input: {"outcomes": 0},
            "apply": lambda state, outcome: {"outcomes": state["outcomes"] + 1},
            "next": lambda state: (_call(f"call{state['outcomes']}"),),
        }
        self._functions = {**usual, **functions}

    def start(self, stage_input: StageInput) -> Any:
        return self._functions["start"](stage_input)

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return self._functions["apply"](state, outcome)

    def next(self, state: Any) -> tuple[Request, ...]:
        found: tuple[Request, ...] = self._functions["next"](state)
        return found


def _call(request_id: str) -> RoleCall:
    return RoleCall(request_id=request_id, role="worker.ai-generate", task={})


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        raise error

    return function


ODD: dict[str, tuple[Executor, str]] = {
    "start raises": (Odd(start=raising(KeyError("x"))), "plugin.raised"),
    "apply raises": (Odd(apply=raising(ZeroDivisionError("by zero"))), "plugin.raised"),
    "next raises": (Odd(next=raising(RuntimeError("boom"))), "plugin.raised"),
    "raises one of ours": (Odd(next=raising(HarnessError("no", code="executor.own"))), "executor.own"),
    "asks for nothing": (Odd(next=lambda state: ()), "executor.stalled"),
    "asks the same again": (Odd(next=lambda state: (_call("always the same"),)), "executor.stalled"),
    "asks twice for one": (Odd(next=lambda state: (_call("one"), _call("one"))), "executor.stalled"),
    "gives no requests": (Odd(next=lambda state: None), "plugin.raised"),
    "fails": (Odd(next=lambda state: (Fail(code="executor.said", message="no"),)), "executor.said"),
    "wants a child": (Odd(next=lambda state: (ChildSession(request_id="c", input={}),)), "executor.not_available"),
    "wants a call, and a child with it": (
        Odd(next=lambda state: (Timer(request_id="t", delay_ms=1), ChildSession(request_id="c", input={}))),
        "executor.not_available",
    ),
}


@pytest.mark.parametrize(("executor", "code"), ODD.values(), ids=ODD)
def test_an_executor_that_breaks_fails_its_attempt_and_never_the_loop(executor: Executor, code: str) -> None:
    plan = stage("work", ('artifact.status == "success"', "completed"), retry=retry("retry", 2))
    play = Play(definition(plan, executors={"agent": executor}))
    while not play.state.final:
        play.context()
        if any(play.opened("role")):
            play.role()
    assert play.last("session.failed")["code"] == code
    assert play.types().count("stage.entered") == 1


@pytest.mark.parametrize("code", ["executor.said", "role.output_invalid"])
def test_an_end_has_findings_and_hint_of_the_failure_it_passes_on_and_of_none_that_was_got_over(code: str) -> None:
    end = Fail(code="executor.said", message="no")
    executor = Odd(next=lambda state: (end if state["outcomes"] else _call("one"),))
    play = Play(definition(stage(), executors={"agent": executor})).to_role()
    finding = {"code": "output.schema", "severity": "error", "path": "/a", "message": "wrong"}
    details = {"findings": [finding], "hint": "mend it"}
    [role_call_id] = play.state.role_calls
    play.send(RoleFailed(role_call_id, {"name": "RoleError", "message": "no", "code": code, "details": details}))
    failed = play.last("session.failed")
    passed_on = code == "executor.said"
    assert (failed.get("findings") or [], failed.get("hint")) == (
        ([finding], "mend it") if passed_on else ([], None)
    )


@pytest.mark.parametrize("findings", [
    7, "no", ["no"], [{}], [{"code": 1, "severity": "error", "message": "m"}],
    [{"code": "c", "severity": "fatal", "message": "m"}],
    [{"code": "c", "severity": "error", "message": "m", "path": 0}],
])  # fmt: skip
def test_what_a_plugin_calls_findings_and_is_none_ends_no_session_otherwise(findings: Any) -> None:
    play = Play(definition()).to_role()
    [role_call_id] = play.state.role_calls
    details = {"findings": findings, "hint": 7}
    play.send(RoleFailed(role_call_id, {"name": "E", "message": "no", "code": "acme.odd", "details": details}))
    failed = play.last("session.failed")
    assert (failed["code"], failed.get("findings") or [], failed.get("hint")) == ("acme.odd", [], None)


@pytest.mark.req("B-05")
def test_an_executor_that_would_ask_for_ever_is_stopped() -> None:
    plan = stage("work", ('artifact.status == "success"', "completed"), retry=retry("retry", 3))
    play = Play(definition(plan, executors={"agent": Odd()}, requests_per_attempt=3)).to_role()
    while not play.state.final:
        play.role()
    assert play.last("session.failed")["code"] == "executor.too_many_calls"
    assert play.types().count("role.requested") == 3


def test_an_executor_or_a_stage_that_a_migration_took_away_ends_the_session_and_says_so() -> None:
    migrated = Migrate({"old_digest": REF, "new_digest": REF, "content_ref": REF, "changes": []}, {})
    for changed, code in (
        (definition(stage(executor="other"), executors={"other": OneCall()}), "executor.not_available"),
        (definition(stage("elsewhere")), "routing.unknown_stage"),
    ):
        play = Play(definition(stage("work", ('artifact.status == "success"', "completed"))))
        play.machine.definition = changed
        play.send(migrated)
        if not play.state.final:
            play.context()
        assert play.last("session.failed")["code"] == code


def test_calls_side_by_side_are_asked_at_once_and_the_stage_goes_on_after_the_last() -> None:
    play = Play(definition(executors={"agent": OneCall(3)}))
    assert play.context() == ["context.assembled", *["role.requested"] * 3]
    assert len({effect.key for effect in react(play.state)}) == 3
    assert [play.role(f"out {index}") for index in range(2)] == [["role.returned"]] * 2
    assert play.role("out 2")[:2] == ["role.returned", "artifact.proposed"]


class Branches:
    """Branches that make one call after another, each at its own pace; it remembers how often it was asked."""

    def __init__(self, branches: int, calls: int, *, joins: Callable[[dict[str, int]], bool] | None = None) -> None:
        self._names, self._calls = [f"b{number}" for number in range(branches)], calls
        self._joins = joins or (lambda ended: all(count == calls for count in ended.values()))
        self.asked = 0

    def start(self, stage_input: StageInput) -> Any:
        return dict.fromkeys(self._names, 0)

    def apply(self, state: Any, outcome: Outcome) -> Any:
        branch = outcome.request_id.partition(".")[0]
        return {**state, branch: state[branch] + 1}

    def next(self, state: Any) -> tuple[Request, ...]:
        self.asked += 1
        if self._joins(state):
            return (Finish(output=state),)
        return tuple(_call(f"{name}.{count}") for name, count in state.items() if count < self._calls)


def ends(play: Play, request_id: str) -> list[str]:
    """The call of that name returns; what follows."""
    role_call_id = play.state.visit.requested[request_id]  # type: ignore[union-attr]
    return play.send(RoleReturned(role_call_id, digest("out"), (), {digest("out"): canonical("out")}))


def requested(play: Play) -> list[str]:
    return [fact.payload["request_id"] for fact in play.facts if fact.type == "role.requested"]


@pytest.mark.inv("I-22")
def test_a_fast_branch_never_waits_for_a_slow_one() -> None:
    play = Play(definition(executors={"agent": Branches(3, 3)})).to_role()
    for name in ("b1.0", "b1.1", "b1.2", "b2.0", "b2.1"):
        ends(play, name)
    assert requested(play) == ["b0.0", "b1.0", "b2.0", "b1.1", "b1.2", "b2.1", "b2.2"]


@pytest.mark.inv("I-21")
def test_branches_are_joined_once_and_after_the_last_of_them_has_ended() -> None:
    play = Play(definition(executors={"agent": Branches(2, 1, joins=lambda ended: any(ended.values()))})).to_role()
    assert ends(play, "b1.0") == ["role.returned"]  # the executor would end now; the other branch keeps its result
    assert ends(play, "b0.0")[:2] == ["role.returned", "artifact.proposed"]
    assert play.types().count("artifact.proposed") == 1


class Chains:
    """Branches of as many calls as it is told, each given what its own branch had last; one that fails is over."""

    def __init__(self, *names: str, calls: int) -> None:
        self._names, self._calls = names, calls

    def start(self, stage_input: StageInput) -> Any:
        return {name: [name] for name in self._names}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        name = outcome.request_id.partition(".")[0]
        had = outcome.value if outcome.ok else {"failed": outcome.error["code"]}
        return {**state, name: [*state[name], had]}

    def next(self, state: Any) -> tuple[Request, ...]:
        left = [name for name, had in state.items() if len(had) <= self._calls and not isinstance(had[-1], dict)]
        calls = [_call_with(f"{name}.{len(state[name])}", state[name][-1]) for name in left]
        return tuple(calls) or (Finish(output=[had[-1] for had in state.values()]),)


def _call_with(request_id: str, given: Any) -> RoleCall:
    return RoleCall(request_id=request_id, role="worker.ai-generate", task={"given": given})


def _given(play: Play, role_call_id: str) -> Any:
    return loads(play.blobs[play.state.role_calls[role_call_id].payload["task_ref"]])["given"]


@pytest.mark.inv("I-21")
@pytest.mark.parametrize("seed", range(100))
def test_a_branch_is_given_its_own_results_alone_and_the_join_has_them_as_declared(seed: int) -> None:
    assert "declared order" in CASES["BR-027"]["right"]
    names, chance = ("alpha", "beta", "gamma"), random.Random(seed)
    play = Play(definition(executors={"agent": Chains(*names, calls=2)})).to_role()
    while play.state.role_calls:
        role_call_id = chance.choice(sorted(play.state.role_calls))
        out = f"{_given(play, role_call_id)}+"
        play.send(RoleReturned(role_call_id, digest(out), (), {digest(out): canonical(out)}))
    assert loads(play.blobs[play.last("artifact.proposed")["output_ref"]]) == [f"{name}++" for name in names]


@pytest.mark.inv("I-20", "I-21")
@pytest.mark.parametrize("first", ["the failure", "the others"])
def test_a_branch_that_dies_before_the_join_is_told_there_and_holds_nobody_up(first: str) -> None:
    assert "explicit failure marker" in CASES["BR-030"]["right"]
    play = Play(definition(executors={"agent": Chains("dies", "lives", calls=3)})).to_role()
    dead = play.state.visit.requested["dies.1"]  # type: ignore[union-attr]
    dying = RoleFailed(dead, {"name": "Error", "message": "no", "code": "provider.down"})
    if first == "the failure":
        play.send(dying)
    for step in range(1, 4):
        ends(play, f"lives.{step}")
    if first == "the others":
        assert "artifact.proposed" not in play.types()
        play.send(dying)
    assert loads(play.blobs[play.last("artifact.proposed")["output_ref"]]) == [{"failed": "provider.down"}, "out"]
    assert [name for name in requested(play) if name.startswith("dies")] == ["dies.1"]


def test_what_an_executor_breaks_by_while_calls_are_open_is_met_when_they_have_ended() -> None:
    executor = Odd(
        start=lambda stage_input: 0,
        apply=lambda state, outcome: state + 1,
        next=lambda state: (_call("one"), _call("two")) if state == 0 else raising(RuntimeError("boom"))(),
    )
    play = Play(definition(executors={"agent": executor})).to_role()
    assert ends(play, "two") == ["role.returned"]
    assert "session.failed" in ends(play, "one")


def test_calls_that_would_be_too_many_are_met_when_the_others_have_ended() -> None:
    play = Play(definition(executors={"agent": Branches(2, 2)}, requests_per_attempt=2)).to_role()
    assert ends(play, "b0.0") == ["role.returned"]
    assert "session.failed" in ends(play, "b1.0")
    assert play.last("session.failed")["code"] == "executor.too_many_calls"


def test_an_executor_is_asked_again_only_after_one_of_its_calls_has_ended() -> None:
    executor = Branches(2, 1)
    play = Play(definition(executors={"agent": executor})).to_role()
    for _ in range(5):
        play.machine.advance(play.state, frozenset())
    assert executor.asked == 2  # one decision, which the play takes twice
    ends(play, "b0.0")
    assert executor.asked > 2


def test_asking_twice_names_the_same_requests_and_another_attempt_names_others() -> None:
    plan = stage("work", ('artifact.status == "success"', "completed"), retry=retry("retry", 2))
    plays = [Play(definition(plan)) for _ in range(2)]
    for play in plays:
        play.context()
        play.role_fails()
        play.context()
    requested = [[fact for fact in play.facts if fact.type.endswith(".requested")] for play in plays]
    assert requested[0] == requested[1]
    effects = [fact.payload["effect_id"] for fact in requested[0]]
    assert len(set(effects)) == len(effects)


def test_anything_a_pure_plugin_raises_is_a_named_error() -> None:
    assert guarded(lambda: 1, what="it") == (1, None)
    raised: list[tuple[BaseException, str]] = [(RuleError("no"), RuleError.code)]
    for error, code in (*raised, *((one, "plugin.raised") for one in (RecursionError("deep"), SystemExit(0)))):
        assert guarded(raising(error), what="it").error.code == code  # type: ignore[union-attr]
    with pytest.raises(KeyboardInterrupt):
        guarded(raising(KeyboardInterrupt()), what="it")
