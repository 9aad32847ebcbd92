"""``harness graph`` of a plan and of what ran of it: every step, what leads to it, and how often it was begun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from tests.crash.plans import fan_out
from tests.reference import Site, says, write_site


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The fourth plan of the design, with tools of the tests, in the one stage of a project."""
    return fan_out(tmp_path).enter(monkeypatch)


def shown(capsys: pytest.CaptureFixture[str], *words: str, exits: int = 0) -> str:
    capsys.readouterr()
    assert main(["graph", *words]) == exits
    said = capsys.readouterr()
    return said.out + said.err


def graph(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    document = json.loads(shown(capsys, *words, "--format", "json"))
    Draft202012Validator(published_schema("harness.graph/1")).validate(document)
    return document


def edges(document: Any) -> set[tuple[str, str]]:
    return {(one["from"], one["to"]) for one in document["edges"]}


WAYS = {
    ("audit", "scan"), ("scan", "judge"), ("audit", "triage"), ("triage", "deep"), ("triage", "quick"),
    ("deep", "report"), ("quick", "report"),
}  # fmt: skip


@pytest.mark.req("B-125")
def test_a_plan_is_drawn_before_it_runs_and_a_run_with_what_came_of_each_step(
    project: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    [stage] = json.loads((project.project / ".harness/stages.yaml").read_text())["stages"].values()
    file = project.project / "plan.json"
    file.write_text(json.dumps(stage["plan"]))
    document = graph(capsys, "--plan", str(file))
    assert (document["kind"], document["initial"], edges(document)) == ("plan", "audit", WAYS)
    assert main(["run", "Go."]) == 0
    ran = graph(capsys, "@last", "--stage", "run")
    assert (ran["kind"], edges(ran)) == ("run", WAYS)
    counted = {one["id"]: (one["visits"], one["attempts"], one["status"]) for one in ran["nodes"]}
    done = (1, 1, "completed")
    assert counted == {
        "audit": done, "scan": (3, 3, "completed"), "judge": (3, 3, "completed"), "triage": done,
        "deep": done, "quick": (0, 0, "skipped"), "report": done,
    }  # fmt: skip
    version = json.loads(shown_versions(capsys))["versions"][0]["workflow_version_id"]
    assert edges(graph(capsys, "--version", version)) == WAYS
    drawn = shown(capsys, "@last", "--stage", "run")
    assert drawn.startswith("flowchart TD") and "skipped" not in drawn and "completed, visits 3, attempts 3" in drawn
    assert shown(capsys, "--plan", str(file), "--format", "dot").startswith("digraph")


def step(name: str, model: str, *needs: str) -> dict[str, Any]:
    """A step that asks a model."""
    said = {"uses": "ai.generate", "with": {"model": model, "prompt": "Say it."}, "output": {"mode": "text"}}
    return {"id": name, **said, **({"needs": list(needs)} if needs else {})}


def test_a_step_that_runs_at_last_is_led_to_from_what_leads_nowhere_else(
    project: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    [stage] = json.loads((project.project / ".harness/stages.yaml").read_text())["stages"].values()
    plan = stage["plan"]
    plan |= {"steps": [step("close", "small"), *plan["steps"]], "finally": "close"}
    file = project.project / "plan.json"
    file.write_text(json.dumps(plan))
    document = graph(capsys, "--plan", str(file))
    assert (document["initial"], edges(document) - WAYS) == ("audit", {("report", "close")})


def test_what_has_not_run_when_its_stage_is_over_never_will_though_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {
        "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "two"}, "input": {"schema": True},
        "output": {"schema": True, "value": "x"}, "permissions": {"models": ["scripted"], "tools": []},
        "steps": [step("first", "scripted"), step("second", "scripted", "first")],
    }  # fmt: skip
    usual = {"role": "worker", "allowed_tools": ["effects"], "on_success": "completed"}
    run = {**usual, "executor": "workflow", "plan": plan, "on_failure": "review"}
    review = {**usual, "task": "Say why.", "approvals": {"artifact": "required"}}
    stages = {"initial": "run", "stages": {"run": run, "review": review}}
    broken = {"when": {"stage": "run"}, "error": {"code": "provider.bad_request"}}
    write_site(tmp_path, stages=stages, replies=[broken, says("It broke.")]).enter(monkeypatch)
    assert main(["run", "Go.", "--on-ask", "suspend"]) == 10
    ran = {one["id"]: one["status"] for one in graph(capsys, "@last", "--stage", "run")["nodes"]}
    assert ran == {"first": "failed", "second": "skipped"}


def shown_versions(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["workflows", "list", "--json"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "exits", "said"),
    [
        (("--plan", "gone.json"), 2, "cannot be read"),
        (("--version", "wfv_0000"), 4, "no version wfv_0000"),
        (("--stage", "run"), 2, "goes with a session"),
        (("--plan", "bad.json", "--version", "wfv_0000"), 2, "name one of them"),
        (("--plan", "bad.json"), 14, "not sound"),
    ],
)
def test_what_cannot_be_drawn_says_why(
    project: Site, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], exits: int, said: str
) -> None:
    (project.project / "bad.json").write_text('{"steps": []}')
    assert said in shown(capsys, *words, exits=exits)
