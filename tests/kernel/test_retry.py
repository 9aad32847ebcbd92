"""A failed attempt in; another one, the next stage or the end out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.definition import RetryPolicy
from harness_core.kernel.retry import DETERMINISTIC_CODES, retry_decision
from harness_core.kernel.state import Failure, Visit
from harness_hookspecs.events import check_payload
from tests.playing import Play, definition, retry, stage

FINDING = {"code": "x", "severity": "error", "path": "/text", "message": "it is too long"}
ON_SUCCESS = ('artifact.status == "success"', "completed")


def failing(policy: RetryPolicy, *rules: Any, **fields: Any) -> Play:
    return Play(definition(stage("work", *(rules or (ON_SUCCESS,)), retry=policy, **fields), stage("next")))


def fail(play: Play, code: str = "provider.unavailable") -> list[str]:
    """One attempt that fails in its role; returns what follows from it."""
    play.context()
    facts = play.role_fails(code, "it broke")
    for fact in play.facts:
        check_payload(fact.type, fact.payload)
    return facts[1:]


# --------------------------------------------------------------------------------------------- strategies


@pytest.mark.req("B-128")
def test_retry_tries_again_until_its_attempts_are_used_up() -> None:
    play = failing(retry("retry", 3))
    assert [fail(play) for _ in range(2)] == [["retry.scheduled", "context.requested"]] * 2
    assert fail(play) == ["session.failed"]
    assert [fact.payload["attempt"] for fact in play.facts if fact.type == "context.requested"] == [1, 2, 3]


@pytest.mark.req("B-128")
def test_fail_safe_skips_the_stage_and_goes_on() -> None:
    play = failing(retry("fail_safe", 3), ('artifact.status == "skipped"', "next"))
    assert fail(play)[:4] == ["stage.skipped", "transition.taken", "stage.left", "stage.entered"]
    assert play.last("stage.left") == {
        "stage": "work",
        "visit_id": play.last("stage.left")["visit_id"],
        "status": "skipped",
        "attempts": 1,
    }
    assert play.state.visit is not None
    assert play.state.visit.stage == "next"


@pytest.mark.req("B-128")
def test_fail_fast_ends_the_session_whatever_its_rules_say() -> None:
    play = failing(retry("fail_fast", 3), ("true", "next"))
    assert fail(play) == ["session.failed"]
    assert play.last("session.failed")["code"] == "provider.unavailable"


@pytest.mark.req("B-130")
@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (retry("corrective", 2), True),
        (retry("retry", 2, inject=True), True),
        (retry("retry", 2), False),
    ],
)
def test_corrective_is_a_retry_that_tells_the_reason(policy: RetryPolicy, told: bool) -> None:
    play = failing(policy)
    play.to_artifact()
    play.judged("failed", findings=[FINDING])
    scheduled = play.last("retry.scheduled")
    assert (scheduled["inject"], scheduled["reason"]) == (told, "it is too long")
    assert play.state.visit is not None
    assert play.state.visit.feedback == ("it is too long" if told else None)


# -------------------------------------------------------------------------------------------- temperatures


@pytest.mark.req("B-129")
@pytest.mark.parametrize(
    ("configured", "used"),
    [(0.8, [0.4, 0.2, 0.1]), (None, [0.4, 0.2, 0.1]), (0.3, [0.15, 0.075, 0.0375]), (0.0, [0.0, 0.0, 0.0])],
)
def test_each_further_attempt_samples_at_half_the_temperature_and_its_request_says_so(
    configured: float | None, used: list[float]
) -> None:
    params = {} if configured is None else {"temperature": configured}
    play = failing(retry("corrective", 4, backoff=True), params=params)
    for _ in range(4):
        fail(play)
    requested = [fact.payload.get("params") for fact in play.facts if fact.type == "role.requested"]
    assert requested == [None, *({"temperature": value} for value in used)]
    assert [f.payload["temperature"] for f in play.facts if f.type == "retry.scheduled"] == used


def test_without_backoff_no_attempt_changes_the_temperature() -> None:
    play = failing(retry("corrective", 2), params={"temperature": 0.8})
    fail(play)
    fail(play)
    assert all("params" not in fact.payload for fact in play.facts if fact.type == "role.requested")


# ------------------------------------------------------------------------------------------ what gives up


def visit(attempt: int, code: str) -> Visit:
    found = Visit("work", "stg", 0, "worker", "agent", "small", 3, attempt=attempt)
    found.failure = Failure(code, "it broke")
    return found


@pytest.mark.parametrize("code", sorted(DETERMINISTIC_CODES))
def test_a_failure_that_another_attempt_would_only_repeat_is_not_repeated(code: str) -> None:
    assert retry_decision(retry("corrective", 3), visit(1, code), None).kind == "give_up"


@pytest.mark.parametrize("code", ["workflow.invalid_plan", "workflow.no_plan", "workflow.not_available"])
def test_a_plan_that_cannot_be_run_is_not_tried_again(code: str) -> None:
    assert retry_decision(retry("retry", 3), visit(1, code), None).kind == "give_up"


@pytest.mark.parametrize("code", ["plugin.schema_invalid", "plugin.schema_too_complex", "plugin.schema_unresolvable"])
def test_a_broken_schema_is_not_tried_again(code: str) -> None:
    assert code in DETERMINISTIC_CODES


@pytest.mark.parametrize(("attempt", "kind"), [(1, "retry"), (2, "retry"), (3, "give_up"), (4, "give_up")])
def test_the_policy_gives_up_at_its_last_attempt(attempt: int, kind: str) -> None:
    decision = retry_decision(retry("retry", 3), visit(attempt, "provider.timeout"), 0.8)
    assert (decision.kind, decision.attempt) == (kind, attempt + 1 if kind == "retry" else 0)


@pytest.mark.req("B-132")
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("provider.unavailable", "provider.unavailable"),
        ("role.output_invalid", "artifact.invalid_after_retries"),
        ("validation", "artifact.invalid_after_retries"),
    ],
)
@pytest.mark.parametrize("rules", [(ON_SUCCESS,), (ON_SUCCESS, ('artifact.status != "success"', "failed"))])
def test_running_out_of_attempts_ends_the_session_with_the_reason_of_the_last_one(
    rules: Any, failure: str, code: str
) -> None:
    play = failing(retry("retry", 2), *rules)
    for _ in range(2):
        if failure == "validation":
            play.to_artifact()
            play.judged("failed", findings=[FINDING])
        else:
            fail(play, failure)
    ending = play.last("session.failed")
    assert (play.state.status, ending["code"], ending["stage"]) == ("failed", code, "work")
    assert "attempt 2 of 2" in ending["message"]


def test_a_context_that_cannot_be_made_is_a_failed_attempt_too() -> None:
    from harness_core.kernel.commands import EffectFailed

    play = failing(retry("corrective", 2))
    error = {"name": "HarnessError", "message": "no such range", "code": "context.source"}
    request = play.open_one("context")
    assert play.send(EffectFailed(request.effect_id, error))[1:] == ["retry.scheduled", "context.requested"]
    play.send(EffectFailed(play.open_one("context").effect_id, error))
    assert play.last("session.failed")["code"] == "context.source"


@pytest.mark.parametrize("policy", [retry("retry", 1), retry("fail_fast"), retry("fail_safe"), retry("corrective", 2)])
def test_an_attempt_that_an_accepted_change_ended_is_begun_anew_and_is_nobody_s_fault(policy: RetryPolicy) -> None:
    play = failing(policy, ON_SUCCESS, ("retries == 1", "next"))
    assert fail(play, "config.migrated") == ["retry.scheduled", "context.requested"]
    assert play.state.visit is not None
    assert (play.state.visit.attempt, play.state.visit.retries, play.state.visit.feedback) == (2, 0, None)


# -------------------------------------------------------------------------------------- `retry` as a target


def partial(play: Play) -> list[str]:
    play.to_artifact()
    play.judged(status="partial")
    return play.judged()[-3:]


def test_a_rule_may_ask_for_another_attempt_and_it_counts_like_any_other() -> None:
    rules = (ON_SUCCESS, ('artifact.status == "partial"', "retry"))
    play = failing(retry("corrective", 3, backoff=True), *rules)
    assert [partial(play) for _ in range(2)] == [["transition.taken", "retry.scheduled", "context.requested"]] * 2
    assert play.last("retry.scheduled")["temperature"] == 0.2
    assert partial(play)[-1] == "session.failed"
    assert play.last("session.failed")["code"] == "retry.exhausted"
    assert play.types().count("stage.entered") == 1


def test_the_policy_is_consulted_before_the_rules_and_a_rule_cannot_add_attempts() -> None:
    play = failing(retry("retry", 2), ON_SUCCESS, ('artifact.status != "success"', "retry"))
    assert fail(play) == ["retry.scheduled", "context.requested"]
    assert fail(play) == ["session.failed"]
    assert play.last("session.failed")["code"] == "provider.unavailable"


@pytest.mark.req("B-131")
@pytest.mark.parametrize(("rule", "fires"), [("retries >= 3", True), ("retries == 3", True), ("retries > 3", False)])
def test_retries_counts_every_failed_attempt_of_the_visit(rule: str, fires: bool) -> None:
    play = failing(retry("retry", 3), ON_SUCCESS, (rule, "next"))
    for _ in range(3):
        fail(play)
    assert ("transition.taken" in play.types()) == fires
    if fires:
        assert play.last("transition.taken")["values"] == {"retries": 3}
