"""A visit that is over and the rules of its stage in, where the session goes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from harness_core.kernel.definition import RESERVED_TARGETS
from harness_core.settings.stages import RESERVED, Stage
from harness_core.settings.transitions import rules_of
from harness_hookspecs.errors import RuleError
from harness_hookspecs.events import check_payload
from harness_hookspecs.rules import Program
from tests.playing import CEL, Play, definition, retry, stage


def ended(*rules: Any, status: str = "success", **fields: Any) -> Play:
    """A visit whose artifact has that status, and whatever follows from it."""
    play = Play(definition(stage("work", *rules, **fields), stage("one"), stage("two")))
    play.succeed(status=status)
    for fact in play.facts:
        check_payload(fact.type, fact.payload)
    return play


@pytest.mark.req("B-117")
def test_of_the_rules_that_hold_the_first_is_taken() -> None:
    play = ended(("retries > 0", "two"), ('artifact.status == "success"', "one"), ("true", "two"))
    taken = play.last("transition.taken")
    assert (taken["source"], taken["target"], taken["rule_index"]) == ("work", "one", 1)
    assert (taken["rule"], taken["values"]["artifact"]["status"]) == ('artifact.status == "success"', "success")
    assert play.state.visit is not None
    assert play.state.visit.stage == "one"


@pytest.mark.req("B-117")
def test_when_no_rule_fits_the_session_ends_and_says_what_was_there() -> None:
    play = ended(('artifact.status == "partial"', "one"))
    ending = play.last("session.failed")
    assert (ending["code"], "transition.taken" in play.types()) == ("transition.none", False)
    assert "'success'" in ending["message"]


WRONG = {
    "a misspelt field": ('artifact.statuz == "success"', "statuz"),
    "another type": ("artifact.status > 3", "artifact.status"),
    "no condition": ("retries", "retries"),
    "a division by zero": ("1 / retries == 1", "retries"),
}


@pytest.mark.req("B-118")
@pytest.mark.parametrize(("rule", "named"), WRONG.values(), ids=WRONG)
def test_a_rule_that_cannot_be_evaluated_ends_the_session_and_is_never_false(rule: str, named: str) -> None:
    play = ended((rule, "one"), ("true", "two"))
    ending = play.last("session.failed")
    assert ending["code"] == "rule.error"
    assert "stages.yaml:work:0" in ending["message"]
    assert named in ending["message"]
    assert "transition.taken" not in play.types()


@attrs.frozen
class BrokenRules:
    """An engine that breaks its promise."""

    answer: Any
    version: str = "broken/1"

    def compile(self, text: str, *, roots: Any) -> Program:
        return CEL.compile(text, roots=roots)

    def condition(self, program: Program, values: Mapping[str, Any]) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: bool = self.answer
        return answer


@pytest.mark.req("B-118")
@pytest.mark.parametrize("answer", [RuleError("no"), ValueError("boom"), "yes", 1, None])
def test_an_engine_that_raises_or_gives_no_bool_ends_the_session(answer: Any) -> None:
    play = Play(definition(stage("work", ("true", "completed")), rules=BrokenRules(answer)))
    play.succeed()
    assert play.last("session.failed")["code"] == "rule.error"


@pytest.mark.req("B-116")
@pytest.mark.parametrize("status", ["success", "failure", "partial"])
def test_rules_read_the_status_of_the_artifact_and_that_no_attempt_failed(status: str) -> None:
    rules = (('artifact.status == "success"', "one"), ("retries >= 3", "failed"), ("retries == 0", "two"))
    play = ended(*rules, status=status)
    assert play.last("transition.taken")["target"] == ("one" if status == "success" else "two")
    assert play.last("artifact.accepted")["status"] == status


def test_rules_read_the_body_of_the_artifact_and_the_log_does_not_repeat_it() -> None:
    play = Play(definition(stage("work", ('artifact.body.next == "one"', "one"), ("true", "failed")), stage("one")))
    play.succeed(body={"next": "one", "text": "long"})
    taken = play.last("transition.taken")
    assert (taken["target"], taken["values"]) == ("one", {"artifact": {"status": "success", "type": "text"}})


def test_rules_read_the_stage_and_how_often_it_was_visited() -> None:
    play = Play(definition(stage("work", ('stage == "work" && visit.index < 1', "work"), ("true", "completed"))))
    play.succeed()
    assert play.succeed()[-1] == "session.completed"
    assert play.last("transition.taken")["values"] == {}


# ------------------------------------------------------------------------------------------------- targets

ENDS = {
    "completed": ("completed", "session.completed"),
    "end": ("completed", "session.completed"),
    "failed": ("failed", "session.failed"),
    "cancelled": ("cancelled", "session.cancelled"),
}


@pytest.mark.parametrize(("target", "end"), ENDS.items(), ids=ENDS)
def test_a_reserved_target_ends_the_session(target: str, end: tuple[str, str]) -> None:
    play = ended(("true", target))
    assert (play.state.status, play.types()[-1]) == end
    assert play.types()[-3:-1] == ["transition.taken", "stage.left"]


def test_the_kernel_and_the_settings_know_the_same_reserved_targets() -> None:
    assert set(RESERVED_TARGETS) == set(RESERVED) == {*ENDS, "retry"}


def test_a_session_that_is_completed_names_its_artifacts() -> None:
    play = Play(definition(stage("work", ("true", "check")), stage("check", ("true", "completed"))))
    play.succeed()
    play.succeed()
    refs = play.last("session.completed")["artifact_refs"]
    assert refs == [artifact["ref"] for artifact in play.state.artifacts]
    assert len(refs) == 2


@pytest.mark.req("B-49")
def test_the_short_forms_lead_where_the_rules_they_stand_for_lead() -> None:
    settings = Stage.model_validate({"role": "x", "on_success": ["one"], "on_failure": ["retry"]})
    rules = [(rule.when, rule.goto) for rule in rules_of(settings)]
    assert ended(*rules).last("transition.taken")["target"] == "one"
    again = ended(*rules, status="partial", retry=retry("retry", 2))
    assert again.types()[-3:] == ["transition.taken", "retry.scheduled", "context.requested"]
