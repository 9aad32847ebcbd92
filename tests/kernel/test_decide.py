"""One command in one state: the facts that come of it, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness_core.kernel.commands import (
    AskApproval,
    CancelNow,
    Command,
    ContextReady,
    EffectFailed,
    Migrate,
    PauseNow,
    PluginsFailed,
    Record,
    Refusal,
    Resume,
    RoleFailed,
    RoleReturned,
    RoleSuspended,
    Start,
    Unanswered,
    Validated,
)
from harness_core.kernel.facts import Fact
from harness_core.kernel.react import react
from harness_hookspecs.events import EVENTS, check_payload
from tests.playing import REF, SESSION, Play, definition, stage

ERROR = {"name": "E", "message": "no"}


def played(*steps: Callable[[Play], object], **stage_fields: Any) -> Play:
    play = Play(definition(stage(**stage_fields)))
    for step in steps:
        step(play)
    return play


def role_call_id(play: Play) -> str:
    return str(play.open_one("role").payload["role_call_id"])


def note(play: Play, text: str = "seen") -> Fact:
    call = role_call_id(play)
    return Fact("role.note", {"role_call_id": call, "text": text}, {"role_call_id": call})


def asked(play: Play, *, call_id: str = "c1", args: Any = 1) -> dict[str, Any]:
    request = play.open_one("role")
    return {
        "subject": "tool",
        "name": "curl",
        "tier": "T3",
        "args": {"n": args},
        "rule": "tiers.T3",
        "visit_id": request.payload["visit_id"],
        "persona": "worker",
        "role_call_id": role_call_id(play),
        "call_id": call_id,
    }


def ask(play: Play, verdict: Any = "ask", kind: Any = "policy", **call: Any) -> str:
    """Ask for an approval as a tool call does; returns its id."""
    play.send(AskApproval(asked(play, **call), verdict, kind))
    assert isinstance(play.reply, str)
    return play.reply


def await_it(play: Play) -> str:
    """Ask, and nobody answers: the session waits for a person and the role call gives its thread back."""
    approval_id = ask(play)
    play.send(Unanswered(approval_id, deny=False))
    play.send(RoleSuspended(role_call_id(play), "approval", approval_id))
    return approval_id


def at_role(play: Play) -> None:
    play.to_role()


def paused(play: Play) -> None:
    play.send(PauseNow("operator"))


def cancelled(play: Play) -> None:
    play.send(CancelNow("operator"))


# -------------------------------------------------------------------------------------- begin, go on, stop

STATES: dict[str, tuple[Callable[[Play], object], ...]] = {
    "active": (at_role,),
    "paused": (at_role, paused),
    "awaiting_approval": (at_role, await_it),
    "completed": (Play.succeed,),
    "failed": (at_role, Play.role_fails),
    "cancelled": (at_role, cancelled),
}

OPEN = ("active", "paused", "awaiting_approval")
FAILED_PLUGIN = {"plugin": "p", "error": ERROR}
MIGRATION = {"old_digest": REF, "new_digest": REF, "content_ref": REF, "changes": []}

MOVES: list[tuple[Command, tuple[str, ...], str]] = [
    (Resume("resume"), ("paused",), "session.resumed"),
    (PauseNow("signal"), ("active",), "session.paused"),
    (CancelNow("grace"), OPEN, "session.cancelled"),
    (Start(SESSION, {}, {}), (), ""),
    (PluginsFailed((FAILED_PLUGIN,)), OPEN, "plugin.failed"),
    (Migrate(MIGRATION, {}), OPEN, "config.migrated"),
]


@pytest.mark.req("B-136")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("command", "states", "fact"), MOVES, ids=[move[0].__class__.__name__ for move in MOVES])
def test_a_command_moves_a_session_only_from_where_it_may(
    state: str, command: Command, states: tuple[str, ...], fact: str
) -> None:
    play = played(*STATES[state])
    assert play.state.status == state
    assert play.send(command) == ([fact] if state in states else [])
    assert all(name in EVENTS for name in play.types())


@pytest.mark.parametrize("command", [Resume("resume"), Start(SESSION, {"config_digest": REF, "config_ref": REF}, {})])
def test_a_session_of_which_only_the_beginning_is_written_is_begun_by_whatever_finds_it(command: Command) -> None:
    play = Play(definition(), start=False)
    play.found(Fact("session.created", play.created()))
    assert play.state.status == "created"
    assert play.send(command)[:2] == ["session.started", "stage.entered"]


def test_a_session_that_was_only_created_can_be_cancelled_and_one_that_is_not_there_cannot() -> None:
    play = Play(definition(), start=False)
    assert play.send(CancelNow("operator")) == []
    play.found(Fact("session.created", play.created()))
    assert play.receive("steer", text="left", by="somebody") == ["command.received", "steering.received"]
    assert play.receive("cancel", reason="operator") == ["command.received", "session.cancelled"]


def test_a_pause_waits_for_what_is_under_way_and_a_cancel_beats_a_completion() -> None:
    play = played(at_role)
    play.running = {"role"}
    assert play.receive("pause", reason="operator") == ["command.received"]
    assert react(play.state) == []
    play.running = set()
    assert play.role() == ["role.returned", "session.paused"]
    assert play.send(Resume("resume"))[:2] == ["session.resumed", "artifact.proposed"]
    play.judged()
    play.running = {"validation"}
    play.receive("cancel", reason="operator")
    play.running = set()
    assert play.judged() == ["validation.passed", "session.cancelled"]


def test_a_session_whose_process_died_while_it_was_stopping_goes_on_when_it_is_resumed() -> None:
    play = played(at_role)
    play.running = {"role"}
    play.receive("pause", reason="operator")
    assert play.send(Resume("resume")) == ["session.paused", "session.resumed"]
    assert [type(effect).__name__ for effect in react(play.state)] == ["RunRole"]


# -------------------------------------------------------------------------------------------- late results

LATE: dict[str, Callable[[str], Command]] = {
    "context": lambda name: ContextReady(name, {"effect_id": name}, {}),
    "no context": lambda name: EffectFailed(name, ERROR),
    "verdict": lambda name: Validated(name, "passed", {"effect_id": name, "level": "payload"}, {}),
    "result": lambda name: RoleReturned(name, REF, (), {}),
    "failure": lambda name: RoleFailed(name, ERROR),
    "suspension": lambda name: RoleSuspended(name, "pause", ""),
    "call": lambda name: Record(name, results=(Fact("budget.settled", {"call_id": "c", "tokens": 9}),)),
}


@pytest.mark.inv("I-17")
@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
@pytest.mark.parametrize("state", ["active", "paused", "completed", "cancelled"])
def test_a_result_that_nobody_waits_for_is_recorded_as_ignored(late: Callable[[str], Command], state: str) -> None:
    play = played(*STATES[state])
    ended = play.last("context.requested")["effect_id"]
    before = play.folded_again()
    assert play.send(late(ended)) == ["effect.ignored"]
    check_payload("effect.ignored", play.last("effect.ignored"))
    assert (play.state.status, play.state.open, play.state.usage, play.state.spent_tokens) == (
        before.status,
        before.open,
        before.usage,
        before.spent_tokens,
    )


def test_an_intent_or_a_question_of_a_role_call_that_is_over_is_refused() -> None:
    play = played(at_role)
    question, intent = asked(play), note(play)
    play.role_fails()
    assert play.send(Record(intent.payload["role_call_id"], intent=(intent,))) == []
    assert play.reply == Refusal("cancelled")
    assert play.send(AskApproval(question, "ask", results=(intent,))) == ["effect.ignored"]
    assert play.reply == Refusal("cancelled")


# --------------------------------------------------------------------------------------- calls and budgets


def test_results_are_recorded_in_any_case_and_an_intent_only_when_the_session_may_go_on() -> None:
    play = played(at_role)
    result, intent = note(play, "result"), note(play, "intent")
    record = Record(role_call_id(play), results=(result,), intent=(intent,))
    assert play.send(record) == ["role.note", "role.note"]
    play.running = {"role"}
    play.receive("pause", reason="operator")
    assert play.send(record) == ["role.note"]
    assert (play.last("role.note")["text"], play.reply) == ("result", Refusal("pause"))
    play.receive("cancel", reason="operator")
    assert play.send(record) == ["role.note"]
    assert play.reply == Refusal("cancelled")


def test_a_model_call_that_does_not_fit_the_budget_is_refused_and_the_session_waits_for_more() -> None:
    play = Play(definition(budget_tokens=100)).to_role()
    call = Fact("role.note", {"role_call_id": role_call_id(play), "text": "", "callId": "c"})
    assert play.machine.decide(Record(role_call_id(play), intent=(call,), reserve_tokens=100), play.state).facts[0] == (
        "budget.reserved",
        {"call_id": "c", "tokens": 100},
        {"role_call_id": role_call_id(play)},
        "system",
        None,
    )
    assert play.send(Record(role_call_id(play), intent=(call,), reserve_tokens=101)) == ["budget.exhausted"]
    assert play.reply == Refusal("budget", "tokens")
    play.send(RoleSuspended(role_call_id(play), "budget", "tokens"))
    assert react(play.state) == []
    assert play.receive("raise_budget", limits={"tokens": 200}) == ["command.received", "budget.raised"]
    assert [type(effect).__name__ for effect in react(play.state)] == ["RunRole"]


# ---------------------------------------------------------------------------------------------- approvals


@pytest.mark.inv("I-23")
def test_the_same_call_finds_its_approval_and_other_arguments_need_another_one() -> None:
    play = played(at_role)
    first = ask(play)
    count = len(play.facts)
    assert (ask(play), len(play.facts)) == (first, count)
    other = ask(play, args=2)
    assert play.types(count) == ["approval.superseded", "approval.requested"]
    assert play.state.approvals[first].status == "superseded"
    again = ask(play, args=1)
    assert len({first, other, again}) == 3
    assert ask(play, call_id="c2") not in (first, other, again)


@pytest.mark.inv("I-23")
def test_an_answer_to_an_earlier_question_of_a_call_fits_no_later_one_about_the_same_arguments() -> None:
    play = played(at_role)
    first = play.state.approvals[ask(play, args=1)]
    ask(play, args=2)
    again = play.state.approvals[ask(play, args=1)]
    assert (first.payload["args"], first.payload["call_id"]) == (again.payload["args"], again.payload["call_id"])
    answer = {"digest": first.payload["digest"], "decision": "approve", "by": "ann", "kind": "person"}
    assert play.receive("answer", approval_id=again.approval_id, **answer) == ["command.received"]
    assert (play.reply, again.status) == ("digest", "pending")
    assert play.receive("answer", approval_id=first.approval_id, **answer) == ["command.received"]
    assert (play.reply, first.status) == ("already", "superseded")


@pytest.mark.parametrize(("verdict", "kind"), [("granted", "policy"), ("denied", "policy")])
def test_what_policy_decides_is_recorded_beside_the_question(verdict: Any, kind: str) -> None:
    play = played(at_role)
    approval_id = ask(play, verdict, kind)
    assert play.types()[-2:] == ["approval.requested", f"approval.{verdict}"]
    ending = play.last(f"approval.{verdict}")
    check_payload(f"approval.{verdict}", ending)
    assert (ending["approval_id"], ending["kind"], ending["by"]) == (approval_id, kind, "tiers.T3")


@pytest.mark.req("B-84")
def test_a_bypass_names_who_switched_yolo_on_and_the_question_the_rule_that_asked() -> None:
    play = Play(definition(), start=False)
    play.start(by="ann", yolo="on")
    play.to_role()
    approval_id = ask(play, "bypassed", "yolo")
    ending = play.last("approval.bypassed")
    check_payload("approval.bypassed", ending)
    assert (ending["approval_id"], ending["kind"], ending["by"]) == (approval_id, "yolo", "ann")
    assert play.last("approval.requested")["rule"] == "tiers.T3"


@pytest.mark.req("B-79")
def test_what_runs_under_a_grant_names_who_gave_the_grant() -> None:
    play = played(at_role)
    approval_id = await_it(play)
    asked_for = play.last("approval.requested")
    answer = {"approval_id": approval_id, "digest": asked_for["digest"], "by": "ann", "kind": "person"}
    play.receive("answer", decision="auto_session", **answer)
    ask(play, "granted", "grant", call_id="c2")
    ending = play.last("approval.granted")
    check_payload("approval.granted", ending)
    assert (ending["approval_id"] != approval_id, ending["kind"], ending["by"]) == (True, "grant", "ann")


def test_a_question_is_asked_once_and_again_after_a_pause() -> None:
    play = played(at_role)
    approval_id = ask(play)
    assert [effect.key for effect in react(play.state)][-1] == approval_id
    paused(play)
    assert play.send(Unanswered(approval_id, deny=False)) == []
    play.send(Resume("resume"))
    assert [effect.key for effect in react(play.state)][-1] == approval_id
    assert play.send(Unanswered(approval_id, deny=False)) == ["session.awaiting"]
    assert approval_id not in [effect.key for effect in react(play.state)]
    assert play.send(Unanswered(approval_id, deny=False)) == []


@pytest.mark.parametrize("awaited", [False, True])
def test_a_denial_because_nobody_may_be_asked_lets_the_role_go_on_at_once(awaited: bool) -> None:
    play = played(at_role)
    approval_id = await_it(play) if awaited else ask(play)
    resumed = ["session.resumed"] if awaited else []
    assert play.send(Unanswered(approval_id, deny=True)) == ["approval.denied", *resumed]
    assert (play.last("approval.denied")["kind"], play.state.status) == ("on_ask", "active")
    assert [type(effect).__name__ for effect in react(play.state)] == ["RunRole"]


def test_a_question_that_another_one_takes_the_place_of_is_waited_for_no_longer() -> None:
    play = played(at_role)
    await_it(play)
    count = len(play.facts)
    ask(play, "bypassed", "yolo", args=2)
    assert play.types(count) == [
        "approval.superseded",
        "session.resumed",
        "approval.requested",
        "approval.bypassed",
    ]
    assert [type(effect).__name__ for effect in react(play.state)] == ["RunRole"]


def test_of_two_questions_the_session_waits_until_the_last_is_answered() -> None:
    play = played(at_role)
    ids = [ask(play, call_id=call_id) for call_id in ("c1", "c2")]
    for approval_id in ids:
        play.send(Unanswered(approval_id, deny=False))
    play.send(RoleSuspended(role_call_id(play), "approval", ids[0]))
    for approval_id, facts in zip(ids, (["approval.denied"], ["approval.denied", "session.resumed"]), strict=True):
        assert react(play.state) == []
        assert play.send(Unanswered(approval_id, deny=True)) == facts
    assert [effect.key[-2:] for effect in react(play.state)] == ["#1"]


# ----------------------------------------------------------------------------------------------- verdicts


@pytest.mark.inv("I-24")
@pytest.mark.parametrize("missing", ["body_ref", "status"])
def test_a_payload_passes_only_with_a_body_and_a_status(missing: str) -> None:
    play = Play(definition()).to_artifact()
    verdict = play.verdict()
    payload = {name: value for name, value in verdict.payload.items() if name != missing}
    facts = play.send(Validated(verdict.effect_id, "passed", payload, {}))
    assert facts[:2] == ["validation.errored", "artifact.rejected"]
    check_payload("validation.errored", play.last("validation.errored"))


@pytest.mark.inv("I-24")
def test_a_pass_of_another_level_is_none() -> None:
    play = Play(definition()).to_artifact()
    assert play.judged(level="semantic")[0] == "validation.errored"
