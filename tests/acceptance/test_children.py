"""A stage whose model runs workflows: each is a session of its own, and the model goes on with what they gave."""

from __future__ import annotations

import json
import re
from operator import attrgetter, itemgetter
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_core.cli.session_text import exit_of_session
from harness_core.shell.child_tools import child_tools
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.role import parse_task
from harness_hookspecs.workflow import Workflow
from tests.orchestra import PLAN, chief, lead, planner, start, worker
from tests.reference import change_log, payloads

NOTES = ("one", "two", "three", "four", "five")
SLOW = {"seconds": 30, "note": "slow"}
QUICK_CANCEL = {"run": {"cancel_grace_sec": 0.1}}


def orchestra(play: Any, *replies: Any, **files: Any) -> Any:
    return play(planner(), *replies, **{"stages": lead(), **files})


def root_of(session: Any) -> str:
    return str(session.host.find("@last"))


def children_of(session: Any) -> list[Any]:
    """The documents of the children, in the order of the calls that asked for them."""
    asked = payloads(session.host.events(root_of(session)), "child.requested")
    known = {one["id"]: one for one in session.host.sessions()}
    return [known[one["child_id"]] for one in sorted(asked, key=itemgetter("call_id")) if one["child_id"] in known]


def results(session: Any) -> list[Any]:
    return [one["result"] for one in session.payloads("harness.tool_call.succeeded")]


@pytest.mark.req("A-89", "A-90")
def test_five_runs_are_five_sessions_below_the_one_whose_model_asked_for_them(play: Any) -> None:
    session = orchestra(play, chief(1, *map(start, NOTES)), chief(2, text="all"), *map(worker, NOTES))
    document = session.run()
    assert (document["status"], document["usage"]["input_tokens"]) == ("completed", 20)
    children = children_of(session)
    assert [one["parent_id"] for one in children] == [document["id"]] * 5
    assert [one["status"] for one in children] == ["completed"] * 5
    assert {one["runId"] for one in results(session)} == {one["id"] for one in children}
    for one in children:
        started = payloads(session.host.events(one["id"]), "harness.session.started")
        assert [(call["runId"], call["parentRunId"]) for call in started] == [(one["id"], document["id"])] * 2
    assert not any("parentRunId" in one for one in session.payloads("harness.session.started"))
    assert {one["caller"] for one in session.payloads("harness.tool_call.started")} == {"model"}
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay(document["id"], mode)["equal"], mode


VERSION = f"wfv_{digest(Workflow.from_wire(PLAN).to_wire())[:32]}"


@pytest.mark.req("A-86")
def test_a_workflow_is_planned_once_and_its_version_runs_as_often_as_the_model_likes(play: Any) -> None:
    plan = ("plan_workflow", {"workflowId": "jobs", "input": {"note": "any"}})
    runs = [("run_workflow", {"workflowVersionId": VERSION, "input": {"note": note}}) for note in NOTES]
    workers = [worker(note, text=f"did {note}") for note in NOTES]
    session = orchestra(play, chief(1, plan), chief(2, *runs), chief(3, text="all"), *workers)
    document = session.run()
    assert document["status"] == "completed"
    goals = [one["goal"] for one in session.payloads("child.requested")]
    assert goals == ["plan", *["run"] * 5]
    first, *others = results(session)
    assert first == {"workflowVersionId": VERSION}
    assert sorted(others) == sorted(f"did {note}" for note in NOTES)
    planners = [one for one in session.host.sessions() if "planner" in roles_of(session, one["id"])]
    assert len(planners) == 1
    for one in session.host.sessions():
        for mode in ("full", "skip-inference", "simulate"):
            report = session.host.replay(one["id"], mode)
            assert report["equal"], (mode, report["diverged"])


