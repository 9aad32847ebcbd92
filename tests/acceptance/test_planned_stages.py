"""A stage that names a workflow: a model writes the plan, is told what is wrong with it, and the right one runs."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from harness_hookspecs.errors import Drift, HarnessError
from harness_hookspecs.kit.canonical import digest
from tests.orchestra import INPUT, PLAN, planner
from tests.reference import says, scripted_models

GIVEN = json.dumps({"note": "one"})
JOBS = {"description": "Does a job.", "input": INPUT, "tools": ["effects"]}
STAGE = {
    "role": "worker", "executor": "workflow", "workflow": "jobs", "allowed_tools": ["effects"], "artifact": "json",
    "on_success": "completed", "on_failure": "failed",
}  # fmt: skip
BROKEN = {**PLAN, "metadata": {"name": "other"}}
DONE = {"when": {"stage": "jobs", "contains": "Do one now."}, "text": "did one", "usage": says("")["usage"]}


def stages(definition: Any = None, **stage: Any) -> dict[str, Any]:
    """A stages.yaml with the one workflow, and the one stage that runs it; ``None`` takes a key out."""
    told = {name: value for name, value in {**STAGE, **stage}.items() if value is not None}
    return {"workflows": {"jobs": {**JOBS, **(definition or {})}}, "stages": {"jobs": told}}


def run(play: Any, *replies: Any, **files: Any) -> tuple[Any, Any]:
    """A session whose person said what the workflow is given, and its document."""
    session = play(*replies, **{"stages": stages(), **files})
    return session, session.host.run(GIVEN)


def replays_in_all_ways(session: Any, document: Any) -> None:
    for mode in ("full", "skip-inference", "simulate"):
        report = session.host.replay(document["id"], mode)
        assert report["equal"], (mode, report["diverged"])


@pytest.mark.req("A-10")
def test_a_plan_that_is_refused_comes_back_with_its_findings_and_the_next_one_runs(play: Any) -> None:
    session, document = run(play, planner(PLAN, contains="binding.name_mismatch"), planner(BROKEN), DONE)
    assert document["status"] == "completed", document["failure"]
    assert [one["role"] for one in session.payloads("role.requested")] == ["planner", "planner", "worker.ai-generate"]
    assert len(session.payloads("workflow.version_registered")) == 1
    [artifact] = session.host.artifacts("@last")
    assert "did one" in session.host.artifact(artifact["ref"]).decode()
    replays_in_all_ways(session, document)


DEEP = '{"steps": [' * 60 + "]}" * 60


@pytest.mark.req("A-10")
@pytest.mark.parametrize(
    "answer",
    [
        {"json": {"kind": "Garbage", "steps": 7}},
        {"json": {**PLAN, "steps": [{**PLAN["steps"][0], "id": f"s{n}"} for n in range(300)]}},
        {"json": {**PLAN, "output": {"schema": True, "value": "x" * 1_100_000}}},
        {"text": DEEP},
        {"json": [1, 2]},
        {"text": "I would rather not."},
    ],
    ids=["garbage", "many steps", "huge", "deep", "a list", "no document"],
)
def test_what_is_no_plan_is_not_registered(play: Any, answer: Any) -> None:
    said = {"when": {"contains": "Write the workflow"}, "usage": says("")["usage"], **answer}
    again = {**said, "when": {"contains": "Answer again"}}
    session, document = run(play, again, said, stages=stages({"planner": {"max_repairs": 1}}))
    assert document["status"] == "failed"
    assert not session.payloads("workflow.version_registered")
    assert {one["role"] for one in session.payloads("role.requested")} == {"planner"}
    replays_in_all_ways(session, document)


@pytest.mark.parametrize(
    ("written", "code", "said"),
    [
        (stages(workflow="jbos"), "config.unknown_name", 'no workflow "jbos"'),
        ({**stages(), "workflows": {"Jobs of ours": JOBS}}, "config.invalid", "is not a workflow name"),
        (stages(plan=dict(PLAN)), "config.two_plans", "not both"),
        (stages(workflow=None), "config.no_plan", "neither a plan nor a workflow"),
        (stages(allowed_tools=["effects_pure"]), "config.tool_not_allowed", "effects_keyed"),
        (stages({"models": {"fast": {"bind": "nobody"}}}), "config.unknown_name", 'no model "nobody"'),
        ({**stages(), "workflows": {"wfv_jobs": JOBS}}, "config.invalid", "is the id of a version"),
        (stages({"models": {"fast": {"capabilities": ["vision"]}}}), "config.no_model", "cannot do vision"),
    ],
)
def test_a_stage_whose_plan_nobody_can_write_says_why_before_anything_runs(
    play: Any, written: Any, code: str, said: str
) -> None:
    with pytest.raises(HarnessError) as caught:
        play(says("unused"), stages=written, models=scripted_models("scripted")).host.run(GIVEN)
    assert caught.value.code == code
    assert said in caught.value.message
    assert "stages.yaml" in str(caught.value.where)


def test_a_stage_that_names_a_workflow_of_no_installed_plugin_says_where_one_is_defined(play: Any) -> None:
    with pytest.raises(HarnessError) as caught:
        play(says("unused"), stages={**stages(workflow="gone"), "workflows": {}}).host.run(GIVEN)
    assert caught.value.code == "config.unknown_name"
    assert "a plugin, which may not be installed" in str(caught.value.hint)


SKETCH = {"steps": [{"id": "work", "uses": "ai.generate", "prompt": "Do the job now.", "inputs": ["input.note"]}]}


@pytest.mark.parametrize(("form", "document"), [("plan", dict(PLAN)), ("sketch", SKETCH)])
def test_the_planner_is_held_to_the_schema_of_who_checks_its_plan_in_the_form_that_is_asked_for(
    play: Any, form: str, document: Any
) -> None:
    said = {"json": "did one"} if form == "sketch" else {"text": "did one"}
    done = {"when": {"stage": "jobs", "contains": "now."}, "usage": says("")["usage"], **said}
    written = stages({"planner": {"form": form}, "output": True})
    what = "Write a sketch" if form == "sketch" else "Write the workflow"
    session, ended = run(play, planner(document, contains=what), done, stages=written)
    assert ended["status"] == "completed", ended["failure"]
    first = next(event.seq for event in session.events() if event.type == "harness.model.called")
    asked = session.host.prompt(ended["id"], first)
    assert ("Write a sketch" in json.dumps(asked)) == (form == "sketch")
    valid = jsonschema.Draft202012Validator(asked["response_schema"]).is_valid
    assert valid(document)
    assert not valid(BROKEN)
    replays_in_all_ways(session, ended)


@pytest.mark.req("A-21")
@pytest.mark.parametrize(("slot", "answers"), [({"bind": "other"}, "other"), ({}, "scripted")])
def test_a_plan_names_a_model_by_its_own_word_and_the_definition_says_who_answers(
    play: Any, slot: Any, answers: str
) -> None:
    step = {**PLAN["steps"][0], "with": {"model": "fast", "prompt": "Do {{ input.note }} now."}}
    plan = {**PLAN, "permissions": {"models": ["fast"], "tools": []}, "steps": [step]}
    models = scripted_models("other")
    session, ended = run(play, planner(plan), DONE, stages=stages({"models": {"fast": slot}}), models=models)
    assert ended["status"] == "completed", ended["failure"]
    started = session.payloads("harness.session.started")[-1]["manifestHash"]
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started}"))
    assert (manifest["slot"], manifest["modelId"]) == ("fast", answers)
    replays_in_all_ways(session, ended)


@pytest.mark.parametrize(
    ("block", "finding"),
    [
        ({"permissions": {"max_tier": "T1"}}, "bind.tier_exceeded"),
        ({"limits": {"max_step_executions": 1}}, "limits.too_many_executions"),
    ],
)
def test_a_definition_says_how_far_its_plans_may_go(play: Any, block: Any, finding: str) -> None:
    twice = {**PLAN, "steps": [*PLAN["steps"], {**PLAN["steps"][0], "id": "again"}]}
    session, ended = run(play, planner(twice), stages=stages({"planner": {"max_repairs": 0}, **block}))
    assert ended["status"] == "failed"
    [failed] = session.payloads("compile.failed")
    assert finding in {one["code"] for one in failed["findings"]}, failed


MEMORY = {"memory": [{"path": "/memory/notes", "mode": "ro", "purpose": "Notes.", "store_id": "n"}]}


def test_the_blocks_of_a_definition_stand_in_what_its_planner_is_handed_and_in_its_hash(play: Any) -> None:
    network = {"allow": ["https://example.org/"], "methods": ["GET"]}
    bash = {"languages": ["python"], "timeout_ms": 500, "network": network}
    hashes = set()
    limits, secrets = {"limits": {"max_tokens": 9_000}}, {"permissions": {"secrets": ["token"]}}
    for block in ({}, {"bash": bash}, secrets, limits, MEMORY):
        session, ended = run(play, planner(), DONE, stages=stages(block))
        assert ended["status"] == "completed", ended["failure"]
        asked = session.payloads("role.requested")[0]
        snapshot = json.loads(session.host.artifact(f"artifact://sha256-{asked['task_ref']}"))["workflowSnapshot"]
        hashes.add(snapshot["definitionHash"])
        if block is MEMORY:
            assert snapshot["memory"] == [{"path": "/memory/notes", "mode": "ro", "purpose": "Notes.", "storeId": "n"}]
        if "bash" in block:
            assert snapshot["bash"]["timeoutMs"] == 500
            assert snapshot["bash"]["network"]["denyPrivateRanges"] is True
    assert len(hashes) == 5


@pytest.mark.req("A-93")
def test_an_attempt_that_follows_another_tells_the_planner_how_that_one_ended(play: Any) -> None:
    text = {"when": {"stage": "jobs", "contains": "Do one now."}, "text": "as text", "usage": says("")["usage"]}
    good = {**PLAN, "output": {"schema": True, "value": {"text": "{{ steps.work.output }}"}}}
    written = stages(artifact="text", retry={"max_attempts": 2})
    session, ended = run(play, planner(good, contains="Round 1 ended failed"), planner(), text, stages=written)
    assert ended["status"] == "completed", ended["failure"]
    tasks = [one["task_ref"] for one in session.payloads("role.requested") if one["role"] == "planner"]
    first, second = (json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in tasks)
    assert "outerLoopContext" not in first
    [cycle] = second["outerLoopContext"]["priorCycles"]
    assert (cycle["cycleNumber"], cycle["status"], cycle["output"]) == (1, "failed", "as text")
    assert "not an object" in cycle["summary"]
    started = [one["manifestHash"] for one in session.payloads("harness.session.started") if one["role"] == "planner"]
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started[-1]}"))
    assert manifest["outerLoopHash"] == digest(second["outerLoopContext"])
    replays_in_all_ways(session, ended)


def test_a_definition_that_has_changed_stops_a_resume_with_what_changed_until_somebody_accepts_it(play: Any) -> None:
    careful = {"approvals": {"artifact": "required"}}
    session = play(planner(), DONE, stages=stages(**careful))
    document = session.host.run(GIVEN, on_ask="suspend")
    assert document["status"] == "awaiting_approval", document["failure"]
    session.answer(session.pending()[0])
    session.site.write("stages", stages({"description": "Does jobs."}, **careful))
    session.reopen()
    with pytest.raises(Drift) as caught:
        session.resume()
    assert caught.value.code == "config.drift"
    assert "workflows.jobs.description" in caught.value.message
    assert session.resume(accept_drift=True)["status"] == "completed"
