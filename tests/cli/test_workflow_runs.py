"""``harness workflows``: a workflow is planned once, its version runs on as many inputs as one likes, and is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from tests.crash.plans import fan_out
from tests.orchestra import INPUT, PLAN
from tests.reference import POLICIES, Site, calls, notes, one_stage, says, scripted_models, write_site

USAGE = says("")["usage"]
NOTES = ("one", "two", "three", "four", "five")
Run = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Site]:
    """A project with a workflow that no stage names."""
    replies = [
        {"when": {"contains": "Write the workflow"}, "json": PLAN, "usage": USAGE},
        *({"when": {"contains": f"Do {note} now."}, "text": f"did {note}", "usage": USAGE} for note in NOTES),
    ]
    jobs = {"description": "Does a job.", "input": INPUT, "tools": ["effects"]}
    with pytest.MonkeyPatch.context() as patch:
        yield write_site(tmp_path, stages={**one_stage(), "workflows": {"jobs": jobs}}, replies=replies).enter(patch)


@pytest.fixture
def harness(project: Site, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command and gives its document, or what it said where ``--json`` is left out."""

    def run(*words: str, given: Any = None, exits: int = 0, text: bool = False) -> Any:
        if given is not None:
            file = project.project / "input.json"
            file.write_text(given if isinstance(given, str) else json.dumps(given))
            words = (*words, "--input", str(file))
        capsys.readouterr()
        assert main([*words] if text else [*words, "--json"]) == exits, capsys.readouterr()
        said = capsys.readouterr()
        return said.out + said.err if text else json.loads(said.out)

    return run


def planned(harness: Run) -> str:
    """The version that the workflow is planned as."""
    harness("workflows", "plan", "jobs", given={"note": "any"})
    [version] = harness("workflows", "list")["versions"]
    return str(version["workflow_version_id"])


def output(harness: Run, session: str) -> Any:
    [item] = harness("artifacts", "list", session)["items"]
    return json.loads(harness("artifacts", "get", item["ref"], text=True))


@pytest.mark.req("A-86")
def test_a_workflow_is_planned_once_and_its_version_runs_on_five_inputs(harness: Run) -> None:
    version = planned(harness)
    for note in NOTES:
        session = harness("workflows", "run", version[:12], given={"note": note})
        assert session["status"] == "completed"
        assert output(harness, session["id"]) == {"value": f"did {note}"}
        assert harness("replay", session["id"], "--mode", "skip-inference")["equal"]
        assert harness("replay", session["id"], "--mode", "simulate")["equal"]
    [item] = harness("workflows")["versions"]
    assert (item["workflow"], len(item["sessions"])) == ("jobs", 6)
    lines = [harness("events", one["id"], "--type", "role.requested", text=True) for one in item["sessions"]]
    assert sum("planner" in line for line in lines) == 1


def test_what_is_shown_of_a_version_is_what_was_planned_however_often_it_ran(harness: Run) -> None:
    version = planned(harness)
    source = harness("workflows", "show", version, "--source", text=True)
    harness("workflows", "run", version, given={"note": "one"})
    shown = harness("workflows", "show", version)
    Draft202012Validator(published_schema("harness.workflow_version/1")).validate(shown)
    Draft202012Validator(published_schema("harness.workflows/1")).validate(harness("workflows"))
    assert json.loads(source) == shown["plan"] == PLAN
    assert shown["lock"]["workflowVersionId"] == version
    told = harness("workflows", "show", version, text=True)
    assert version in told and "ai.generate" in told


def test_a_name_in_place_of_a_version_is_planned_and_run(harness: Run) -> None:
    session = harness("workflows", "run", "jobs", given={"note": "two"})
    assert session["status"] == "completed"
    assert session["usage"]["input_tokens"] == 20  # the planner and the worker


