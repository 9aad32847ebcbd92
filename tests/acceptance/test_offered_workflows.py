"""Workflows that plugins define in Python: used as those of the file, told apart by their source, kept by sessions."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.opening import open_project
from harness_core.shell.ports import make_ports
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import ConfigError, Drift, HarnessError, PluginError
from tests.acceptance.test_planned_stages import DONE, GIVEN, JOBS, STAGE, replays_in_all_ways, stages
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import says

BASH = {"languages": ["python"], "network": {"allow": ["https://example.org/"], "methods": ["GET"]}}
WHOLE = {**JOBS, "bash": BASH, "planner": {"system": "Plan well."}, "limits": {"max_step_executions": 9}}
CODE = """
from harness_hookspecs import Offer, define_workflow, hookimpl

@hookimpl
def harness_provide_workflows():
    return [Offer(kind="workflow", name="jobs", build=lambda settings, host: {made})]
"""
WRONG = "define_workflow(planner={'max_repairs': 99})"


def offered(site: Path, name: str, made: str | None = None, *, keys: Any = JOBS) -> None:
    """Install a plugin that defines the workflow ``jobs``."""
    said = ", ".join(f"{key}={value!r}" for key, value in keys.items())
    code = CODE.replace("{made}", made or f"define_workflow({said})")
    make_distribution(site, name, provides=[{"kind": "workflow", "name": "jobs"}], code=code)


def only_named(**stage: Any) -> dict[str, Any]:
    """A stages.yaml whose stage runs the workflow, which the file does not define."""
    return {"stages": {"jobs": {**STAGE, **stage}}}


def snapshot(session: Any) -> Any:
    """What the planner was handed of the definition."""
    asked = session.payloads("role.requested")[0]
    return json.loads(session.host.artifact(f"artifact://sha256-{asked['task_ref']}"))["workflowSnapshot"]


@pytest.mark.req("A-100")
def test_a_definition_in_python_and_one_in_the_file_are_the_same_one(play: Any, site_folder: Path) -> None:
    written = play(planner(), DONE, stages=stages(WHOLE))
    assert written.host.run(GIVEN)["status"] == "completed"
    offered(site_folder, "acme-same", keys=WHOLE)
    defined = play(planner(), DONE, stages=only_named())
    document = defined.host.run(GIVEN)
    assert document["status"] == "completed", document["failure"]
    assert snapshot(defined) == snapshot(written)
    assert snapshot(defined)["bash"]["network"]["allow"] == ["https://example.org/"]
    created = [session.payloads("session.created")[0]["config_digest"] for session in (written, defined)]
    assert created[0] == created[1]
    replays_in_all_ways(defined, document)


def test_workflows_are_listed_with_where_they_come_from_and_what_is_wrong_with_them(
    play: Any, site_folder: Path
) -> None:
    offered(site_folder, "acme-listed")
    other = {**stages(), "workflows": {"other": JOBS}, "stages": {"jobs": {**STAGE, "workflow": "other"}}}
    [first, second] = play(says("unused"), stages=other).host.workflows()["workflows"]
    assert (first["name"], first["description"], first["source"]) == ("jobs", "Does a job.", "plugin acme-listed 1.0")
    assert second["name"] == "other" and "stages.yaml:" in second["source"]
    offered(site_folder, "acme-wrong-list", WRONG)
    found = play(says("unused")).host.workflows()["workflows"]
    assert [one["source"] for one in found] == ["plugin acme-listed 1.0", "plugin acme-wrong-list 1.0"]
    assert all("acme-listed and acme-wrong-list" in one["problem"] for one in found)


def test_a_workflow_that_a_plugin_and_the_file_define_is_refused_with_both(play: Any, site_folder: Path) -> None:
    offered(site_folder, "acme-twice")
    session = play(planner(), DONE, stages=stages())
    with pytest.raises(ConfigError) as caught:
        session.host.run(GIVEN)
    assert caught.value.code == "config.two_workflows"
    assert "stages.yaml:" in caught.value.message and "acme-twice" in caught.value.message
    checked = open_project(session.site.project, make_ports("threads")).disagreements()
    assert [one.code for one in checked] == ["config.two_workflows"]
    assert len(session.host.workflows()["workflows"]) == 2
    session.site.write("harness", {"plugins": {"disable": ["acme-twice"]}})
    session.reopen()
    assert session.host.run(GIVEN)["status"] == "completed"


def test_a_workflow_that_two_plugins_define_is_refused_with_both(play: Any, site_folder: Path) -> None:
    offered(site_folder, "acme-one")
    offered(site_folder, "acme-two")
    with pytest.raises(PluginError, match="workflow jobs is offered by acme-one and acme-two") as caught:
        play(planner(), DONE, stages=only_named()).host.run(GIVEN)
    assert caught.value.code == "plugin.doubled"
    assert caught.value.hint == "plugins: {disable: [acme-two]} in harness.yaml"


@pytest.mark.parametrize(
    ("name", "made", "code", "words"),
    [
        ("acme-wrong", WRONG, "workflow.definition", "of the plugin acme-wrong is none: /planner/max_repairs"),
        ("acme-raises", "1 / 0", "plugin.bound_broken", "acme-raises cannot be built: ZeroDivisionError"),
        ("acme-other", "{'description': 'x'}", "plugin.bound_broken", "acme-other is no WorkflowDefinition"),
    ],
)
def test_a_definition_that_is_wrong_stops_who_wants_it_and_nobody_else(
    play: Any, site_folder: Path, name: str, made: str, code: str, words: str
) -> None:
    offered(site_folder, name, made)
    assert play(says("Done.")).run()["status"] == "completed"
    session = play(planner(), DONE, stages=only_named())
    for wanting in (session.host.run, lambda given: session.host.start_workflow("jobs", json.loads(given))):
        with pytest.raises(HarnessError) as caught:
            wanting(GIVEN)
        assert caught.value.code == code
        assert words in caught.value.message
    [listed] = session.host.workflows()["workflows"]
    assert words in listed["problem"]


def test_who_offers_a_workflow_that_a_stage_names_and_is_switched_off_is_named(play: Any, site_folder: Path) -> None:
    offered(site_folder, "acme-off")
    off = {"plugins": {"disable": ["acme-off"]}}
    session = play(planner(), DONE, stages=only_named(), harness=off)
    with pytest.raises(PluginError, match="workflow jobs is needed, but the plugin acme-off"):
        session.host.run(GIVEN)
    assert session.host.workflows()["workflows"] == []


def test_a_stage_that_may_use_all_workflows_may_use_those_of_plugins(play: Any, site_folder: Path) -> None:
    offered(site_folder, "acme-all")
    alone = {"initial": "lead", "stages": lead()["stages"]}
    session = play(chief(1, start("one")), chief(2, text="Done."), planner(), worker("one"), stages=alone)
    document = session.run()
    assert document["status"] == "completed", document["failure"]
    replays_in_all_ways(session, document)


def test_a_definition_of_a_plugin_that_has_changed_stops_a_resume_until_somebody_accepts_it(
    play: Any, site_folder: Path
) -> None:
    offered(site_folder, "acme-before")
    session = play(planner(), DONE, stages=only_named(approvals={"artifact": "required"}))
    document = session.host.run(GIVEN, on_ask="suspend")
    assert document["status"] == "awaiting_approval", document["failure"]
    [item] = session.pending()
    session.answer(item)
    _uninstall(site_folder)
    replays_in_all_ways(session, document)  # which asks no plugin
    offered(site_folder, "acme-after", keys={**JOBS, "description": "Does a job well."})
    session.reopen()
    with pytest.raises(Drift) as caught:
        session.resume()
    [change] = caught.value.facts["changes"]
    assert (change["key"], change["new"]) == ("stages.workflows.jobs.description", "Does a job well.")
    assert session.resume(accept_drift=True)["status"] == "completed"


def test_a_workflow_of_a_plugin_is_begun_by_hand_and_changes_no_session_that_does_not_use_it(
    play: Any, site_folder: Path
) -> None:
    session = play(planner(), DONE, says("Done."))
    session.run()
    digest = session.payloads("session.created")[0]["config_digest"]
    offered(site_folder, "acme-hand")
    session.reopen()
    begun = session.host.wait(session.host.start_workflow("jobs", json.loads(GIVEN)))
    assert begun["status"] == "completed", begun["failure"]
    replays_in_all_ways(session, begun)
    [version] = session.host.workflows()["versions"]
    again = session.host.wait(session.host.start_workflow(version["workflow_version_id"], json.loads(GIVEN)))
    assert again["status"] == "completed", again["failure"]
    session.run()
    assert session.payloads("session.created")[0]["config_digest"] == digest


def _uninstall(site: Path) -> None:
    for made in site.iterdir():
        shutil.rmtree(made)
    importlib.invalidate_caches()