@pytest.mark.req("A-86")
def test_a_version_whose_first_run_failed_is_named_to_the_model_and_runs_again(play: Any) -> None:
    again = ("run_workflow", {"workflowVersionId": VERSION, "input": {"note": "two"}})
    broken = {"when": {"stage": "jobs", "contains": "Do one now."}, "error": {"code": "provider.bad_request"}}
    session = orchestra(play, chief(1, start("one")), chief(2, again), chief(3, text="all"), broken, worker("two"))
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("child.failed")
    assert failed["version"]["workflow_version_id"] == VERSION
    assert VERSION in session.payloads("harness.tool_call.failed")[0]["error"]["message"]
    assert results(session) == ["done"]
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay("@last", mode)["equal"], mode


def roles_of(session: Any, session_id: str) -> list[str]:
    return [one["role"] for one in payloads(session.host.events(session_id), "role.requested")]


@pytest.mark.req("A-87", "A-88")
def test_one_call_plans_and_runs_and_two_equal_plans_are_one_version(play: Any) -> None:
    session = orchestra(play, chief(1, start("one"), ("workflow_jobs", {"note": "two"})), chief(2, text="all"),
                        worker("one", text="did one"), worker("two", text="did two"))  # fmt: skip
    session.run()
    found = sorted(results(session), key=itemgetter("output"))
    assert [one["output"] for one in found] == ["did one", "did two"]
    assert [one["workflowVersionId"] for one in found] == [VERSION, VERSION]
    assert sorted(one["runId"] for one in found) == sorted(one["id"] for one in children_of(session))


@pytest.mark.req("A-10")
def test_a_plan_that_is_refused_is_mended_a_round_at_a_time_and_one_that_is_not_is_an_error_of_the_call(
    play: Any,
) -> None:
    broken = {**PLAN, "metadata": {"name": "other"}}
    mended = [planner(PLAN, contains="binding.name_mismatch"), planner(broken)]
    session = play(*mended, chief(1, start("one")), chief(2, text="all"), worker("one"), stages=lead())
    assert session.run()["status"] == "completed"
    [child] = children_of(session)
    assert roles_of(session, child["id"]) == ["planner", "planner", "worker.ai-generate"]
    assert session.host.replay(child["id"], "simulate")["equal"]
    session = play(planner(broken), chief(1, start("one")), chief(2, text="none"), stages=lead())
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "workflow.not_planned"
    assert "other" in failed["error"]["message"]
    assert len(roles_of(session, children_of(session)[0]["id"])) == 3


@pytest.mark.req("A-92")
def test_of_thirty_calls_never_more_than_ten_are_active_at_once(play: Any) -> None:
    notes = [f"job{number}" for number in range(30)]
    session = orchestra(play, chief(1, *map(start, notes)), chief(2, text="all"), *map(worker, notes))
    assert session.run()["status"] == "completed"
    children = children_of(session)
    ends = [event for one in children for event in session.host.events(one["id"], types="session.c*")]
    active = most = 0
    for event in sorted(ends, key=attrgetter("position")):  # over all logs, as they were committed
        active += 1 if event.type == "session.created" else -1
        most = max(most, active)
    assert (len(children), active) == (30, 0)
    assert 5 < most <= 10


def test_a_child_that_fails_is_an_error_that_the_model_decides_about(play: Any) -> None:
    broken = {"when": {"persona": "worker", "contains": '"two"'}, "error": {"code": "provider.bad_request"}}
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="half"), worker("one"), broken)
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == session.host.session(children_of(session)[1]["id"])["failure"]["code"]
    assert [one["status"] for one in session.payloads("child.failed")] == ["failed"]
    assert session.host.replay("@last", "simulate")["equal"]


@pytest.mark.parametrize(
    ("name", "args", "path"),
    [
        ("start_workflow", {"workflowId": "jobs", "input": {"note": 1}}, "/input/note"),
        ("start_workflow", {"workflowId": "jbs", "input": {}}, "/workflowId"),
        ("plan_workflow", {"workflowId": "jobs"}, "input"),
        ("workflow_jobs", {"note": 1}, "/note"),
        ("run_workflow", {"workflowVersionId": "wfv_0", "input": {}}, "wfv_0"),
    ],
)
def test_arguments_that_do_not_fit_come_back_with_where_and_nothing_begins(
    play: Any, name: str, args: Any, path: str
) -> None:
    session = orchestra(play, chief(1, (name, args)), chief(2, text="so"))
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert path in failed["error"]["message"]
    assert children_of(session) == []
    assert "child.requested" not in session.types()


