"""The four plans of the design as they are, each through a whole session under the default roles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.acceptance.listing import replays_equal
from tests.reference import says, scripted_models

LWIR = Path(__file__).parents[1] / "cases" / "lwir"
USAGE = says("")["usage"]
MODELS = scripted_models("small", "coder", "writer", "judge")
TOOLS = '''
from harness_hookspecs import Offer, ToolError, ToolResult, ToolSpec, hookimpl

ROWS = [{"id": "ann", "points": 0.9}, {"id": "bob", "points": 0.5}]
ANSWERS = {
    "tickets_get": lambda args: {"body": "ticket " + args["id"]},
    "ats_candidates": lambda args: ROWS,
    "files_write": lambda args: "wrote " + args["text"],
    "repo_scan": lambda args: {"issues": ["old " + args["name"]]},
}


class Desk:
    def specs(self):
        schema = {"type": "object"}
        return [
            ToolSpec(name=name, description=name, input_schema=schema, tier="T1", effect="unkeyed") for name in ANSWERS
        ]

    def execute(self, name, args, ctx):
        if args.get("name") == "lost":
            raise ToolError("no such package")
        return ToolResult(ANSWERS[name](args))


@hookimpl
def harness_provide_tools():
    return [Offer(kind="tool", name="desk", build=lambda settings, host: Desk())]
'''
REPAIRED = """async def main(input, tools):
    rows = await tools.ats_candidates(job_id=input["job_id"])
    return [{"id": r["id"], "score": r["points"]} for r in rows if r["points"] > input["threshold"]]
