"""A registered version stays what it is: neither another plan nor another configuration reaches what runs by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness_hookspecs.errors import Drift

OLD, NEW = "the old way", "the new way"


def stages(said: str, note: str = "asks") -> dict[str, Any]:
    """A stage whose plan calls what a person must allow, and gives a text of its own."""
    call = {"id": "call", "uses": "tool.call", "with": {"tool": "effects_network", "args": {"note": note}}}
    code = {"language": "python", "source": f"async def main(input, tools):\n    return {said!r}\n"}
    say = {"id": "say", "uses": "code.run", "needs": ["call"], "with": code, "output": {"mode": "text"}}
    plan = {
        "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "ways"}, "input": {"schema": True},
        "output": {"schema": True, "value": "{{ steps.say.output }}"},
        "permissions": {"models": [], "tools": ["effects_network"]},
        "steps": [{**call, "output": {"mode": "json"}}, say],
    }  # fmt: skip
    stage = {
        "role": "worker", "executor": "workflow", "artifact": "json", "plan": plan, "allowed_tools": ["effects"],
        "on_success": "completed", "on_failure": "failed",
    }  # fmt: skip
    return {"initial": "run", "stages": {"run": stage}}


def finished(session: Any, named: str) -> str:
    """Allow what it waits for, go on with it, and give what it came to."""
    [item] = [one for one in session.pending() if one["session_id"] == named]
    session.answer(item)
    document = session.host.resume(named, on_ask="suspend")
    assert document["status"] == "completed", document["failure"]
    [artifact] = session.host.artifacts(named)
    value: str = json.loads(session.host.artifact(artifact["ref"]))["value"]
    return value


def versions(session: Any) -> Mapping[str, Any]:
    """The plan of each version by its id."""
    found = [one["workflow_version_id"] for one in session.host.workflows()["versions"]]
    return {name: session.host.workflow_version(name)["plan"] for name in found}


@pytest.mark.req("B-154")
def test_what_the_files_say_by_now_changes_neither_a_version_nor_a_session_that_runs(play: Any) -> None:
    session = play(stages=stages(OLD))
    waiting, other = (session.run()["id"] for _ in range(2))
    [version] = registered = versions(session)
    session.site.write("stages", stages(NEW))
    assert finished(session, waiting) == OLD
    session.reopen()
    with pytest.raises(Drift):
        session.host.resume(other, on_ask="suspend")
    newer = session.run()["id"]
    assert finished(session, newer) == NEW
    assert versions(session)[version] == registered[version] == stages(OLD)["stages"]["run"]["plan"]
    assert len(versions(session)) == 2
    assert session.host.session(other)["status"] == "awaiting_approval"