@pytest.mark.req("B-153")
def test_deeper_than_the_limit_is_an_error_that_names_it(play: Any) -> None:
    session = orchestra(play, chief(1, start("one")), chief(2, text="so"), harness={"run": {"max_depth": 0}})
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "child.too_deep"
    assert "run.max_depth is 0" in failed["error"]["message"]


def test_what_a_child_came_to_and_no_result_may_be_is_an_error_of_its_call(play: Any) -> None:
    money = {**PLAN, "output": {"schema": True, "value": {"usage": {"inputTokens": 1, "cost": 2}}}}
    session = play(planner(money), chief(1, start("one")), chief(2, text="so"), worker("one"), stages=lead())
    assert session.run()["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "usage.cost"
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay("@last", mode)["equal"], mode


def test_a_call_whose_child_may_not_be_begun_after_a_crash_any_more_is_an_error_and_the_model_goes_on(
    play: Any,
) -> None:
    session = orchestra(play, chief(1, start("one")), chief(2, text="so"), worker("one"))
    session.run_until_it_breaks("intent.committed@2")
    assert "child.requested" not in session.types()
    session.site.write("harness", {"run": {"max_depth": 0}})
    session.reopen()
    assert session.resume(accept_drift=True)["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "child.too_deep"


def test_a_child_that_waits_for_a_person_is_waited_for_and_its_parent_goes_on_with_it(play: Any) -> None:
    asks = worker("one", ("network", {"note": "sent"}))
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="all"), asks, worker("one", turn=2),
                        worker("two"))  # fmt: skip
    document = session.run()
    [waits, done] = children_of(session)
    assert (done["status"], waits["status"]) == ("completed", "awaiting_approval")
    assert document["status"] == "active"
    assert document["waiting"] == [{"kind": "child", "id": waits["id"], "until": None}]
    assert exit_of_session(document) == 10
    [asked] = session.pending()
    session.answer(asked)
    session.reopen()
    assert session.host.resume(waits["id"], on_ask="suspend")["id"] == document["id"]  # of any member: the root
    assert [one["status"] for one in children_of(session)] == ["completed", "completed"]
    assert session.host.session(document["id"])["status"] == "completed"
    assert session.effects() == ["sent"]
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay(document["id"], mode)["equal"], mode


def test_what_nobody_may_be_asked_about_ends_the_parent_too(play: Any) -> None:
    session = orchestra(play, chief(1, start("one")), chief(2, text="so"), worker("one", ("network", {"note": "no"})))
    document = session.run(on_ask="deny")
    assert (document["status"], exit_of_session(document)) == ("failed", 11)
    assert session.effects() == []


@pytest.mark.req("B-139")
def test_a_cancel_ends_the_children_with_their_parent(play: Any) -> None:
    slow = [worker(note, ("slow", SLOW)) for note in NOTES[:2]]
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), *slow, harness=QUICK_CANCEL)
    found = session.host.start("Go.")
    session.until("harness.tool_call.started", count=4)
    session.host.cancel(found)
    assert session.host.wait(found)["status"] == "cancelled"
    assert [one["status"] for one in children_of(session)] == ["cancelled", "cancelled"]


def test_a_cancel_reaches_children_that_wait_where_nobody_runs_anything(play: Any) -> None:
    session = orchestra(play, chief(1, start("one")), worker("one", ("network", {"note": "no"})))
    found = session.run()["id"]
    session.reopen()
    session.host.cancel(found)
    assert session.host.session(found)["status"] == "cancelled"
    assert [one["status"] for one in children_of(session)] == ["cancelled"]


