"""What a session does by itself in a stage visit: routing, context, executor, four levels, acceptance, next stage."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.commands import Unanswered
from harness_core.kernel.react import react
from harness_core.kernel.routing import first_open_target, routing_findings
from harness_hookspecs.events import check_payload
from harness_hookspecs.validator import LEVELS
from tests.playing import REF, Play, definition, retry, stage

FINDING = {"code": "x", "severity": "error", "path": "/text", "message": "it is not so"}


def levels(play: Play, ending: str) -> list[str]:
    """The levels with that ending, in order; each is one of the contract's."""
    found = [fact.payload["level"] for fact in play.facts if fact.type == f"validation.{ending}"]
    assert set(found) <= set(LEVELS)
    return found


# ------------------------------------------------------------------------------------------------ the order


@pytest.mark.req("B-19")
def test_the_four_levels_are_judged_in_order_and_each_leaves_its_verdict() -> None:
    play = Play(definition())
    play.succeed()
    assert levels(play, "requested") == levels(play, "passed") == ["routing", "payload", "semantic", "approval"]
    assert play.state.status == "completed"


EVERYWHERE = {level: (f"{level}-judge",) for level in LEVELS}


def judged_until(level: str, **more: Any) -> Play:
    """A session with a validator at each level, up to the open validation at this one."""
    play = Play(definition(stage("work", ('artifact.status == "success"', "completed"), **more), validators=EVERYWHERE))
    for before in LEVELS[: LEVELS.index(level)]:
        play.judged()
        if before == "routing":
            play.to_artifact()
    return play


@pytest.mark.req("B-19")
@pytest.mark.parametrize("level", LEVELS)
def test_the_validators_of_each_level_are_asked_and_nothing_goes_on_before_they_have_said(level: str) -> None:
    play = judged_until(level)
    [request] = play.opened("validation")
    own = ["kernel"] if level in ("routing", "approval") else []
    assert (request.payload["level"], request.payload["validators"]) == (level, [*own, f"{level}-judge"])
    assert [type(effect).__name__ for effect in react(play.state)] == ["Validate"]
    assert levels(play, "passed") == list(LEVELS[: LEVELS.index(level)])
    assert play.judged()[0] == "validation.passed"
    assert (level == "approval") == ("artifact.accepted" in play.types())


