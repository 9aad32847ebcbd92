"""A stage that names a plan: its steps run as role calls, and a process that dies in the midst of them costs none."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.kit import codec
from tests.reference import HARNESS, Site, calls, says, scripted_models, write_site

LWIR = Path(__file__).parents[1] / "cases" / "lwir"
RELEASE_NOTE = codec.loads((LWIR / "3-draft-review-loop.json").read_bytes())
GIVEN = json.dumps({"diff": "+ a line"})

DESK = '''
from harness_hookspecs import hookimpl, Offer
from harness_hookspecs.role import ExecuteStepResult

class Desk:
    """Decides as the release note's plan says, and writes a file by saying so."""

    def run(self, task, ctx):
        values = task.step_input
        if task.step.uses == "decision":
            passed = values["steps"]["review"]["last"]["passed"]
            output = {"chosen": "publish" if passed else "draft", "caseIndex": 0}
        else:
            output = {"text": "written: " + task.step.with_.args["note"]}
        return ExecuteStepResult(output=output, artifact_refs=())

@hookimpl
def harness_provide_roles():
    roles = ("worker.code-run", "worker.tool-call")
    return [Offer(kind="role", name="desk", build=lambda settings, host: Desk(), roles=roles)]
'''

DESK_OFFER = {"kind": "role", "name": "desk", "roles": ["worker.code-run", "worker.tool-call"]}

DRAFTS = [
    {"when": {"contains": "nothing yet"}, "text": "first draft"},
    {"when": {"contains": "Judge this note:\nfirst draft"}, "json": {"passed": False, "feedback": "too short"}},
    {"when": {"contains": "Reviewer said: too short"}, "text": "second draft"},
    {"when": {"contains": "Judge this note:\nsecond draft"}, "json": {"passed": True, "feedback": "good"}},
]


def planned(plan: Any, **stage: Any) -> dict[str, Any]:
    """A stages.yaml with one stage that runs a plan."""
    usual = {"role": "worker", "executor": "workflow", "plan": plan, "on_success": "completed", "on_failure": "failed"}
    return {"initial": "note", "stages": {"note": {**usual, **stage}}}


def generate(name: str, prompt: str, *needs: str, **more: Any) -> dict[str, Any]:
    settings = {"model": "writer", "prompt": prompt}
    return {"id": name, "uses": "ai.generate", "needs": [*needs], "with": settings, "output": {"mode": "text"}, **more}


def plan_of(steps: list[Any], value: Any, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "test"},
        "input": {"schema": True}, "output": {"schema": True, "value": value},
        "permissions": {"models": ["writer"], "tools": []}, "steps": steps, **more,
    }  # fmt: skip


WIDE = plan_of(
    [
        {
            "id": "each", "uses": "parallel",
            "with": {
                "items": "{{ input.names }}", "itemKey": "{{ item }}", "maxBranches": 5, "maxConcurrency": 2,
                "failureMode": "all_settled", "fanIn": {"outputStep": "praise"},
            },
            "steps": [
                generate("greet", "Greet {{ item }}."),
                generate("praise", "Praise: {{ steps.greet.output }}", "greet"),
            ],
        },
        generate("sum", "Sum up {{ steps.each.output.map(b, b.output) }}.", "each"),
        generate("last", "Tidy up."),
    ],
    {"text": "{{ steps.sum.output }}"},
    **{"finally": "last"},
)  # fmt: skip
WIDE_REPLIES = [
    *({"when": {"contains": f"Greet {name}."}, "text": f"hello {name}"} for name in ("ann", "bob", "cy")),
    *({"when": {"contains": f"Praise: hello {name}"}, "text": f"great {name}"} for name in ("ann", "bob", "cy")),
    {"when": {"contains": 'Sum up ["great ann","great bob","great cy"].'}, "text": "all great"},
    {"when": {"contains": "Tidy up."}, "text": "tidy"},
]
MODELS = scripted_models("writer", "judge")
NAMES = json.dumps({"names": ["ann", "bob", "cy"]})


def text_of(session: Any) -> str:
    [artifact] = session.host.artifacts("@last")
    return str(json.loads(session.host.artifact(artifact["ref"]))["text"])


@pytest.mark.req("A-05", "A-94")
def test_the_plan_of_a_stage_runs_to_its_output(play: Any, site_folder: Path) -> None:
    make_distribution(site_folder, "acme-desk", provides=[DESK_OFFER], code=DESK)
    plan = {**RELEASE_NOTE, "output": {"schema": True, "value": "{{ steps.publish.output }}"}}
    writes = {"tool": "effects.keyed", "args": {"note": "{{ steps.draft.last }}"}}
    plan["permissions"] = {**plan["permissions"], "tools": ["effects.keyed"]}
    plan["steps"] = [*plan["steps"][:3], {**plan["steps"][3], "with": writes, "output": {"mode": "json"}}]
    bind = {"bind": {"worker.code-run": "desk", "worker.tool-call": "desk"}}
    session = play(*DRAFTS, stages=planned(plan, allowed_tools=["effects"]), harness=bind, models=MODELS)
    document = session.host.run(GIVEN)
    assert document["status"] == "completed", document["failure"]
    assert text_of(session) == "written: second draft"
    started = session.payloads("harness.execute_step.started")
    assert [(one["stepPath"], one["visitIndex"], one["uses"]) for one in started] == [
        ("draft.visit[0]", 0, "ai.generate"),
        ("review.visit[0]", 0, "ai.generate"),
        ("route.visit[0]", 0, "decision"),
        ("draft.visit[1]", 1, "ai.generate"),
        ("review.visit[1]", 1, "ai.generate"),
        ("route.visit[1]", 1, "decision"),
        ("publish", 0, "tool.call"),
    ]


def test_branches_of_a_plan_run_side_by_side_and_join(play: Any) -> None:
    session = play(*WIDE_REPLIES, stages=planned(WIDE), models=MODELS)
    document = session.host.run(NAMES)
    assert document["status"] == "completed", document["failure"]
    assert text_of(session) == "all great"
    paths = {one["stepPath"] for one in session.payloads("harness.execute_step.succeeded")}
    assert all(session.host.replay("@last", mode)["equal"] for mode in ("full", "simulate", "skip-inference"))
    names = ("ann", "bob", "cy")
    assert paths == {f"each[{name}].{step}" for name in names for step in ("greet", "praise")} | {"each", "sum", "last"}


def test_a_failed_step_is_named_and_the_last_step_runs(play: Any) -> None:
    broken = [WIDE_REPLIES[0], {"when": {"contains": "Tidy up."}, "text": "tidy"}]
    plan = {**WIDE, "steps": [generate("only", "Greet eve."), WIDE["steps"][2]]}
    session = play(*broken, stages=planned({**plan, "output": {"schema": True, "value": "x"}}), models=MODELS)
    failure = session.host.run(NAMES)["failure"]
    assert failure["code"] == "script.exhausted"
    assert "Step only (visit 0, attempt 1) failed: The script has no reply" in failure["message"]
    assert [one["stepPath"] for one in session.payloads("harness.execute_step.succeeded")] == ["last"]


def test_a_plan_that_waits_a_little_goes_on_by_itself_and_one_that_waits_long_is_given_back(play: Any) -> None:
    for wait_ms, status in ((5, "completed"), (3_600_000, "active")):
        plan = plan_of([{"id": "w", "uses": "wait", "with": {"durationMs": wait_ms}}], {"text": "x"})
        session = play(stages=planned(plan), models=MODELS)
        document = session.host.run(NAMES)
        assert (document["status"], len(document["waiting"])) == (status, int(status == "active"))
        assert session.host.verify(document["id"])["broken"] == []


@pytest.mark.parametrize(
    ("plan", "code", "said"),
    [
        ({"kind": "Workflow"}, "workflow.rejected", "the plan was not registered: apiVersion is missing"),
        (plan_of([generate("a", "{{ steps.b")], "x"), "workflow.rejected", "The braces are not closed."),
        (plan_of([generate("a", "x", sensitive=True)], "x"), "workflow.rejected", "a is sensitive"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_call(play: Any, plan: Any, code: str, said: str) -> None:
    session = play(says("unused"), stages=planned(plan), models=MODELS)
    failure = session.host.run("Go.")["failure"]
    assert said in failure["message"]
    assert failure["code"] == code
    assert "role.requested" not in session.types()


@pytest.mark.inv("I-19")
def test_no_other_model_answers_for_one_that_is_gone(play: Any) -> None:
    wait = {"id": "w", "uses": "wait", "needs": ["a"], "with": {"durationMs": 200}}
    steps = [generate("a", "one"), wait, generate("b", "two", "w")]
    steps[2]["with"]["model"] = "judge"
    plan = plan_of(steps, {"text": "x"}, permissions={"models": ["writer", "judge"], "tools": []})
    parks = {"run": {"park_after_sec": 0}}
    session = play(says("one"), says("two"), stages=planned(plan), models=MODELS, harness=parks)
    assert session.run()["status"] == "active"  # it waits between the two
    session.site.write("models", scripted_models("writer"))
    session.site.write("harness", {})
    session.reopen()
    failure = session.resume(accept_drift=True)["failure"]
    assert failure["code"] == "role.no_model"
    assert "the step names the model judge, which is not here; models: scripted, writer" in failure["message"]
    called = session.payloads("harness.model.called")
    assert {one["request"]["model"]["modelId"] for one in called} == {"writer"}
    assert session.host.verify("@last")["broken"] == []
    assert session.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.inv("I-19")
def test_a_call_that_waits_and_whose_model_is_gone_is_ended_and_the_plan_refused(play: Any) -> None:
    asking = generate("a", "one")
    asking["with"] |= {"model": "judge", "tools": ["effects_network"]}
    permissions = {"models": ["judge"], "tools": ["effects_network"]}
    stages = planned(plan_of([asking], {"text": "x"}, permissions=permissions))
    stages["stages"]["note"]["allowed_tools"] = ["effects"]
    session = play(calls(("network", {"note": "n"})), says("one"), stages=stages, models=MODELS)
    assert session.run()["status"] == "awaiting_approval"
    session.site.write("models", scripted_models("writer"))
    session.reopen()
    assert "no model slot judge" in session.resume(accept_drift=True)["failure"]["message"]
    types = session.types()
    assert types.index("harness.session.failed") < types.index("role.failed")  # what has begun is ended, too
    assert session.host.verify("@last")["broken"] == []


@pytest.mark.req("A-84")
@pytest.mark.parametrize("point", ["effect.done@1", "effect.done@4", "append.committed@4", "append.committed@8"])
def test_a_process_that_is_killed_within_a_plan_costs_no_finished_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    from harness_core import Host

    site: Site = write_site(tmp_path, stages=planned(WIDE), replies=WIDE_REPLIES, models=MODELS)
    environment = site.process_env(HARNESS_FAILPOINT=f"{point}:kill")
    killed = subprocess.run([*HARNESS, "run", NAMES], cwd=site.project, env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    site.enter(monkeypatch)
    with Host.open(site.project) as host:
        ended = [event for event in host.events("@last") if event.type == "harness.execute_step.succeeded"]
        # A fan-out has such an event too, of the runtime's own, and asks no model.
        done = [_path(event) for event in ended if "role_call_id" in json.loads(event.refs)]
        document = host.resume("@last")
        assert document["status"] == "completed", document["failure"]
        events = list(host.events("@last"))
        assert {_path(event) for event in events if event.type == "harness.execute_step.succeeded"} >= set(done)
        asked = Counter(json.loads(one.payload)["request_id"] for one in events if one.type == "role.requested")
        assert set(asked.values()) == {1}
        called = Counter(_path(event) for event in events if event.type == "harness.model.called")
        assert [called[path] for path in done] == [1] * len(done)  # and only what was under way is asked again
        assert sum(called.values()) <= 8 + 2


def _path(event: Any) -> str:
    return str(json.loads(event.refs)["step_path"])