def test_a_pause_stops_the_children_and_a_resume_goes_on_with_them(play: Any) -> None:
    slow = worker("one", ("slow", {"seconds": 0.5, "note": "slow"}))
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), slow, worker("one", turn=2))
    found = session.host.start("Go.")
    session.until("harness.tool_call.started", count=2)
    session.host.pause(found)
    assert session.host.wait(found)["status"] == "paused"
    assert [one["status"] for one in children_of(session)] == ["paused"]
    session.reopen()
    assert session.host.resume(found)["status"] == "completed"
    assert session.effects() == ["slow"]


def test_children_use_no_more_than_the_budget_of_the_session_they_come_from(play: Any) -> None:
    files = {"harness": {"run": {"budget": {"calls": 4}}}}
    session = orchestra(play, chief(1, *map(start, NOTES)), chief(2, text="all"), *map(worker, NOTES), **files)
    document = session.run()
    assert exit_of_session(document) == 12
    asked = sum(one["calls"] for one in (row["spent"] for row in session.payloads("child.completed")))
    assert asked + 1 <= 4
    session.reopen()
    assert session.host.resume(document["id"], budget={"calls": 50})["status"] == "completed"
    assert len(children_of(session)) == 5


def test_a_child_that_waited_goes_on_with_no_more_time_than_its_parent_has_left(play: Any) -> None:
    asks, slow = worker("one", ("network", {"note": "sent"})), worker("two", ("slow", {"seconds": 0.1, "note": "slow"}))
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="all"), asks, worker("one", turn=2), slow,
                        worker("two", turn=2))  # fmt: skip
    session.run()
    [waits, _] = children_of(session)
    granted = session.payloads("child.granted")[0]["seconds"]
    [passed] = [one["elapsed_ms"] for one in session.payloads("child.completed")]
    assert passed >= 100
    session.answer(session.pending()[0])
    session.reopen()
    assert session.resume()["status"] == "completed"
    [raised] = payloads(session.host.events(waits["id"]), "budget.raised")
    used = sum(one.get("elapsed_ms", 0) for one in payloads(session.host.events(waits["id"]), "budget.settled"))
    assert raised["limits"]["seconds"] <= granted - (passed - used) / 1_000
    assert session.host.replay(waits["id"], "simulate")["equal"]


def test_what_children_use_is_theirs_and_summed_in_the_report_of_the_tree_alone(play: Any, capsys: Any) -> None:
    unsaid = {**worker("two"), "usage": None}
    del unsaid["usage"]
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="all"), worker("one"), unsaid)
    found = session.run()["id"]
    assert session.host.report(found)["usage"]["total_tokens"] == 30
    [top, *below] = session.host.report_of_tree(found)["items"]
    assert (top["own"]["usage"]["total_tokens"], top["own"]["usage"]["known"]) == (30, True)
    assert (top["tree"]["usage"]["total_tokens"], top["tree"]["usage"]["known"]) == (75, False)
    assert (top["tree"]["calls"], top["tree"]["unknown_calls"]) == (6, 1)
    assert sorted(one["own"]["usage"]["known"] for one in below) == [False, True]
    session.host.close()
    assert main(["report", found, "--tree"]) == 0
    shown = capsys.readouterr().out
    assert "75+?" in shown


@pytest.mark.req("A-23", "A-50")
def test_what_the_orchestrator_is_told_of_its_tools_is_what_they_are(play: Any) -> None:
    session = orchestra(play, chief(1, text="none"))
    session.run()
    [asked] = session.payloads("role.requested")
    made = child_tools(parse_task(json.loads(session.host.store.blob(asked["task_ref"]))), {})
    assert made is not None
    prompt = session.host.prompt("@last")
    told = {part["label"]: part["text"] for part in prompt["parts"]}
    functions = dict(re.findall(r"^- (\w+)\(([^)]*)\)", told["role addendum"], re.MULTILINE))
    for name in ("plan_workflow", "run_workflow", "start_workflow"):
        spec = made.tools[name].spec
        assert spec.input_schema["required"] == [one.strip() for one in functions[name].split(",")]
        assert f"- {name}: {spec.description.rstrip('.')}" in told["tools"]