def test_a_session_of_a_workflow_is_forked_as_one(harness: Run) -> None:
    session = harness("workflows", "run", "jobs", given={"note": "two"})
    fork = harness("sessions", "fork", session["id"], "--at", "3")
    assert (fork["status"], fork["stage"]) == ("completed", "jobs")
    assert output(harness, fork["id"]) == {"value": "did two"}
    assert harness("replay", fork["id"], "--mode", "skip-inference")["equal"]


def test_a_workflow_that_no_model_fits_is_told_of_when_it_is_run_and_stops_nothing_else(
    project: Site, harness: Run
) -> None:
    jobs = {"input": INPUT, "models": {"eye": {"capabilities": ["vision"]}}}
    project.write("stages", {**one_stage(), "workflows": {"jobs": jobs}})
    project.write("script", {"schema": "harness.script/1", "replies": [says("Done.")]})
    assert harness("run", "Go.")["status"] == "completed"
    told = harness("workflows", "run", "jobs", given={"note": "one"}, exits=3)
    assert (told["code"], told["where"].split(":")[0]) == ("config.no_model", ".harness/stages.yaml")


def test_a_version_of_a_plan_that_a_stage_has_runs_by_hand_with_the_tools_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = fan_out(tmp_path).enter(monkeypatch)
    stages = json.loads((site.project / ".harness/stages.yaml").read_text())
    stages["stages"]["run"] |= {"artifact": "text"}  # whatever else its stage makes of it
    assert main(["run", "Go."]) == 0
    site.write("stages", stages)
    capsys.readouterr()
    assert main(["workflows", "--json"]) == 0
    [version] = json.loads(capsys.readouterr().out)["versions"]
    (site.project / "input.json").write_text("{}")
    assert main(["workflows", "run", version["workflow_version_id"], "--input", "input.json"]) == 0
    assert sorted(notes(site)) == sorted(["a", "b", "c", "ranked"] * 2)


@pytest.mark.parametrize(("stage", "happened"), [("work", []), ("w*", []), ("jobs", []), ("other", ["sent"])])
def test_a_rule_about_the_stage_in_whose_place_a_workflow_runs_holds_for_it(
    project: Site, harness: Run, stage: str, happened: list[str]
) -> None:
    plan = {"when": {"contains": "Write the workflow"}, "json": PLAN, "usage": USAGE}
    keyed = {"when": {"turn": 1}, **calls(("keyed", {"note": "sent"}))}
    said = [plan, keyed, {"when": {"turn": 2}, "text": "so", "usage": USAGE}]
    project.write("script", {"schema": "harness.script/1", "replies": said})
    project.write("policies", {**POLICIES, "rules": [{"tool": "effects_keyed", "stage": stage, "mode": "deny"}]})
    harness("workflows", "run", "jobs", given={"note": "one"})  # that it is denied is told to the model
    assert notes(project) == happened


def test_what_a_stage_asks_of_its_own_work_is_nothing_to_a_workflow_in_its_place(project: Site, harness: Run) -> None:
    asks = {"approvals": {"artifact": "required"}, "requirements": ["vision"]}
    written = json.loads((project.project / ".harness/stages.yaml").read_text())
    project.write("stages", {**written, **one_stage(**asks)})
    assert harness("workflows", "run", "jobs", given={"note": "two"})["status"] == "completed"


JOBS = {"input": INPUT, "tools": ["effects"]}


@pytest.mark.parametrize("defined", [{"jobs": {**JOBS, "description": "Other."}}, {"others": JOBS}, {}])
def test_a_version_runs_for_its_workflow_as_that_is_defined_now_or_was_last(
    project: Site, harness: Run, defined: Any
) -> None:
    version = planned(harness)
    project.write("stages", {**one_stage(), "workflows": defined})
    assert harness("workflows", "run", version, given={"note": "one"})["status"] == "completed"