@pytest.mark.req("B-19", "B-20")
@pytest.mark.parametrize("outcome", ["failed", "errored"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_first_level_that_does_not_pass_stops_the_chain_and_the_artifact_goes_nowhere(
    level: str, outcome: str
) -> None:
    play = judged_until(level)
    play.judged(outcome, findings=[{**FINDING, "code": "y", "severity": "warning"}, FINDING])
    assert levels(play, "requested") == list(LEVELS[: LEVELS.index(level) + 1])
    assert levels(play, outcome) == [level]
    assert {"artifact.accepted", "transition.taken", "stage.left"}.isdisjoint(play.types())
    assert play.state.status == "failed"
    refused = [fact.payload["level"] for fact in play.facts if fact.type == "artifact.rejected"]
    assert refused == ([] if level == "routing" else [level])
    reason = "x" if (level, outcome) == ("routing", "failed") else "artifact.invalid_after_retries"
    assert play.last("session.failed")["code"] == reason


@pytest.mark.inv("I-24")
def test_a_payload_that_nobody_would_judge_is_asked_for_all_the_same_and_passes_by_no_default() -> None:
    nobody = dict.fromkeys(LEVELS, ())
    play = Play(definition(validators=nobody)).to_artifact()
    assert levels(play, "passed") == ["routing"]
    assert [request.payload["level"] for request in play.opened("validation")] == ["payload"]
    assert [type(effect).__name__ for effect in react(play.state)] == ["Validate"]


# -------------------------------------------------------------------------------------------------- routing

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "capability": ({"requirements": frozenset({"coding", "tool_calling"})}, "missing_capability", "tool_calling"),
    "policy": ({"denied_by": "policies.yaml:3:1"}, "provider_denied", "policies.yaml:3:1"),
}


@pytest.mark.req("B-65", "B-66")
@pytest.mark.parametrize(("fields", "code", "named"), REFUSED.values(), ids=REFUSED)
def test_a_stage_with_a_model_that_does_not_fit_is_refused_before_any_inference(
    fields: dict[str, Any], code: str, named: str
) -> None:
    play = Play(definition(stage(**fields)))
    assert play.types()[-3:] == ["validation.requested", "validation.failed", "session.failed"]
    assert levels(play, "failed") == ["routing"]
    failed = play.last("session.failed")
    assert (failed["code"], named in failed["message"]) == (f"routing.{code}", True)
    assert "context.requested" not in play.types()


@pytest.mark.req("B-64")
def test_a_jump_to_a_stage_that_is_not_declared_is_refused() -> None:
    play = Play(definition(stage("work", ("true", "nowhere"))))
    assert play.succeed()[-3:] == ["transition.taken", "stage.left", "session.failed"]
    assert play.last("session.failed")["code"] == "routing.unknown_stage"
    assert "nowhere" in play.last("session.failed")["message"]


TARGETS: dict[tuple[str, ...], str] = {
    ("good",): "good",
    ("denied", "good"): "good",
    ("missing", "weak", "good", "other"): "good",
    ("denied", "failed"): "failed",
    ("completed", "good"): "completed",
    ("weak", "denied"): "weak",  # none is open, so the first one says why
}


@pytest.mark.req("B-51")
@pytest.mark.parametrize(("targets", "taken"), TARGETS.items(), ids=map("-".join, TARGETS))
def test_of_several_targets_the_first_whose_routing_is_valid_is_taken(targets: tuple[str, ...], taken: str) -> None:
    rules = definition(
        stage("work", ("true", targets)),
        stage("good"),
        stage("other"),
        stage("denied", denied_by="policies.yaml:3:1"),
        stage("weak", requirements=frozenset({"vision"})),
    )
    assert first_open_target(rules, targets) == taken
    play = Play(rules)
    play.succeed()
    assert play.last("transition.taken")["target"] == taken


def test_all_that_is_missing_is_found_at_once() -> None:
    plan = stage(requirements=frozenset({"vision", "audio", "coding"}), denied_by="policies.yaml:3:1")
    assert [finding["code"] for finding in routing_findings(plan)] == [
        "routing.missing_capability",
        "routing.missing_capability",
        "routing.provider_denied",
    ]


# ------------------------------------------------------------------------------------------------ the bounds


@pytest.mark.req("B-05")
def test_a_session_that_goes_round_for_ever_ends_at_the_limit_of_visits() -> None:
    play = Play(definition(stage("work", ("true", "check")), stage("check", ("true", "work")), max_visits=4))
    for _ in range(4):
        play.succeed()
    assert (play.state.status, play.state.visits_of) == ("failed", {"work": 2, "check": 2})
    assert play.last("session.failed")["code"] == "limits.max_visits"
    indices = [fact.payload["visit_index"] for fact in play.facts if fact.type == "stage.entered"]
    assert indices == [0, 0, 1, 1]


# --------------------------------------------------------------------------------------------------- the gate


def at_gate(**fields: Any) -> Play:
    rules = (('artifact.status == "success"', "completed"), ('artifact.status == "rejected" && retries > 1', "next"))
    play = Play(definition(stage("work", *rules, gate=True, **fields), stage("next"))).to_artifact()
    play.judged()
    play.judged()
    return play


def answer(play: Play, decision: str) -> list[str]:
    asked = play.last("approval.requested")
    body = {"approval_id": asked["approval_id"], "digest": asked["digest"], "decision": decision}
    return play.receive("answer", **body, by="somebody", kind="person", say="too short")


def test_a_gated_artifact_waits_for_an_answer_and_counts_after_it() -> None:
    play = at_gate()
    asked = play.last("approval.requested")
    assert (asked["subject"], asked["args"], levels(play, "requested")[-1]) == (
        "artifact",
        {"body_ref": REF},
        "semantic",
    )
    assert "artifact.accepted" not in play.types()
    facts = answer(play, "approve")
    assert facts[:2] == ["command.received", "approval.granted"]
    assert play.state.unused == {}  # no call will ever use it
    assert facts[-5:] == [
        "validation.passed",
        "artifact.accepted",
        "transition.taken",
        "stage.left",
        "session.completed",
    ]


@pytest.mark.req("B-19")
def test_validators_judge_an_approved_artifact_and_never_one_that_was_refused() -> None:
    for decision in ("approve", "deny"):
        play = judged_until("semantic", gate=True)
        play.judged()
        assert levels(play, "requested")[-1] == "semantic"  # the question comes first
        answer(play, decision)
        asked = [request.payload["level"] for request in play.opened("validation")]
        assert asked == (["approval"] if decision == "approve" else [])
        assert levels(play, "failed") == ([] if decision == "approve" else ["approval"])
        assert "artifact.accepted" not in play.types()
    play = judged_until("approval", gate=False)
    assert "approval.requested" not in play.types()


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "routing": ({"requirements": frozenset({"vision"})}, "routing.missing_capability"),
    "approval": ({"gate": True}, "approval.not_asked"),
}


