"""Stages as configured: which runs, what its result must pass, how a failed attempt is met, and where it leads."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.session_text import exit_of_session
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.kit.prompt import PromptHasher
from tests.reference import calls, one_stage, says

BREAKS = {"error": {"code": "provider.unavailable"}}


def flow(**stages: Mapping[str, Any]) -> dict[str, Any]:
    """A stages.yaml; the first stage is where it begins."""
    usual = {"role": "worker", "task": "Do it."}
    return {"initial": next(iter(stages)), "stages": {name: {**usual, **stage} for name, stage in stages.items()}}


def path(session: Any) -> list[str]:
    """The stages a session went through."""
    return [one["stage"] for one in session.payloads("stage.entered")]


# ----------------------------------------------------------------------------------------------------- the graph


@pytest.mark.req("B-115")
def test_any_graph_is_yaml_alone(play: Any) -> None:
    names = [f"s{secrets.token_hex(4)}" for _ in range(4)]  # no name means anything
    first, second, third, fourth = names
    graph: dict[str, Any] = {
        first: {"on_success": third},
        second: {"transitions": [{"when": "visit.index >= 1", "goto": fourth}, {"when": "true", "goto": first}]},
        third: {"on_success": second},
        fourth: {"on_success": "completed"},
    }
    session = play(says("done", when={"turn": 1}), stages=flow(**graph))
    assert session.run()["status"] == "completed"
    assert path(session) == [first, third, second, first, third, second, fourth]


@pytest.mark.req("B-51")
def test_of_several_targets_the_first_whose_routing_check_passes_is_taken(play: Any) -> None:
    stages = flow(
        work={"on_success": ["clever", "plain"]},
        clever={"requirements": ["telepathy"], "on_success": "completed"},
        plain={"on_success": "completed"},
    )
    session = play(says("done", when={"turn": 1}), stages=stages)
    assert session.run()["status"] == "completed"
    assert path(session) == ["work", "plain"]


@pytest.mark.req("B-64")
def test_no_rule_leads_to_a_stage_that_is_not_declared(play: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        play(says("done"), stages=one_stage(on_success="elsewhere"))
    assert "elsewhere" in caught.value.message


@pytest.mark.req("B-65")
def test_a_stage_whose_model_lacks_something_is_refused_before_any_inference(play: Any) -> None:
    session = play(says("done"), stages=one_stage(requirements=["telepathy"]))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "routing.missing_capability")
    assert "telepathy" in document["failure"]["message"]
    assert session.payloads("harness.model.called") == []


@pytest.mark.req("B-66")
def test_a_provider_that_policy_forbids_is_refused_before_any_inference(play: Any) -> None:
    session = play(says("done"), policies={"providers": {"deny": ["scripted"]}})
    document = session.run()
    assert (document["failure"]["code"], exit_of_session(document)) == ("routing.provider_denied", 11)
    assert "policies.yaml" in document["failure"]["message"]
    assert session.payloads("harness.model.called") == []


@pytest.mark.req("B-116", "B-63")
def test_rules_read_the_status_of_any_artifact_and_the_failed_attempts(play: Any) -> None:
    rules = [{"when": 'artifact.status == "success"', "goto": "completed"}, {"when": "retries >= 2", "goto": "last"}]
    stages = flow(work={"transitions": rules, "retry": {"max_attempts": 2}}, last={"on_success": "completed"})
    broken = play({**BREAKS, "when": {"stage": "work"}}, says("done", when={"stage": "last"}), stages=stages)
    assert broken.run()["status"] == "completed"
    assert path(broken) == ["work", "last"]
    [taken, _] = broken.payloads("transition.taken")
    assert taken["values"] == {"retries": 2}
    fine = play(says("done"), stages=stages)
    fine.run()
    assert path(fine) == ["work"]


@pytest.mark.req("B-117")
def test_the_first_rule_that_holds_wins_and_none_is_an_error(play: Any) -> None:
    rules = [{"when": "true", "goto": "completed"}, {"when": "true", "goto": "failed"}]
    assert play(says("done"), stages=flow(work={"transitions": rules})).run()["status"] == "completed"
    session = play(says("done"), stages=flow(work={"transitions": [{"when": "retries > 7", "goto": "completed"}]}))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "transition.none")
    assert "transition.taken" not in session.types()


@pytest.mark.req("B-118")
def test_a_rule_that_cannot_be_evaluated_is_an_error_and_never_false(play: Any) -> None:
    rules = [{"when": 'artifact.statuz == "success"', "goto": "completed"}, {"when": "true", "goto": "completed"}]
    session = play(says("done"), stages=flow(work={"transitions": rules}))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "rule.error")
    assert "statuz" in document["failure"]["message"]


@pytest.mark.req("B-05")
def test_a_circle_of_stages_ends_at_the_limit_of_visits(play: Any) -> None:
    stages = flow(ping={"on_success": "pong"}, pong={"on_success": "ping"})
    session = play(says("done", when={"turn": 1}), stages=stages, harness={"run": {"max_visits": 5}})
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "limits.max_visits")
    assert "run.max_visits" in document["failure"]["hint"]
    assert path(session) == ["ping", "pong", "ping", "pong", "ping"]


@pytest.mark.req("B-05")
def test_a_role_call_ends_at_the_limit_of_turns(play: Any) -> None:
    session = play(*[calls(("pure", {"note": str(turn)})) for turn in range(9)], stages=one_stage(max_turns=3))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "role.turns_exhausted")
    assert "max_turns of the stage where it sets one, else run.max_turns" in document["failure"]["hint"]
    assert len(session.payloads("harness.model.called")) == 3


def test_a_tool_and_an_attempt_end_at_their_time(play: Any) -> None:
    slow = calls(("slow", {"seconds": 30, "note": "slow"}))
    session = play(slow, says("without"), tools={"tools": {"effects_slow": {"timeout_sec": 0.2}}})
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "tool.timeout"
    session = play(slow, says("too late"), stages=one_stage(timeout_sec=0.3))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "role.timeout")
    assert session.host.replay("@last", "skip-inference")["equal"]


# -------------------------------------------------------------------------------------------------- the four levels


def levels(session: Any) -> list[tuple[str, str]]:
    """Level and verdict of each validation, in order."""
    found = [event for event in session.events() if event.type.startswith("validation.")]
    named = [(json.loads(event.payload)["level"], event.type.removeprefix("validation.")) for event in found]
    return [(level, verdict) for level, verdict in named if verdict != "requested"]


@pytest.mark.req("B-19")
def test_an_artifact_passes_four_levels_in_order(play: Any) -> None:
    session = play(says("done"))
    session.run()
    assert levels(session) == [(level, "passed") for level in ("routing", "payload", "semantic", "approval")]


INVENTED = {"summary": "s", "modified_files": ["never.py"], "risks": [], "commands_executed": []}
INVENTED["next_recommendation"] = ""


@pytest.mark.req("B-19", "B-20")
@pytest.mark.parametrize(
    ("answer", "stage", "trail"),
    [
        ({"text": "prose"}, {"max_turns": 1}, ["routing passed"]),
        ({"json": INVENTED}, {"artifact": "implementation"}, ["routing passed", "payload passed", "semantic failed"]),
    ],
    ids=["no artifact", "an invented file"],
)
def test_what_does_not_pass_stops_there_and_moves_nothing(
    play: Any, answer: dict[str, Any], stage: dict[str, Any], trail: list[str]
) -> None:
    session = play(answer, stages=one_stage(allowed_tools=[], **stage))
    document = session.run()
    assert document["status"] == "failed"
    assert [" ".join(one) for one in levels(session)] == trail
    assert {"artifact.accepted", "transition.taken", "stage.left"}.isdisjoint(session.types())
    assert document["artifacts"] == []


@pytest.mark.req("B-60")
def test_prose_is_no_artifact(play: Any) -> None:
    session = play({"text": "I have done it."}, stages=one_stage(max_turns=1))
    document = session.run()
    assert (document["status"], exit_of_session(document)) == ("failed", 14)
    assert list(session.host.artifacts("@last")) == []


# ----------------------------------------------------------------------------------------------------- attempts


@pytest.mark.req("B-128")
@pytest.mark.parametrize(
    ("strategy", "status", "attempts", "went"),
    [
        ("retry", "completed", 3, ["work", "after"]),
        ("corrective", "completed", 3, ["work", "after"]),
        ("fail_safe", "completed", 1, ["work", "after"]),
        ("fail_fast", "failed", 1, ["work"]),
    ],
)
def test_a_failed_attempt_is_met_as_the_strategy_says(
    play: Any, strategy: str, status: str, attempts: int, went: list[str]
) -> None:
    rules = [{"when": 'artifact.status == "success" || artifact.status == "skipped"', "goto": "after"}]
    stages = flow(
        work={"retry": {"strategy": strategy, "max_attempts": 3}, "transitions": rules},
        after={"on_success": "completed"},
    )
    broken = [{**BREAKS, "when": {"stage": "work", "attempt": attempt}} for attempt in (1, 2)]
    session = play(*broken, says("done", when={"turn": 1}), stages=stages)
    assert session.run()["status"] == status
    assert (len(session.payloads("retry.scheduled")) + 1, path(session)) == (attempts, went)
    assert len(session.payloads("stage.skipped")) == (strategy == "fail_safe")


@pytest.mark.req("B-129", "B-130")
def test_the_next_attempt_is_told_the_reason_and_is_cooler(play: Any) -> None:
    retry = {"strategy": "corrective", "max_attempts": 2, "temperature_backoff": True}
    told = says("done", when={"attempt": 2, "contains": "The script says provider.unavailable"})
    session = play({**BREAKS, "when": {"attempt": 1}}, told, stages=one_stage(retry=retry))
    assert session.run()["status"] == "completed"
    first, second = session.payloads("harness.model.called")
    assert "temperature" not in first["request"]["params"]
    assert second["request"]["params"]["temperature"] == 0.4


@pytest.mark.req("B-132")
@pytest.mark.parametrize("failure", ["failed", None])
def test_attempts_that_are_used_up_end_the_session_with_their_reason(play: Any, failure: str | None) -> None:
    more = {"on_failure": failure} if failure else {}
    session = play(BREAKS, stages=one_stage(retry={"max_attempts": 2}, **more))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "provider.unavailable")
    assert exit_of_session(document) == 13
    assert [one["attempt"] for one in session.payloads("retry.scheduled")] == [2]


# ---------------------------------------------------------------------------------- what comes from other people

REVIEW = """
from harness_hookspecs import hooks
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