@pytest.mark.req("A-23")
def test_the_tools_of_an_orchestration_are_the_stages_own_and_those_of_the_host(play: Any) -> None:
    session = orchestra(play, chief(1, text="none"), stages=lead(allowed_tools=["effects_pure"]))
    session.run()
    [started] = session.payloads("harness.session.started")
    manifest = json.loads(session.host.store.blob(started["manifestHash"]))
    provided = ["plan_workflow", "run_workflow", "start_workflow", "workflow_jobs"]
    assert manifest["toolsProvided"] == provided
    assert sorted(one["name"] for one in manifest["tools"]) == sorted(["effects_pure", *provided])
    assert {one["tier"] for one in manifest["tools"] if one["name"] in provided} == {"T0"}


def test_a_rule_may_ask_before_a_workflow_is_run(play: Any) -> None:
    policies = {"rules": [{"tool": "start_workflow", "mode": "prompt"}]}
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), worker("one"), policies=policies)
    document = session.run()
    assert (document["status"], children_of(session)) == ("awaiting_approval", [])
    session.answer(session.pending()[0])
    session.reopen()
    assert session.resume()["status"] == "completed"
    assert [one["status"] for one in children_of(session)] == ["completed"]
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay(document["id"], mode)["equal"], mode


def test_a_child_that_a_person_cancels_is_an_error_of_its_call_and_no_other(play: Any) -> None:
    slow, quick = worker("one", ("slow", SLOW)), worker("two")
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="half"), slow, quick)
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.cancel(children_of(session)[0]["id"])
    assert session.host.wait(found)["status"] == "completed"
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "child.cancelled"
    assert len(session.payloads("child.completed")) == 1


def test_an_interrupt_saves_the_children_with_their_parent(play: Any) -> None:
    slow = worker("one", ("slow", {"seconds": 0.5, "note": "slow"}))
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), slow, worker("one", turn=2))
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.interrupt("interrupted")
    assert session.host.wait(found)["status"] == "paused"
    assert [one["status"] for one in children_of(session)] == ["paused"]
    session.reopen()
    assert session.host.resume(found)["status"] == "completed"
    assert session.effects() == ["slow"]


def test_each_log_verifies_and_a_family_is_pruned_together(play: Any) -> None:
    session = orchestra(play, chief(1, *map(start, NOTES[:2])), chief(2, text="all"), *map(worker, NOTES[:2]))
    session.run()
    for one in session.host.sessions():
        report = session.host.verify(one["id"])
        assert report["equal"], report["broken"]
    assert session.host.prune(0)["removed"]
    assert list(session.host.sessions()) == []


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        (lead(workflows=["jbos"]), "config.unknown_name"),
        ({**lead(), "workflows": {"jobs": {"models": {"nobody": {"capabilities": ["vision"]}}}}}, "config.no_model"),
    ],
)
def test_a_stage_that_cannot_orchestrate_says_why_before_anything_runs(play: Any, stages: Any, code: str) -> None:
    with pytest.raises(HarnessError) as caught:
        play(planner(), chief(1, text="none"), stages=stages).run()
    assert caught.value.code == code
    assert "stages.yaml" in str(caught.value.where)