@pytest.mark.inv("I-24")
@pytest.mark.parametrize("level", CHANGED)
def test_what_validators_let_pass_is_refused_when_meanwhile_the_configuration_forbids_it(level: str) -> None:
    change, code = CHANGED[level]
    play = judged_until(level)
    play.machine.definition = definition(stage("work", **change), validators=EVERYWHERE)
    warning = {**FINDING, "severity": "warning"}
    assert play.judged(findings=[warning])[0] == "validation.failed"
    check_payload("validation.failed", play.last("validation.failed"))
    assert [finding["code"] for finding in play.last("validation.failed")["findings"]] == ["x", code]
    assert play.state.status == "failed"


def test_a_refused_artifact_fails_its_level_with_what_was_said_and_is_asked_about_anew_after_another_attempt() -> None:
    play = at_gate(retry=retry("corrective", 2, inject=True))
    first = play.last("approval.requested")
    assert answer(play, "deny")[-3:] == ["artifact.rejected", "retry.scheduled", "context.requested"]
    assert (play.last("artifact.rejected")["level"], play.last("retry.scheduled")["reason"]) == (
        "approval",
        "too short",
    )
    play.to_artifact()
    play.judged()
    play.judged()
    second = play.last("approval.requested")
    assert first["approval_id"] != second["approval_id"]
    assert first["digest"] != second["digest"]


@pytest.mark.parametrize("policy", [retry("corrective", 3), retry("fail_safe"), retry("retry", 1)])
def test_an_artifact_that_nobody_may_be_asked_about_ends_the_session_whatever_its_stage_would_do(policy: Any) -> None:
    play = at_gate(retry=policy)
    approval_id = play.last("approval.requested")["approval_id"]
    facts = play.send(Unanswered(approval_id, deny=True))
    assert facts[0] == "approval.denied"
    assert facts[-2:] == ["artifact.rejected", "session.failed"]
    assert play.last("session.failed")["code"] == "approval.denied_unattended"


# ----------------------------------------------------------------------------------------------- steering


def test_an_instruction_stays_with_its_visit_and_none_is_lost_between_two_contexts() -> None:
    plan = stage("work", ('artifact.status == "success"', "check"), retry=retry("retry", 4))
    play = Play(definition(plan, stage("check")))
    held: list[list[str]] = []

    def steer(text: str) -> None:
        play.receive("steer", text=text, by="somebody")

    def context() -> None:
        assert play.state.visit is not None
        held.append(list(play.state.visit.steering))
        play.context()

    steer("after the first context was asked for")
    context()
    steer("while the role runs")
    play.role_fails()
    context()
    play.role_fails()
    context()
    play.role()
    play.judged()
    play.judged()
    context()
    both = ["after the first context was asked for", "while the role runs"]
    assert held == [[], both, both, []]
    assert play.state.steering == []