SCHEMA = {"type": "object", "properties": {"stars": {"type": "integer", "minimum": 1, "maximum": 5}},
          "required": ["stars"], "additionalProperties": False}

class Review:
    name = "acme.Review"
    validators = ()

    def schema(self):
        return SCHEMA

    def parse(self, output):
        if not isinstance(output, dict) or set(output) != {"stars"}:
            raise ValidationFailed("no review", code="payload.invalid", findings=[])
        return ParsedArtifact(output, "success" if output["stars"] > 2 else "failure")

@implements(hooks.harness_provide_artifacts)
def harness_provide_artifacts():
    return [Offer(kind="artifact", name="acme.Review", build=lambda settings, host: Review())]
"""


@pytest.mark.req("B-62", "B-63")
@pytest.mark.parametrize(("stars", "went"), [(5, ["work"]), (1, ["work", "again"])])
def test_an_artifact_type_of_another_distribution_works_and_has_a_status(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stars: int, went: list[str]
) -> None:
    provides = [{"kind": "artifact", "name": "acme.Review"}]
    make_distribution(tmp_path / "site", "acme-review", provides=provides, code=REVIEW)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    rules = [
        {"when": 'artifact.status == "success"', "goto": "completed"},
        {"when": 'artifact.status == "failure"', "goto": "again"},
    ]
    stages = flow(work={"artifact": "acme.Review", "transitions": rules}, again={"on_success": "completed"})
    session = play({"json": {"stars": stars}, "when": {"stage": "work"}}, says("done"), stages=stages)
    assert session.run()["status"] == "completed"
    assert path(session) == went
    assert json.loads(session.host.artifact(session.host.artifacts("@last")[0]["ref"])) == {"stars": stars}


PROVIDER = """
from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import OracleResponse, TextPart, Usage
from harness_hookspecs.offer import Offer

