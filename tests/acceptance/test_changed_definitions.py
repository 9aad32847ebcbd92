"""A definition that changes under a session that runs: that session never sees it, a new one does, versions stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.test_children import children_of
from tests.acceptance.test_planned_stages import DONE, GIVEN, stages
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import payloads

SLOW = ("slow", {"seconds": 0.5, "note": "slow"})


def changed(description: str) -> dict[str, Any]:
    """The stages of an orchestration, with another definition of its workflow."""
    written = lead()
    return {**written, "workflows": {"jobs": {**written["workflows"]["jobs"], "description": description}}}


def told(session: Any) -> list[str]:
    """What the workflow of each child was said to be for."""
    found = []
    for child in children_of(session):
        [created] = payloads(list(session.host.events(child["id"])), "session.created")
        spec = json.loads(session.host.artifact(f"artifact://sha256-{created['workflow_ref']}"))
        found.append(spec["workflow"]["description"])
    return found


@pytest.mark.req("B-154")
def test_a_definition_that_changes_while_a_session_runs_does_not_reach_it_and_a_new_one_sees_it(play: Any) -> None:
    script = [
        chief(1, start("one")), chief(2, start("two")), chief(3, text="all"), planner(),
        worker("one", SLOW), worker("one", turn=2), worker("two"),
    ]  # fmt: skip
    session = play(*script, stages=lead())
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.site.write("stages", changed("Does something else."))
    assert "child.completed" not in session.types(), "it runs"
    assert session.host.wait(found)["status"] == "completed"
    assert told(session) == ["Does a job.", "Does a job."]
    session.reopen()
    assert session.host.run("Go.")["status"] == "completed"
    assert told(session) == ["Does something else.", "Does something else."]


@pytest.mark.req("B-154")
def test_a_version_stays_as_it_was_registered_whatever_becomes_of_the_definition(play: Any) -> None:
    session = play(planner(), DONE, stages=stages())
    assert session.host.run(GIVEN)["status"] == "completed"
    [version] = session.host.workflows()["versions"]
    name = version["workflow_version_id"]
    before = session.host.workflow_version(name)
    changed = {"description": "Does jobs.", "planner": {"system": "Plan well."}}
    for more, code in (({}, None), ({"output": {"type": "integer"}}, "workflow.rejected")):
        session.site.write("stages", stages({**changed, **more}))
        session.reopen()
        assert session.host.workflow_version(name)["plan"] == before["plan"]
        again = session.host.wait(session.host.start_workflow(name, json.loads(GIVEN)))
        assert (again["failure"] or {"code": None})["code"] == code  # it runs for the workflow as that is now
        assert session.host.workflow_version(name)["plan"] == before["plan"]
