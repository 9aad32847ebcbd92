"""A posted command in, its record and what it does out; whatever was posted, the session can go on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.kernel.commands import AskApproval, Received, RoleSuspended, Unanswered
from harness_core.kernel.facts import Fact
from harness_core.kernel.inbox import is_command
from harness_core.kernel.react import react
from harness_hookspecs.events import check_payload
from tests.playing import REF, Play, definition

CALL = {"subject": "tool", "name": "curl", "tier": "T3", "args": {}, "rule": "tiers.T3", "call_id": "c1"}


def asking(*, awaited: bool = True) -> Play:
    """A session whose role call waits for the answer to one question."""
    play = Play(definition()).to_role()
    request = play.open_one("role").payload
    where = {name: request[name] for name in ("visit_id", "persona", "role_call_id")}
    play.send(AskApproval({**CALL, **where}, "ask"))
    if awaited:
        play.send(Unanswered(play.reply, deny=False))
        play.send(RoleSuspended(where["role_call_id"], "approval", next(iter(play.state.approvals))))
    return play


def answer(play: Play, decision: str, /, **more: Any) -> list[str]:
    approval_id, approval = next(iter(play.state.approvals.items()))
    said = {"decision": decision, "by": "someone", "kind": "person"}
    body = {"approval_id": approval_id, "digest": approval.payload["digest"], **said, **more}
    facts = play.send(Received(f"answer:{approval_id}:{len(play.facts)}", "answer", body))
    for fact in play.facts:
        check_payload(fact.type, fact.payload)
    return facts


# ------------------------------------------------------------------------------------------------- answers

ANSWERS = {
    "approve": ("approval.granted", "once"),
    "auto_session": ("approval.granted", "session"),
    "deny": ("approval.denied", "once"),
}


@pytest.mark.parametrize(("decision", "ending"), ANSWERS.items(), ids=ANSWERS)
@pytest.mark.parametrize("awaited", [True, False])
def test_an_answer_ends_the_question_and_the_session_goes_on(
    decision: str, ending: tuple[str, str], awaited: bool
) -> None:
    play = asking(awaited=awaited)
    resumed = ["session.resumed"] if awaited else []
    assert answer(play, decision) == ["command.received", ending[0], *resumed]
    payload = play.last(ending[0])
    assert (payload["by"], payload["kind"], payload["scope"]) == ("someone", "person", ending[1])
    assert play.reply == "answered"
    assert [type(effect).__name__ for effect in react(play.state)] == ["RunRole"]


@pytest.mark.req("B-79")
@pytest.mark.parametrize("decision", ANSWERS)
def test_only_a_grant_for_the_session_is_kept(decision: str) -> None:
    play = asking()
    answer(play, decision)
    kept = [(grant["name"], grant["tier"]) for grant in play.state.grants]
    assert kept == ([("curl", "T3")] if decision == "auto_session" else [])


def test_an_answer_may_carry_an_instruction_and_both_are_recorded() -> None:
    play = asking()
    facts = answer(play, "approve", say="check the edge cases first")
    assert facts == ["command.received", "approval.granted", "steering.received", "session.resumed"]
    assert play.last("approval.granted")["say"] == "check the edge cases first"
    assert play.state.steering == ["check the edge cases first"]


@pytest.mark.inv("I-23")
def test_the_first_answer_stands_and_a_later_one_changes_nothing() -> None:
    play = asking()
    answer(play, "deny")
    assert answer(play, "auto_session") == ["command.received"]
    assert (play.reply, play.state.grants) == ("already", [])
    assert next(iter(play.state.approvals.values())).status == "denied"


@pytest.mark.inv("I-23")
@pytest.mark.parametrize(
    ("wrong", "reply"),
    [
        ({"digest": "0" * 64}, "digest"),
        ({"approval_id": "appr_other"}, "unknown"),
        ({"decision": "perhaps"}, "malformed"),
        ({"decision": None}, "malformed"),
        ({"by": None}, "malformed"),
        ({"kind": "yolo"}, "malformed"),
    ],
)
def test_an_answer_that_does_not_fit_is_no_answer(wrong: dict[str, Any], reply: str) -> None:
    play = asking()
    assert answer(play, "approve", **wrong) == ["command.received"]
    assert (play.reply, play.state.status) == (reply, "awaiting_approval")
    assert next(iter(play.state.approvals.values())).status == "pending"


# ------------------------------------------------------------------------------------------ every command


def test_a_command_is_taken_once() -> None:
    play = asking()
    steer = Received("steer:1", "steer", {"text": "left", "by": "someone"})
    assert play.send(steer) == ["command.received", "steering.received"]
    assert play.send(steer) == []
    assert play.facts[-2].key == "steer:1"
    assert play.folded_again().commands == {"steer:1"}


COMMANDS: dict[str, dict[str, Any]] = {
    "pause": {"reason": "operator"},
    "cancel": {"reason": "operator"},
    "steer": {"text": "left", "by": "someone"},
    "raise_budget": {"limits": {"tokens": 10}},
    "settle": {"effect_id": "eff", "outcome": "happened", "by": "someone", "kind": "person"},
    "answer": {"approval_id": "appr", "decision": "deny", "digest": REF, "by": "someone", "kind": "person"},
}


@pytest.mark.parametrize(("kind", "body"), COMMANDS.items(), ids=COMMANDS)
def test_a_command_that_comes_after_the_end_is_written_and_changes_nothing(kind: str, body: dict[str, Any]) -> None:
    play = asking()
    play.receive("cancel", reason="operator")
    assert play.state.status == "cancelled"
    decision = play.machine.decide(Received(f"{kind}:1", kind, body), play.state)
    assert list(decision.taken) == [f"{kind}:1"]
    assert play.send(Received(f"{kind}:1", kind, body)) == ["command.received"]
    check_payload("command.received", play.last("command.received"))
    assert (play.reply, play.state.status, play.state.cancelling) == ("final", "cancelled", None)


def test_an_effect_in_doubt_is_settled_once() -> None:
    play = Play(definition()).to_role()
    role_call_id = play.open_one("role").payload["role_call_id"]
    doubt = {"effect_id": "eff", "role_call_id": role_call_id, "call_id": "c", "tool_name": "t", "args_digest": REF}
    fact = Fact("effect.in_doubt", doubt, {"role_call_id": role_call_id})
    play.send(RoleSuspended(role_call_id, "in_doubt", "eff", (fact,)))
    assert react(play.state) == []
    body = {"effect_id": "eff", "outcome": "happened", "by": "someone", "kind": "person", "value": {"done": True}}
    assert play.send(Received("settle:1", "settle", body)) == ["command.received", "effect.settled"]
    check_payload("effect.settled", play.last("effect.settled"))
    assert play.state.settled["eff"]["value"] == {"done": True}
    assert len(react(play.state)) == 1
    assert play.send(Received("settle:2", "settle", body)) == ["command.received"]
    assert play.reply == "unknown"


# ---------------------------------------------------------------------------------- whatever was posted

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
kinds = st.sampled_from([*COMMANDS, "dance", ""])


@st.composite
def bent_commands(draw: st.DrawFn) -> tuple[Any, Any]:
    """A command of which one field, or all of it, is something else."""
    kind = draw(kinds)
    body = dict(COMMANDS.get(kind, {}))
    if draw(st.booleans()):
        return kind, draw(json_values)
    for name in draw(st.lists(st.sampled_from([*body, "more"]), max_size=2)):
        body[name] = draw(json_values)
    return draw(st.sampled_from([kind, kind, 7, None])), body


@given(bent_commands())
def test_whatever_lies_in_the_inbox_is_written_and_stops_no_session(command: tuple[Any, Any]) -> None:
    kind, body = command
    play = asking()
    facts = play.send(Received("posted", kind, body))
    assert facts[0] == "command.received"
    check_payload("command.received", play.last("command.received"))
    if not is_command(kind, body if isinstance(body, dict) else {}):
        assert play.reply == "malformed"
    play.receive("raise_budget", limits={"tokens": 10})
    assert play.folded_again().commands >= {"posted"}


@pytest.mark.parametrize("limits", [{"tokens": 0}, {"tokens": "9"}, {"calls": True}, {"money": 3}, [], None])
def test_a_budget_is_raised_by_positive_numbers_of_known_things(limits: Any) -> None:
    assert not is_command("raise_budget", {"limits": limits})
    assert is_command("raise_budget", {"limits": {"tokens": 9, "calls": 1, "seconds": 0.5}})
