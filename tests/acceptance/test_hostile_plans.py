"""Plans that are written to harm, in one host: each ends as a finding or as a step's failure, and the host goes on."""

from __future__ import annotations

import json
import resource
from typing import Any

import pytest

from tests.hostile import GIVEN, GOOD, REFUSED, RUNNING, running
from tests.reference import cases, says

MOST_GROWTH_KIB = 400 * 1024
SAID = {"text": "said", "usage": says("")["usage"]}


def peak_kib() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def stage(plan: Any, **more: Any) -> dict[str, Any]:
    """A stage that runs a plan and gives what it gives."""
    usual = {"role": "worker", "executor": "workflow", "artifact": "json", "allowed_tools": ["effects"]}
    return {**usual, "plan": plan, "on_success": "failed", "on_failure": "failed", **more}


@pytest.mark.req("A-10")
@pytest.mark.inv("I-36")
def test_a_plan_that_is_written_to_harm_is_a_finding_and_the_host_checks_the_next(play: Any) -> None:
    assert "Rejected when the config is loaded" in cases("runtime")["BR-084"]["right"]
    session = play(SAID, stages={"initial": "run", "stages": {"run": stage(dict(GOOD), on_success="completed")}})
    assert session.host.check_plan(json.dumps(GOOD).encode())["ok"]
    before, wrong = peak_kib(), {}
    for name, one in REFUSED.items():
        found = session.host.check_plan(one.source)
        said = [(finding["code"], finding["path"]) for finding in found["findings"]]
        if found["ok"] or found["workflow_version_id"] or said[:1] != [(one.code, one.path)]:
            wrong[name] = said[:3]
    assert not wrong, wrong
    assert peak_kib() - before < MOST_GROWTH_KIB
    assert session.host.workflows()["versions"] == []
    assert session.run()["status"] == "completed"


@pytest.mark.inv("I-36")
def test_a_plan_that_harms_only_when_it_runs_fails_its_step_and_the_process_runs_the_next(play: Any) -> None:
    session = play(SAID, stages={"initial": "run", "stages": {"run": stage(dict(GOOD))}})
    before, wrong = peak_kib(), {}
    for name, (_, code) in RUNNING.items():
        session.site.write("stages", {"initial": "run", "stages": {"run": stage(running(name))}})
        session.reopen()
        document = session.host.run(json.dumps(GIVEN))
        if document["status"] != "failed" or document["failure"]["code"] != code:
            wrong[name] = document["failure"] or document["status"]
    assert not wrong, wrong
    assert peak_kib() - before < MOST_GROWTH_KIB
    session.site.write("stages", {"initial": "run", "stages": {"run": stage(dict(GOOD), on_success="completed")}})
    session.reopen()
    assert session.run()["status"] == "completed"
