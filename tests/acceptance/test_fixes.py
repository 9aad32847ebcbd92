"""Repairs of code, plans and their roles through a whole session: what the host makes of what a model proposes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.acceptance.listing import listed, outcomes, ran, repaired, replays_equal
from tests.reference import says

USAGE = says("")["usage"]
BODY = """async def main(input, tools):
    first = await tools.effects_unkeyed(note=input["note"])
    return [first[{key!r}]]
"""
BROKEN, MENDED = BODY.format(key="gone"), BODY.format(key="note")
MORE = MENDED.replace("return [", 'second = await tools.effects_unkeyed(note="more")\n    return [second["note"], ')
OUTPUT = {"mode": "array", "schema": {"type": "array", "items": {"type": "string"}}}


def failing(max_attempts: int = 2, **more: Any) -> dict[str, Any]:
    """A code step that makes a call which cannot be taken back and then breaks."""
    fixer = {"fixer": {"model": "scripted", "maxAttempts": max_attempts}}
    return ran("pick", BROKEN, {"note": "a"}, tools=["effects.unkeyed"], output=OUTPUT, onFailure=fixer, **more)


def mending(of: dict[str, Any] | None = None, prior: int = 0, error: int = 0, **more: Any) -> dict[str, Any]:
    return repaired(of or failing(), {"$outcome": error, "path": ["error"]}, prior=prior, **more)


def proposes(source: str, number: int = 1) -> dict[str, Any]:
    """A reply to that repair."""
    return {"when": {"contains": f"This is repair {number} of"}, "text": source, "usage": USAGE}


def fixing(play: Any, *replies: Any, calls: Any = None) -> Any:
    return play(*replies, stages=listed(*(calls or (failing(), mending()))))


@pytest.mark.req("A-12", "A-43", "A-44", "A-06")
def test_a_repaired_source_is_run_by_the_host_on_the_recorded_results(play: Any) -> None:
    session = fixing(play, proposes(f"```python\n{MENDED}```"))
    assert session.run()["status"] == "completed"
    failed, fixed = outcomes(session)
    assert failed["error"]["code"] == "engine.runtime"
    assert fixed["value"] == {"kind": "fix_step", "output": ["a"], "fixedSource": MENDED, "attempts": 1}
    assert session.effects() == ["a"]  # what the first run did is not done again
    assert [note["facts"] for note in session.payloads("role.note")] == [{"reused": 1}]
    [asked] = session.payloads("harness.model.called")
    messages = [json.loads(session.host.store.blob(ref)) for ref in asked["request"]["messages"]]
    told = messages[1]["content"][0]["text"]
    assert "KeyError" in told and '{"note":"a"}' in told
    assert "done" not in told  # what a tool gave to code no model sees
    assert session.types().count("harness.execute_step.started") == 1  # of the step, and none of its repair
    replays_equal(session, roles=2)


@pytest.mark.req("A-57")
def test_the_manifest_of_a_repair_says_what_is_repaired_with_what(play: Any) -> None:
    session = fixing(play, proposes(MENDED))
    session.run()
    started = session.payloads("harness.session.started")[1]
    assert (started["role"], started["task"]) == ("fixer", {"kind": "fix_step"})
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started['manifestHash']}"))
    kept = ("role", "stepPath", "priorFixAttempts", "maxAttempts", "engine", "slot")
    assert [manifest[key] for key in kept] == ["fixer", "pick", 0, 2, "monty@0.1.0", "scripted"]
    assert [tool["name"] for tool in manifest["tools"]] == ["effects_unkeyed"]
    assert {"sourceHash", "errorDigest"} < manifest.keys() and "stepHash" not in manifest


def test_calls_that_the_first_run_did_not_make_are_made_and_the_next_repair_is_given_theirs_too(play: Any) -> None:
    worse = MORE.replace("first['note']", "first['gone']")
    calls = (failing(), mending(), mending(prior=1))
    session = fixing(play, proposes(worse), proposes(MORE, 2), calls=calls)
    session.run()
    _, first, second = outcomes(session)
    assert (first["error"]["code"], first["error"]["details"]["source"]) == ("fixer.failed", worse)
    assert first["error"]["details"]["error"]["code"] == "engine.runtime"
    assert second["value"]["output"] == ["more", "a"] and second["value"]["attempts"] == 2
    assert session.effects() == ["a", "more"]
    replays_equal(session, roles=3)


LIAR = f'''
from harness_hookspecs import FixStepResult, Offer, hookimpl


class Liar:
    def run(self, task, ctx):
        return FixStepResult(output="a lie", fixed_source={MENDED!r}, attempts=9)


@hookimpl
def harness_provide_roles():
    return [Offer(kind="role", name="liar", build=lambda settings, host: Liar(), roles=("fixer",))]
'''


@pytest.mark.req("A-12")
def test_what_a_fixer_claims_that_its_source_gives_counts_for_nothing(play: Any, site_folder: Path) -> None:
    offer = {"kind": "role", "name": "liar", "roles": ["fixer"]}
    make_distribution(site_folder, "acme-liar", provides=[offer], code=LIAR)
    session = play(stages=listed(failing(), mending()), harness={"bind": {"fixer": "liar"}})
    session.run()
    fixed = outcomes(session)[1]["value"]
    assert (fixed["output"], fixed["attempts"]) == (["a"], 1)
    assert session.effects() == ["a"]
    replays_equal(session, roles=2)


def test_the_step_run_again_with_the_repaired_source_repeats_no_call(play: Any) -> None:
    again = failing()
    again["task"]["step"]["with"]["source"] = MENDED
    session = fixing(play, proposes(MENDED), calls=(failing(), mending(), again))
    session.run()
    assert outcomes(session)[2]["value"] == ["a"]
    assert session.effects() == ["a"]
    replays_equal(session, roles=3)


def test_a_code_step_that_nobody_has_repaired_is_run_anew(play: Any) -> None:
    again = failing()
    again["task"]["step"]["with"]["source"] = MENDED
    session = fixing(play, calls=(failing(), again))
    session.run()
    assert session.effects() == ["a", "a"]


@pytest.mark.inv("I-18")
def test_a_repair_that_the_clock_ended_is_not_run_again_by_a_replay(play: Any) -> None:
    endless = MENDED.replace("return [", "while True:\n        pass\n    return [")
    step = failing(timeoutMs=300)
    session = fixing(play, proposes(endless), calls=(step, mending(step)))
    session.run()
    _, fixed = outcomes(session)
    assert (fixed["error"]["code"], fixed["error"]["details"]["error"]["code"]) == ("fixer.failed", "engine.timeout")
    report = session.host.replay("@last", "skip-inference")
    assert (report["equal"], report["roles_entered"]) == (True, 1), report["diverged"]
    assert session.host.replay("@last", "simulate")["equal"]


@pytest.mark.req("A-46")
def test_after_the_last_repair_that_the_step_allows_it_is_exhausted(play: Any) -> None:
    wrong = MENDED.replace("return [", "return 7 or [")
    calls = (failing(), mending(), mending(prior=1), mending(prior=2))
    session = fixing(play, proposes(BROKEN), proposes(wrong, 2), calls=calls)
    session.run()
    _, first, second, third = outcomes(session)
    assert [one["error"]["code"] for one in (first, second, third)] == [
        "fixer.failed", "fixer.exhausted", "fixer.exhausted"
    ]  # fmt: skip
    assert second["error"]["details"]["error"]["code"] == "engine.output_invalid"
    assert len(session.payloads("harness.model.called")) == 2  # the third was not even begun
    replays_equal(session, roles=4)


@pytest.mark.req("A-44")
def test_a_step_that_allows_no_repair_is_not_repaired(play: Any) -> None:
    plain = ran("pick", BROKEN, {"note": "a"}, tools=["effects.unkeyed"], output=OUTPUT)
    session = fixing(play, proposes(MENDED), calls=(plain, mending(plain)))
    session.run()
    assert outcomes(session)[1]["error"]["code"] == "fixer.not_opted_in"
    assert not session.payloads("harness.model.called")


def test_a_repair_that_waits_for_a_person_goes_on_from_its_answer(play: Any) -> None:
    asks = MENDED.replace("effects_unkeyed", "effects_network")
    step = failing()
    step["task"]["step"]["with"]["tools"] = ["effects.unkeyed", "effects.network"]
    session = fixing(play, proposes(asks), calls=(step, mending(step)))
    assert session.run()["status"] == "awaiting_approval"
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert outcomes(session)[1]["value"]["output"] == ["a"]
    assert session.effects() == ["a", "a"]
    assert len(session.payloads("harness.model.called")) == 1
    replays_equal(session, roles=2)


# -------------------------------------------------------------------------------------------------- plan, orchestrate

DEFINITION: dict[str, Any] = {
    "workflowId": "wf", "name": "w", "definitionHash": "a" * 64, "inputSchema": True, "outputSchema": True,
    "modelSlots": {"scripted": {"capabilities": []}},
    "tools": [{"name": "effects.pure", "schemaHash": "b" * 64, "tier": "T1"}],
    "permissions": {"models": ["scripted"], "tools": ["effects.pure"]}, "planner": {"maxRepairs": 1}, "workers": {},
    "memory": [], "limits": {},
}  # fmt: skip


def planning(**more: Any) -> dict[str, Any]:
    return {"role": "planner", "task": {"kind": "plan", "workflowSnapshot": DEFINITION, "input": {"n": 1}, **more}}


@pytest.mark.req("A-57", "A-93")
def test_a_plan_is_asked_for_and_given_as_it_is_with_a_manifest_of_its_shape(play: Any) -> None:
    prior = [{"cycleNumber": 0, "status": "failed", "output": {"n": 1}}]
    outer = {"cycleNumber": 1, "maxCycles": 2, "isFinalCycle": True, "priorCycles": prior}
    session = play({"json": {"steps": []}, "usage": USAGE}, stages=listed(planning(), planning(outerLoopContext=outer)))
    session.run()
    plan = {"ok": True, "value": {"kind": "plan", "lwir": {"steps": []}}}
    assert outcomes(session) == [plan, plan]
    assert "harness.execute_step.started" not in session.types()
    refs = [one["manifestHash"] for one in session.payloads("harness.session.started")]
    first, again = (json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in refs)
    assert (first["role"], first["definitionHash"]) == ("planner", "a" * 64)
    assert [tool["name"] for tool in first["tools"]] == ["effects_pure"]
    assert "outerLoopHash" not in first and len(again["outerLoopHash"]) == 64
    asked = [one["request"]["messages"] for one in session.payloads("harness.model.called")]
    told = [b"Round 0 ended failed" in b"".join(map(session.host.store.blob, refs)) for refs in asked]
    assert told == [False, True]
    replays_equal(session, roles=2)


@pytest.mark.req("A-57")
def test_an_orchestration_runs_under_a_manifest_of_its_shape(play: Any) -> None:
    task = {"kind": "orchestrate", "available": [DEFINITION], "input": None}
    session = play(stages=listed({"role": "orchestrator", "task": task}))
    session.run()
    [ended] = outcomes(session)
    assert ended["error"]["code"] == "script.exhausted"
    [started] = session.payloads("harness.session.started")
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started['manifestHash']}"))
    provided = ["plan_workflow", "run_workflow", "start_workflow", f"workflow_{DEFINITION['workflowId']}"]
    kept = [manifest[key] for key in ("role", "availableHashes", "toolsProvided")]
    assert kept == ["orchestrator", ["a" * 64], provided]