def test_a_version_may_no_more_than_its_workflow_may_now(project: Site, harness: Run) -> None:
    version = planned(harness)
    project.write("stages", {**one_stage(), "workflows": {"jobs": {**JOBS, "tools": []}}})
    told = harness("workflows", "run", version, given={"note": "one"}, exits=3)
    assert told["code"] == "workflow.drift"
    session = harness("workflows", "run", version, "--accept-drift", given={"note": "one"}, exits=1)
    assert "compile.failed" in harness("events", session["id"], text=True)


def test_a_workflow_may_be_given_what_is_no_object(project: Site, harness: Run) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    step = {**PLAN["steps"][0], "with": {"model": "scripted", "prompt": "Do {{ input[0] }} now."}}
    permissions = {"models": ["scripted"], "tools": []}
    plan = {**PLAN, "input": {"schema": schema}, "permissions": permissions, "steps": [step]}
    written = {"when": {"contains": "Write the workflow"}, "json": plan, "usage": USAGE}
    done = {"when": {"contains": "Do one now."}, "text": "did one", "usage": USAGE}
    project.write("script", {"schema": "harness.script/1", "replies": [written, done]})
    project.write("stages", {**one_stage(), "workflows": {"jobs": {"input": schema}}})
    session = harness("workflows", "run", "jobs", given=["one"])
    assert output(harness, session["id"]) == {"value": "did one"}
    assert harness("replay", session["id"], "--mode", "simulate")["equal"]


@pytest.mark.parametrize("name", ["completed", "failed", "retry"])
def test_a_workflow_that_is_called_as_an_end_is_planned_and_run_all_the_same(
    project: Site, harness: Run, name: str
) -> None:
    plan = {"when": {"contains": "Write the workflow"}, "json": {**PLAN, "metadata": {"name": name}}, "usage": USAGE}
    said = [plan, {"text": "did it", "usage": USAGE}]
    project.write("script", {"schema": "harness.script/1", "replies": said})
    project.write("stages", {**one_stage(), "workflows": {name: {"input": INPUT, "tools": ["effects"]}}})
    session = harness("workflows", "run", name, given={"note": "one"})
    assert session["status"] == "completed"
    assert output(harness, session["id"]) == {"value": "did it"}
    assert harness("replay", session["id"], "--mode", "skip-inference")["equal"]


@pytest.mark.parametrize(
    ("words", "given", "exits", "said"),
    [
        (("run", "jbos"), {"note": "one"}, 4, 'did you mean "jobs"'),
        (("plan", "jobs"), {"note": 1}, 14, "/note"),
        (("plan", "jobs"), "no json", 2, "no JSON document"),
        (("run", "wfv_0000"), {"note": "one"}, 4, "no version wfv_0000"),
        (("plan", "wfv_0000"), {"note": "one"}, 3, "planned already"),
        (("show", "wfv_0000"), None, 4, "no version wfv_0000"),
    ],
)
def test_what_cannot_be_had_is_said_and_nothing_begins(
    harness: Run, words: tuple[str, ...], given: Any, exits: int, said: str
) -> None:
    assert said in harness("workflows", *words, given=given, exits=exits, text=True)
    assert harness("sessions")["items"] == []


def test_what_takes_no_such_input_says_what_it_takes(harness: Run) -> None:
    said = harness("workflows", "run", "jobs", given={"nose": "any"}, exits=14)
    assert '"note"' in said["message"]
    assert '"additionalProperties":false' in said["hint"]


def test_whoever_planned_a_workflow_is_told_how_to_run_it(harness: Run) -> None:
    said = harness("workflows", "plan", "jobs", given={"note": "any"}, text=True)
    [version] = harness("workflows")["versions"]
    assert f"harness workflows run {version['workflow_version_id']} --input FILE" in said


def test_who_shows_a_workflow_in_place_of_a_version_is_told_its_versions(harness: Run) -> None:
    version = planned(harness)
    assert version in harness("workflows", "show", "jobs", exits=4)["hint"]


