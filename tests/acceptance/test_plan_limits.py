"""What a plan says of time and tokens is kept: of a step, of a fan-out and of a run, and in a replay as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_executor_workflow.stage import limits_of
from harness_hookspecs.workflow import Workflow
from tests.reference import says

from .test_workflows import MODELS, generate, plan_of, planned

LONG = 30
HURRY_MS = 150


def slow(name: str, *needs: str, seconds: float = LONG, **more: Any) -> dict[str, Any]:
    settings = {"tool": "effects_slow", "args": {"note": name, "seconds": seconds}}
    return {"id": name, "uses": "tool.call", "needs": [*needs], "with": settings, "output": {"mode": "json"}, **more}


def begun(play: Any, steps: list[Any], value: Any = "x", *replies: Any, **more: Any) -> Any:
    """A session whose one stage runs these steps."""
    permissions = {"models": ["writer"], "tools": ["effects_slow"]}
    plan = plan_of(steps, {"text": value}, permissions=permissions, **more)
    return play(*replies, stages=planned(plan, allowed_tools=["effects"]), models=MODELS)


def ends(session: Any) -> tuple[str, str, str]:
    document = session.host.run('{"names": ["ann", "bob", "cy"]}')
    failure = document["failure"] or {"code": "", "message": ""}
    replays_alike(session)
    assert session.host.verify("@last")["broken"] == []
    return document["status"], failure["code"], failure["message"]


def replays_alike(session: Any) -> None:
    for mode in ("skip-inference", "simulate", "full"):
        report = session.host.replay("@last", mode)
        assert report["equal"], (mode, report["diverged"])


def fan(*steps: Any, **more: Any) -> dict[str, Any]:
    settings = {
        "items": "{{ input.names }}", "itemKey": "{{ item }}", "maxBranches": 5, "maxConcurrency": 2,
        "failureMode": "all_settled",
    }  # fmt: skip
    return {"id": "each", "uses": "parallel", "with": settings, "steps": [*steps], **more}


def test_a_step_that_takes_longer_than_its_time_fails_and_leads_where_its_failure_does(play: Any) -> None:
    status, code, message = ends(begun(play, [slow("a", timeoutMs=HURRY_MS)]))
    assert (status, code) == ("failed", "step.timeout")
    assert "longer than its timeoutMs, 150" in message
    leads = slow("a", timeoutMs=HURRY_MS, onFailure={"to": "b"}, retry={"maxAttempts": 2})
    session = begun(play, [leads, generate("b", "Say {{ steps.a.error.code }}.")], "x", says("so"))
    assert ends(session) == ("completed", "", "")
    failed = [one["error"]["code"] for one in session.payloads("role.failed")]
    assert failed == ["step.timeout", "step.timeout"]
    asked = [json.loads(session.host.store.blob(one["request"]["messages"][-1])) for one in called(session)]
    assert ["Say step.timeout." in json.dumps(one) for one in asked] == [True]


def test_what_a_step_gives_when_its_time_is_over_is_no_result_of_it(play: Any) -> None:
    deaf = slow("a", seconds=0.6, timeoutMs=HURRY_MS)
    deaf["with"]["args"]["deaf"] = True  # it goes on and succeeds, whoever tells it to stop
    session = begun(play, [deaf])
    assert ends(session)[:2] == ("failed", "step.timeout")
    assert session.types().count("harness.tool_call.succeeded") == 1  # that it happened stays known


def test_a_run_that_takes_longer_than_its_time_ends_whatever_catches_it_and_its_last_step_runs(play: Any) -> None:
    steps = [slow("a", onFailure={"to": "b"}, retry={"maxAttempts": 3}), slow("b"), generate("last", "Tidy up.")]
    session = begun(play, steps, "x", says("tidy"), limits={"timeoutMs": HURRY_MS}, **{"finally": "last"})
    status, code, message = ends(session)
    assert (status, code) == ("failed", "limits.timeout")
    assert message.endswith("The run took longer than limits.timeoutMs, 150.")
    paths = [one["stepPath"] for one in session.payloads("harness.execute_step.started")]
    assert paths[-1] == "last" and "b" not in paths and paths.count("a") <= 1


def test_a_run_whose_time_is_over_while_it_only_waits_ends(play: Any) -> None:
    wait = {"id": "w", "uses": "wait", "with": {"durationMs": 3_600_000}}
    assert ends(begun(play, [wait], limits={"timeoutMs": HURRY_MS}))[1] == "limits.timeout"


@pytest.mark.parametrize("before", ["", "await tools.effects_keyed(note='one')"])
def test_code_that_the_time_of_its_run_ended_is_not_run_without_end_in_a_replay(play: Any, before: str) -> None:
    lines = ["async def main(input, tools):", *([f"  {before}"] if before else ()), "  while True:", "    pass"]
    settings: dict[str, Any] = {"language": "python", "engine": "monty", "source": "\n".join(lines)}
    if before:
        settings["tools"] = ["effects_keyed"]
    step = {"id": "a", "uses": "code.run", "with": settings, "output": {"mode": "json"}}
    permissions = {"models": [], "tools": ["effects_keyed"]}
    plan = plan_of([step], {"text": "x"}, limits={"timeoutMs": 400}, permissions=permissions)
    session = play(stages=planned(plan, allowed_tools=["effects"]), models=MODELS)
    assert ends(session)[1] == "limits.timeout"
    assert session.types().count("harness.tool_call.succeeded") == bool(before)


def test_a_run_that_is_done_in_time_waits_for_no_timer(play: Any) -> None:
    session = begun(play, [slow("a", seconds=0, timeoutMs=60_000)], limits={"timeoutMs": 3_600_000})
    assert ends(session)[0] == "completed"
    assert session.types().count("timer.cancelled") == 1


def test_a_time_beyond_the_longest_timer_bounds_nothing(play: Any) -> None:
    never = 2**53 - 1
    steps = [slow("a", seconds=0, timeoutMs=never), fan(slow("b", seconds=0), timeoutMs=never)]
    assert ends(begun(play, steps, limits={"timeoutMs": never, "maxTokens": never})) == ("completed", "", "")


def test_the_time_of_a_fan_out_ends_its_branches_and_leads_where_its_failure_does(play: Any) -> None:
    each = fan(slow("a", retry={"maxAttempts": 3}), timeoutMs=HURRY_MS, onFailure={"to": "b"})
    session = begun(play, [each, generate("b", "Say {{ steps.each.error.code }}.")], "x", says("so"))
    assert ends(session)[0] == "completed"
    paths = [one["stepPath"] for one in session.payloads("harness.execute_step.started")]
    assert paths.count("each[ann].a") <= 1 and not [path for path in paths if "cy" in path]
    assert paths[0] == "each" and paths[-1] == "b"


def called(session: Any) -> list[Any]:
    return list(session.payloads("harness.model.called"))


@pytest.mark.parametrize(("most", "calls"), [(2_000, 1), (20_000, 3), (5, 0)])
def test_a_run_asks_no_model_beyond_its_tokens(play: Any, most: int, calls: int) -> None:
    usage = {"input_tokens": 990, "output_tokens": 10}
    replies = [{"when": {"contains": word}, "text": "said", "usage": usage} for word in ("One.", "Two.", "Three.")]
    steps = [generate("a", "One.", retry={"maxAttempts": 3}), generate("b", "Two.", "a", onFailure={"to": "d"})]
    steps += [generate("c", "Three.", "b"), slow("d", seconds=0)]
    session = begun(play, steps, "x", *replies, limits={"maxTokens": most})
    status, code, message = ends(session)
    assert len(called(session)) == calls
    assert (status, code) == (("completed", "") if calls == 3 else ("failed", "limits.max_tokens"))
    if calls < 3:
        used = 1_000 * calls
        assert f"The run may not use more than limits.maxTokens, {most}: the run has used {used} of {most}" in message
        assert [one["stepPath"] for one in session.payloads("harness.execute_step.started")] == ["a", "b"][: calls + 1]


def test_what_a_call_used_that_nobody_knows_counts_with_all_that_was_reserved(play: Any) -> None:
    replies = [{"when": {"contains": word}, "text": "said"} for word in ("One.", "Two.")]
    steps = [generate("a", "One."), generate("b", "Two.", "a")]
    assert ends(begun(play, steps, "x", *replies, limits={"maxTokens": 2_000}))[1] == "limits.max_tokens"


def test_what_the_last_turn_reserved_and_did_not_use_is_left_for_the_next(play: Any) -> None:
    reply = {"when": {"contains": "One."}, "text": "no JSON", "usage": {"input_tokens": 90, "output_tokens": 10}}
    step = generate("a", "One.", output={"mode": "json"})  # another turn tells the model what is wrong
    session = begun(play, [step], "x", reply, limits={"maxTokens": 1_800})
    assert ends(session)[1] == "artifact.invalid_after_retries"
    assert len(called(session)) == 3


def test_of_a_limit_of_the_plan_and_one_of_its_workflow_the_lower_is_kept() -> None:
    definition = {"limits": {"timeoutMs": 50, "maxTokens": 7}}
    plan = Workflow.from_wire(plan_of([generate("a", "x")], "x", limits={"timeoutMs": 60, "maxStepExecutions": 3}))
    assert limits_of(plan, definition) == {"timeoutMs": 50, "maxTokens": 7, "maxStepExecutions": 3}