def test_a_person_is_shown_one_session_and_told_where_to_look(play: Any, capsys: Any) -> None:
    asks = worker("one", ("network", {"note": "sent"}))
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), asks, worker("one", turn=2))
    session.host.close()
    assert main(["run", "Go.", "--on-ask", "suspend"]) == 10
    told = capsys.readouterr()
    assert [line for line in told.err.splitlines() if line.startswith("session ")] == [told.err.splitlines()[0]]
    assert "a child session to start jobs" in told.err and "turn 1 answered" in told.err
    assert "harness sessions tree" in told.out and "harness approvals" in told.out
    session.reopen()
    [asked] = session.pending()
    session.answer(asked)
    child = asked["session_id"]
    session.host.close()
    assert main(["resume", child, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["id"] != child) == ("completed", True)


def resting() -> Any:
    """The plan of a job that rests for an hour before its step."""
    rest = {"id": "rest", "uses": "wait", "with": {"durationMs": 3_600_000}}
    [work] = PLAN["steps"]
    return {**PLAN, "steps": [rest, {**work, "needs": ["rest"]}]}


@pytest.mark.parametrize(
    ("plan", "said", "next_command", "note"),
    [
        (PLAN, "(jobs) waits for approval ", "harness approvals answer ", ""),
        (resting(), "(jobs) waits for timer until ", "harness resume ", "# from "),
    ],
)
def test_who_waits_for_a_child_is_told_what_that_waits_for_and_what_to_type(
    play: Any, capsys: Any, plan: Any, said: str, next_command: str, note: str
) -> None:
    asks = worker("one", ("network", {"note": "sent"}))
    session = play(planner(plan), chief(1, start("one")), chief(2, text="all"), asks, stages=lead())
    session.host.close()
    for words, code in ((["run", "Go.", "--on-ask", "suspend"], 10), (["sessions", "show", "@last"], 0)):
        assert main(words) == code
        told = capsys.readouterr().out.splitlines()
        assert any(said in line for line in told), told
        assert any(next_command in line and note in line for line in told), told


def test_who_waits_for_a_child_that_somebody_paused_is_told_so(play: Any, capsys: Any) -> None:
    slow = worker("one", ("slow", {"seconds": 0.5, "note": "slow"}))
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), slow, worker("one", turn=2))
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.pause(children_of(session)[0]["id"])
    assert session.host.wait(found)["status"] == "active"
    session.host.close()
    assert main(["sessions", "show", "@last"]) == 0
    assert "(jobs) is paused" in capsys.readouterr().out


@pytest.mark.inv("I-18")
def test_a_parents_log_alone_is_what_a_replay_of_it_needs(play: Any) -> None:
    broken = {"when": {"stage": "jobs", "contains": "Do two now."}, "error": {"code": "provider.bad_request"}}
    session = orchestra(play, chief(1, *map(start, NOTES[:3])), chief(2, text="all"), broken, *map(worker, NOTES))
    found = session.run()["id"]
    session.host.close()
    its_own = f"SELECT id FROM streams WHERE name = 'session:{found}'"
    change_log(session.site, f"DELETE FROM events WHERE sid NOT IN ({its_own})")
    session.reopen()
    for mode in ("full", "skip-inference", "simulate"):
        assert session.host.replay(found, mode)["equal"], mode


def test_children_of_a_call_that_became_another_one_are_ended_and_others_begun(play: Any) -> None:
    asks = worker("one", ("network", {"note": "sent"}))
    session = orchestra(play, chief(1, start("one")), chief(2, text="all"), asks, worker("one", turn=2))
    document = session.run()
    [first] = children_of(session)
    changed = {**lead(), "roles": {"chief": {"prompt": "You lead."}}}
    session.site.write("stages", changed)
    session.reopen()
    with pytest.raises(HarnessError) as caught:
        session.host.resume(document["id"], on_ask="suspend")
    assert caught.value.code == "config.drift"
    waits = session.host.resume(document["id"], on_ask="suspend", accept_drift=True)
    assert [one["error"]["code"] for one in session.payloads("child.failed")] == ["child.abandoned"]
    [second] = [one for one in session.host.sessions() if one["id"] not in (document["id"], first["id"])]
    assert waits["waiting"] == [{"kind": "child", "id": second["id"], "until": None}]
    session.host.cancel(document["id"])
    session.host.wait(document["id"])
    session.reopen()
    assert {one["status"] for one in session.host.sessions()} == {"cancelled"}
    for mode in ("full", "skip-inference", "simulate"):
        report = session.host.replay(document["id"], mode)
        assert report["equal"], (mode, report["diverged"])