@pytest.mark.parametrize("words", [("workflows",), ("workflows", "check", "plan.json"), ("graph",)])
def test_who_asks_what_there_is_is_told_that_nobody_trusts_the_project(
    project: Site, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.project / "plan.json").write_text(json.dumps(PLAN))
    monkeypatch.setenv("XDG_STATE_HOME", str(project.project.parent / "another"))
    main([*words, "--json"])
    said = capsys.readouterr()
    assert "the project is not trusted" in said.err
    assert json.loads(said.out)["schema"]


def test_a_version_does_not_run_under_another_model_until_somebody_accepts_what_has_changed(
    harness: Run, project: Site
) -> None:
    version = planned(harness)
    models = scripted_models()
    models["models"]["scripted"] |= {"path": "models/two.gguf"}
    project.write("models", models)
    before = len(harness("sessions")["items"])
    said = harness("workflows", "run", version, given={"note": "one"}, exits=3, text=True)
    assert f"plan {version} was checked against something else" in said
    assert "models scripted modelId: scripted -> models/two.gguf" in said
    assert "run it with --accept-drift" in said
    assert len(harness("sessions")["items"]) == before
    accepted = harness("workflows", "run", version, "--accept-drift", given={"note": "one"})
    assert accepted["status"] == "completed"
    assert harness("workflows", "run", version, given={"note": "two"})["status"] == "completed"


def test_a_plan_in_a_file_is_checked_registered_and_run(harness: Run, project: Site) -> None:
    plan = {**PLAN, "permissions": {**PLAN["permissions"], "tools": ["effects.pure"]}}
    plan["steps"] = [{**PLAN["steps"][0], "with": {**PLAN["steps"][0]["with"], "tools": ["effects.pure"]}}]
    (project.project / "plan.json").write_text(json.dumps(plan))
    session = harness("workflows", "run", "--plan", "plan.json", given={"note": "three"})
    assert session["status"] == "completed"
    assert output(harness, session["id"]) == {"value": "did three"}
    [version] = harness("workflows")["versions"]
    assert version["workflow_version_id"] == harness("workflows", "check", "plan.json")["workflow_version_id"]
    assert [one["id"] for one in version["sessions"]] == [session["id"]]
    again = harness("workflows", "run", version["workflow_version_id"], given={"note": "four"})
    assert output(harness, again["id"]) == {"value": "did four"}
    assert harness("replay", session["id"], "--mode", "skip-inference")["equal"]


def test_of_a_plan_in_a_file_that_is_not_sound_the_same_is_found_as_by_its_check(
    harness: Run, project: Site
) -> None:
    for text in ('{"kind": "Workflow"}', "no json", json.dumps({**PLAN, "steps": []})):
        (project.project / "plan.json").write_text(text)
        found = harness("workflows", "run", "--plan", "plan.json", given={"note": "one"}, exits=14)
        assert found == harness("workflows", "check", "plan.json", exits=14)
    assert harness("sessions")["items"] == []


@pytest.mark.parametrize(
    ("words", "given", "exits", "said"),
    [
        ((), {"note": "one"}, 2, "say what runs"),
        (("jobs", "--plan", "plan.json"), {"note": "one"}, 2, "one of them"),
        (("--plan", "gone.json"), {"note": "one"}, 2, "cannot be read"),
        (("--plan", "plan.json", "--accept-drift"), {"note": "one"}, 2, "goes with a version"),
        (("--plan", "-", "--input", "-"), None, 2, "stdin is either"),
        (("--plan", "plan.json"), {"note": 1}, 14, "/note"),
    ],
)
def test_what_runs_is_said_once(
    harness: Run, project: Site, words: tuple[str, ...], given: Any, exits: int, said: str
) -> None:
    (project.project / "plan.json").write_text(json.dumps(PLAN))
    assert said in harness("workflows", "run", *words, given=given, exits=exits, text=True)
    assert harness("sessions")["items"] == []