"""


VERSIONS = {
    "1": "wfv_a245673b561da9832927c7f75eba087f",
    "2": "wfv_828be39c6c6e68896837b72133b75726",
    "3": "wfv_5361bb610128ab8c715131cc8886a0f2",
    "4": "wfv_b6de6eb101239e473af81e302ca64bcc",
}
"""Under which id each is registered, as the design says."""


def planned(name: str) -> dict[str, Any]:
    """A stages.yaml whose stage runs that plan, and whose artifact is any JSON."""
    [file] = LWIR.glob(f"{name}-*.json")
    stage = {
        "role": "worker", "executor": "workflow", "artifact": "json", "plan": json.loads(file.read_bytes()),
        "allowed_tools": ["desk"], "on_success": "completed", "on_failure": "failed",
    }  # fmt: skip
    return {"initial": "run", "stages": {"run": stage}}


def reply(contains: str, **said: Any) -> dict[str, Any]:
    return {"when": {"contains": contains}, "usage": USAGE, **said}


CASES: Mapping[str, Any] = {
    "1": (
        {"ticket_id": "7"},
        [reply("ticket 7", json={"summary": "seven", "severity": "low"})],
        {"summary": "seven", "severity": "low"},
        ["fetch", "summarise"],
    ),
    "2": (
        {"job_id": "j", "threshold": 0.6},
        [reply("This is repair 1 of 3", text=REPAIRED)],
        [{"id": "ann", "score": 0.9}],
        ["shortlist"],
    ),
    "3": (
        {"diff": "+ a line"},
        [
            reply("nothing yet", text="first draft"),
            reply("Judge this note:\nfirst draft", json={"passed": False, "feedback": "too short"}),
            reply("Reviewer said: too short", text="second draft"),
            reply("Judge this note:\nsecond draft", json={"passed": True, "feedback": "good"}),
        ],
        "wrote second draft",
        [f"{step}.visit[{visit}]" for visit in (0, 1) for step in ("draft", "review", "route")] + ["publish"],
    ),
    "4": (
        {"packages": [{"name": "a.b"}, {"name": "lost"}]},
        [
            reply("Rank:", text="ok"),
            reply("Explain the blockers", text="one was lost"),
            reply("Write the report from: one was lost", text="the report"),
        ],
        "the report",
        ["audit", "audit[a%2Eb].judge", "audit[a%2Eb].scan", "deep", "report", "triage"],
    ),
}  # fmt: skip


@pytest.mark.req("A-39", "A-42")
@pytest.mark.parametrize("name", CASES)
def test_a_plan_of_the_design_runs_to_its_output_and_replays(play: Any, site_folder: Path, name: str) -> None:
    given, replies, output, paths = CASES[name]
    make_distribution(site_folder, "acme-desk-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    session = play(*replies, stages=planned(name), models=MODELS)
    document = session.host.run(json.dumps(given))
    assert document["status"] == "completed", document["failure"]
    [artifact] = session.host.artifacts("@last")
    body = json.loads(session.host.artifact(artifact["ref"]))
    assert body == (output if isinstance(output, dict) else {"value": output})
    [registered] = session.host.workflows()["versions"]
    assert registered["workflow_version_id"] == VERSIONS[name]
    succeeded = [one["stepPath"] for one in session.payloads("harness.execute_step.succeeded")]
    assert succeeded == paths if name in "123" else sorted(succeeded) == paths
    asked = {one["role_call_id"] for one in map(refs, session.events()) if "model" in one["type"]}
    requested = session.payloads("role.requested")
    silent = [one for one in requested if one["role"] in ("worker.code-run", "worker.tool-call")]
    assert silent and asked.isdisjoint(one["role_call_id"] for one in silent)
    replays_equal(session, roles=len(requested))


def refs(event: Any) -> dict[str, Any]:
    return {"role_call_id": "", **json.loads(event.refs), "type": event.type}


@pytest.mark.req("A-21")
def test_each_step_asks_the_model_that_it_names_and_its_manifest_says_so(play: Any, site_folder: Path) -> None:
    make_distribution(site_folder, "acme-desk-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    given, replies, _, _ = CASES["3"]
    session = play(*replies, stages=planned("3"), models=MODELS)
    assert session.host.run(json.dumps(given))["status"] == "completed"
    asked = [
        (refs(event)["step_path"].partition(".")[0], json.loads(event.payload)["request"]["model"]["modelId"])
        for event in session.events()
        if event.type == "harness.model.called"
    ]
    assert asked == [("draft", "writer"), ("review", "judge")] * 2
    manifests = [json.loads(session.host.store.blob(ref)) for ref in manifest_hashes(session)]
    slots = {one["slot"] for one in manifests if one["uses"] == "ai.generate"}
    assert slots == {"writer", "judge"}


def manifest_hashes(session: Any) -> set[str]:
    return {one["manifestHash"] for one in session.payloads("harness.session.started")}


def test_a_further_repair_of_a_plan_is_told_what_was_tried_and_the_last_one_ends_it(
    play: Any, site_folder: Path
) -> None:
    make_distribution(site_folder, "acme-desk-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    wrong = REPAIRED.replace('r["points"] >', 'r["score"] >')
    replies = [
        reply("This is repair 1 of 3", text=wrong),
        reply("This is repair 2 of 3", text=wrong.replace("score", "mark")),
        reply("This is repair 3 of 3", text=wrong.replace("score", "grade")),
    ]
    session = play(*replies, stages=planned("2"), models=MODELS)
    failure = session.host.run(json.dumps(CASES["2"][0]))["failure"]
    assert failure["code"] == "fixer.exhausted"
    assert failure["message"].count("did not help") == 1 and "grade" in failure["message"]
    asked = [one["request"]["messages"][1] for one in session.payloads("harness.model.called")]
    first, second, third = (json.loads(session.host.store.blob(ref))["content"][0]["text"] for ref in asked)
    assert "Repair 1 that did not help" not in first
    assert wrong in second and "Repair 2 that" not in second
    assert "Repair 1 that" in third and "Repair 2 that" in third
    assert len(session.payloads("harness.tool_call.started")) == 1


@pytest.mark.req("A-12", "A-45", "A-46")
def test_the_repair_of_a_plan_repeats_no_call_and_changes_no_plan(play: Any, site_folder: Path) -> None:
    make_distribution(site_folder, "acme-desk-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    given, replies, _, _ = CASES["2"]
    session = play(*replies, stages=planned("2"), models=MODELS)
    for _ in range(2):
        assert session.host.run(json.dumps(given))["status"] == "completed"
        assert len(session.payloads("harness.tool_call.started")) == 1
        assert [one["role"] for one in session.payloads("role.requested")].count("fixer") == 1


BREAKS = "async def main(input, tools):\n    return input['nothing']\n"
MISMATCHES = "async def main(input, tools):\n    return [{'id': 1}]\n"
GOES_WELL = "async def main(input, tools):\n    return [{'id': 'ann', 'score': 1}]\n"


@pytest.mark.req("A-44")
@pytest.mark.parametrize(
    ("source", "code"),
    [(BREAKS, "engine.runtime"), (MISMATCHES, "engine.output_invalid")],
    ids=["raises", "breaks its schema"],
)
def test_code_that_raises_and_code_that_breaks_its_schema_are_repaired_where_the_step_says_so(
    play: Any, site_folder: Path, source: str, code: str
) -> None:
    make_distribution(site_folder, "acme-desk-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    given, stages = json.dumps(CASES["2"][0]), planned("2")
    [step] = stages["stages"]["run"]["plan"]["steps"]
    step["with"]["source"] = source
    session = play(reply(code, text=GOES_WELL), stages=stages, models=MODELS)
    document = session.host.run(given)
    assert document["status"] == "completed", document["failure"]
    asked = [one["role"] for one in session.payloads("role.requested")]
    assert asked == ["worker.code-run", "fixer", "worker.code-run"]
    del step["onFailure"]
    session.site.write("stages", stages)
    session.reopen()
    document = session.host.run(given)
    assert (document["status"], document["failure"]["code"]) == ("failed", code)
    assert [one["role"] for one in session.payloads("role.requested")] == ["worker.code-run"]