class Nosy:
    def __init__(self, host):
        self.host = host

    def complete(self, request, call):
        seen = [name for thing in (self.host, call, request) for name in dir(thing) if not name.startswith("_")]
        text = '{"text": "%s"}' % " ".join(seen)
        return OracleResponse(content=(TextPart(text=text),), finish_reason="stop", usage=Usage.unknown())

    def close(self):
        pass

@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="nosy", build=lambda settings, host: Nosy(host))]
"""


@pytest.mark.req("B-01")
def test_models_are_interchangeable_and_reach_nothing_of_the_kernel(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_distribution(
        tmp_path / "site", "acme-nosy", provides=[{"kind": "provider", "name": "nosy"}], code=PROVIDER
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    trails, session = [], None
    for entry in ({"provider": "scripted", "script": "script.yaml"}, {"provider": "nosy"}):
        models = {"models": {"one": {**entry, "context_size": 32768}}}
        session = play(says("done"), models=models, stages=one_stage(allowed_tools=[]))
        assert session.run()["status"] == "completed"
        trails.append(session.types())
    assert session is not None and trails[0] == trails[1]
    seen = json.loads(session.host.artifact(session.host.artifacts("@last")[0]["ref"]))["text"].split()
    assert {"store", "loop", "submit", "append", "recorder", "dispatcher", "state", "session", "fact"}.isdisjoint(seen)


@pytest.mark.req("B-138")
def test_what_a_plugin_says_of_a_session_does_not_move_it(play: Any) -> None:
    session = play(says("unused"), harness={"bind": {"worker.ai-generate": "impostor"}})
    assert session.run()["status"] == "completed"
    said = [one["text"] for one in session.payloads("role.note")]
    assert "session.cancelled" in said
    moves = [kind for kind in session.types() if kind.startswith("session.")]
    assert moves == ["session.created", "session.started", "session.completed"]


@pytest.mark.req("A-65", "B-151")
def test_every_byte_a_model_was_shown_is_in_the_log_under_its_hash(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_provider_scripted.provider import ScriptedProvider

    shown: list[Any] = []
    complete = ScriptedProvider.complete

    def seen(self: Any, request: Any, call: Any) -> Any:
        shown.append(request)
        return complete(self, request, call)

    monkeypatch.setattr(ScriptedProvider, "complete", seen)
    session = play(calls(("pure", {"note": "a"})), says("done"))
    session.run()
    called = session.payloads("harness.model.called")
    assert len(called) == len(shown) == 2
    for event, request in zip(called, shown, strict=True):
        asked = event["request"]
        logged = [json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in asked["messages"]]
        assert logged == [json.loads(message.to_json_bytes()) for message in request.messages]
        assert [tool["name"] for tool in asked["tools"]] == [tool.name for tool in request.tools]
        hashes = [tool["schemaHash"] for tool in asked["tools"]]
        schemas = [json.loads(session.host.artifact(f"artifact://sha256-{value}")) for value in hashes]
        assert [schema["input"] for schema in schemas] == [tool.input_schema for tool in request.tools]
        answer = json.loads(session.host.artifact(f"artifact://sha256-{asked['params']['responseSchemaHash']}"))
        assert answer == request.response_schema
        hasher = PromptHasher(
            provider=asked["model"]["provider"], model_id=asked["model"]["modelId"], params=asked["params"],
            tools={tool["name"]: tool["schemaHash"] for tool in asked["tools"]},
        )  # fmt: skip
        for message in logged:
            hasher.add(message)
        assert hasher.hexdigest() == event["promptHash"]
        assert set(asked["tools"][0]) == {"name", "schemaHash", "tier"}  # references, no code


@pytest.mark.inv("I-28")
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_provider_is_asked_once_an_attempt_and_the_stage_alone_asks_again(
    play: Any, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    from harness_provider_scripted.provider import ScriptedProvider

    asked: list[int] = []
    complete = ScriptedProvider.complete

    def counted(self: Any, request: Any, call: Any) -> Any:
        asked.append(request.routing.attempt)
        return complete(self, request, call)

    monkeypatch.setattr(ScriptedProvider, "complete", counted)
    session = play(BREAKS, stages=one_stage(retry={"max_attempts": attempts}))
    assert session.run()["status"] == "failed"
    assert asked == [*range(1, attempts + 1)]
    for kind, count in (("harness.model.called", attempts), ("harness.model.failed", attempts)):
        assert session.types().count(kind) == count  # each attempt is an event
    assert session.types().count("retry.scheduled") == attempts - 1


@pytest.mark.req("B-121")
@pytest.mark.parametrize("says_so", [True, False])
def test_the_time_a_call_waited_for_its_model_is_told_apart_where_the_provider_says_it(
    play: Any, monkeypatch: pytest.MonkeyPatch, says_so: bool
) -> None:
    from harness_provider_scripted.provider import ScriptedProvider

    complete = ScriptedProvider.complete

    def queued(self: Any, request: Any, call: Any) -> Any:
        self._ports.clock.sleep(0.05, call.cancel)  # somebody else's turn
        return complete(self, request, call if says_so else call._replace(on_begin=lambda: None))

    monkeypatch.setattr(ScriptedProvider, "complete", queued)
    session = play(says("done", delay_ms=50))
    session.run()
    [timing] = [one["timing"] for one in session.payloads("harness.model.responded")]
    [call] = session.host.report("@last")["model_calls"]
    assert call["queue_ms"] == timing.get("queueMs")
    if says_so:
        assert 50 <= call["queue_ms"] <= call["first_token_ms"] - 50 <= call["total_ms"] - 50
    else:
        assert call["queue_ms"] is None  # not known is not nothing


@pytest.mark.req("B-101")
def test_what_compression_keeps_free_is_not_there_for_context(play: Any) -> None:
    room = []
    for reserve_tokens in (100, 800):
        session = play(says("done"), stages=flow(work={}), compression={"reserve_tokens": reserve_tokens})
        session.run()
        room += [one["budget_tokens"] for one in session.payloads("context.assembled")]
    assert room[0] - room[1] == 700


@pytest.mark.parametrize(
    ("persona", "stage", "tokens"),
    [({"max_tokens": 77}, {}, 77), ({"max_tokens": 77}, {"max_tokens": 88}, 88), ({"max_bytes": 80}, {}, 1024)],
)
def test_a_reply_is_as_long_as_the_persona_says_unless_the_stage_says_otherwise(
    play: Any, persona: dict[str, int], stage: dict[str, int], tokens: int
) -> None:
    graph = flow(work={"output": stage, "on_success": "completed"})
    stages = {**graph, "roles": {"worker": {"extends": "one"}, "one": {"output": persona}}}
    session = play(says("done"), stages=stages)
    session.run()
    [called] = session.payloads("harness.model.called")
    assert called["request"]["params"]["max_output_tokens"] == tokens
    [assembled] = session.payloads("context.assembled")
    assert assembled["budget_tokens"] == 32768 - tokens - 256  # 256 is what compression keeps free


def test_an_artifact_is_as_large_as_the_persona_says_unless_the_stage_says_otherwise(play: Any) -> None:
    ends = []
    for stage in ({}, {"max_bytes": 4096}):
        graph = flow(work={"output": stage, "on_success": "completed"})
        stages = {**graph, "roles": {"worker": {"output": {"max_bytes": 64}}}}
        session = play(says("x" * 100), stages=stages)
        ends.append(session.run()["status"])
    assert ends == ["failed", "completed"]


def test_each_attempt_asks_under_a_seed_of_its_own_and_the_same_run_under_the_same_seeds(play: Any) -> None:
    stages = one_stage(retry={"strategy": "retry", "max_attempts": 3}, on_success="completed")
    session = play(BREAKS, BREAKS, says("done"), stages=stages)
    session.run(seed=2**32 - 2)
    seeds = [called["request"]["params"]["seed"] for called in session.payloads("harness.model.called")]
    assert seeds == [2**32 - 2, 2**32 - 1, 0]


def test_a_seed_of_the_model_s_entry_stays_as_it_is(play: Any) -> None:
    entry = {"provider": "scripted", "script": "script.yaml", "inference": {"seed": 5}}
    session = play(says("done"), models={"default": "scripted", "models": {"scripted": entry}})
    session.run(seed=7)
    [called] = session.payloads("harness.model.called")
    assert called["request"]["params"]["seed"] == 5
