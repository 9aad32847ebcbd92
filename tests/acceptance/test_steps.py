"""Steps that ask no model, through a whole session: a tool call, a decision, code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.listing import decided, listed, outcomes, ran, replays_equal, step

PURE = step("fetch", "tool.call", {"tool": "effects.pure"}, {"note": "a"})


def manifests(session: Any) -> list[dict[str, Any]]:
    """Of all role calls."""
    refs = [one["manifestHash"] for one in session.payloads("harness.session.started")]
    return [json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in refs]


# --------------------------------------------------------------------------------------------------------- tool.call


@pytest.mark.req("A-39", "A-42")
def test_a_tool_step_calls_its_tool_once_with_what_it_is_given_and_asks_no_model(play: Any) -> None:
    session = play(stages=listed(PURE))
    assert session.run()["status"] == "completed"
    assert outcomes(session) == [{"ok": True, "value": {"done": "effects_pure", "note": "a"}}]
    [started] = session.payloads("harness.tool_call.started")
    assert (started["caller"], started["toolName"], started["callIndex"]) == ("code", "effects_pure", 0)
    assert started["args"] == {"note": "a"}
    assert not [kind for kind in session.types() if kind.startswith("harness.model.")]
    replays_equal(session, roles=1)


@pytest.mark.req("A-57")
def test_the_manifest_of_a_tool_step_names_its_one_tool_and_no_model(play: Any) -> None:
    session = play(stages=listed(PURE))
    session.run()
    [manifest] = manifests(session)
    assert (manifest["role"], manifest["uses"], manifest["stepPath"]) == ("worker.tool-call", "tool.call", "fetch")
    assert [tool["name"] for tool in manifest["tools"]] == ["effects_pure"]
    assert [manifest[key] for key in ("slot", "provider", "modelId", "params")] == ["", "", "", {}]


def test_a_result_that_breaks_the_contract_of_a_tool_step_is_no_output(play: Any) -> None:
    schema = {"type": "object", "required": ["body"], "properties": {"body": {"type": "string"}}}
    output = {"mode": "object", "schema": schema}
    wrong = step("fetch", "tool.call", {"tool": "effects.pure"}, {"note": "a"}, output=output)
    session = play(stages=listed(wrong))
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, "role.output_invalid")
    assert "body" in ended["error"]["message"]


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("effects.gone", {}, "tool.unknown"),
        ("effects.pure", {"nope": 1}, "tool.invalid_args"),
        ("effects.pure", ["a"], "tool.invalid_args"),
        ("effects.fail", {"note": "a"}, "effects.failed"),
    ],
)
def test_a_tool_step_fails_by_what_is_wrong_with_its_call(play: Any, tool: str, args: Any, code: str) -> None:
    session = play(stages=listed(step("fetch", "tool.call", {"tool": tool}, args)))
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, code)
    replays_equal(session, roles=1)


def test_a_tool_step_waits_for_a_person_as_any_call_does(play: Any) -> None:
    session = play(stages=listed(PURE, step("tell", "tool.call", {"tool": "effects.network"}, {"note": "b"})))
    assert session.run()["status"] == "awaiting_approval"
    assert session.effects() == ["a"]
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["a", "b"]
    replays_equal(session, roles=2)


# --------------------------------------------------------------------------------------------------------- decision


@pytest.mark.req("A-39", "A-42", "A-20")
def test_a_decision_takes_the_first_case_that_holds_and_says_what_it_read(play: Any) -> None:
    cases = (("steps.review.last.passed", "publish"), ("visit.index >= 2", "fail"))
    values = {"steps": {"review": {"last": {"passed": False, "feedback": "x" * 2_000}}}, "visit": {"index": 2}}
    session = play(
        stages=listed(
            decided("route", *cases, default="draft", values=values),
            decided("route", *cases, default="draft", values={**values, "visit": {"index": 0}}),
            decided("large", ("steps.review.last != {}", "far"), default="draft", values=values),
        )
    )
    session.run()
    second, default, large = outcomes(session)
    read = {"steps.review.last.passed": False, "visit.index": 2}
    assert second["value"] == {"chosen": "fail", "caseIndex": 1, "values": read}
    assert default["value"] == {"chosen": "draft", "caseIndex": None, "values": {**read, "visit.index": 0}}
    assert large["value"]["chosen"] == "far"
    assert large["value"]["values"]["steps.review.last"]["omitted"] == "too large"
    first = manifests(session)[0]
    assert (first["role"], first["uses"], first["slot"]) == ("worker.code-run", "decision", "")
    assert first["rules"].startswith("common-expression-language")
    assert not [kind for kind in session.types() if kind.startswith("harness.model.")]
    replays_equal(session, roles=3)


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("steps.review.last.pased", "rule.error"),
        ("input.count", "expr.not_boolean"),
        ("input.count = 3", "expr.syntax"),
        ("secrets.key == 'a'", "expr.unknown_root"),
        ("item.name == 'a'", "rule.error"),
    ],
)
def test_what_is_wrong_with_a_condition_is_never_false(play: Any, when: str, code: str) -> None:
    values = {"input": {"count": 3}, "steps": {"review": {"last": {"passed": False}}}}
    session = play(stages=listed(decided("route", (when, "a"), ("true", "b"), default="c", values=values)))
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, code)


# --------------------------------------------------------------------------------------------------------- code.run

TWICE = """async def main(input, tools):
    first = await tools.effects_pure(note=input["note"])
    return [first["note"], (await tools.effects_pure(note=input["note"]))["note"]]
"""


@pytest.mark.req("A-39", "A-42", "A-43", "A-73")
def test_code_calls_its_tools_through_the_log_and_asks_no_model(play: Any) -> None:
    session = play(stages=listed(ran("twice", TWICE, {"note": "a"}, tools=["effects.pure"])))
    session.run()
    assert outcomes(session) == [{"ok": True, "value": ["a", "a"]}]
    started = session.payloads("harness.tool_call.started")
    assert [(one["caller"], one["toolName"], one["callIndex"]) for one in started] == [
        ("code", "effects_pure", 0), ("code", "effects_pure", 1)
    ]  # fmt: skip
    [manifest] = manifests(session)
    assert (manifest["engine"], manifest["uses"], manifest["slot"]) == ("monty@0.1.0", "code.run", "")
    assert not [kind for kind in session.types() if kind.startswith("harness.model.")]
    replays_equal(session, roles=1)


def test_code_that_waits_for_a_person_goes_on_from_its_recorded_calls(play: Any) -> None:
    source = """async def main(input, tools):
    said = []
    for note in ("a", "b"):
        try:
            said.append((await tools.effects_unkeyed(note=note))["note"])
            said.append((await tools.effects_network(note=note))["note"])
        except BaseException:
            said.append("caught")
    return said
"""
    session = play(stages=listed(ran("both", source, tools=["effects.unkeyed", "effects.network"])))
    assert session.run()["status"] == "awaiting_approval"
    assert session.effects() == ["a"]
    for _ in range(2):
        session.reopen()
        session.answer(session.pending()[0])
        session.resume()
    assert outcomes(session) == [{"ok": True, "value": ["a", "a", "b", "b"]}]
    assert session.effects() == ["a", "a", "b", "b"]
    replays_equal(session, roles=1)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("async def main(input, tools):\n    return input['gone']\n", "engine.runtime"),
        ("async def main(input tools):", "engine.syntax"),
        ("async def main(input, tools):\n    return 7\n", "engine.output_invalid"),
        ("async def main(input, tools):\n    return tools.effects_unkeyed\n", "engine.runtime"),
    ],
)
def test_code_that_gives_no_output_says_why(play: Any, source: str, code: str) -> None:
    output = {"mode": "array", "schema": {"type": "array"}}
    session = play(stages=listed(ran("odd", source, {}, tools=["effects.pure"], output=output)))
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, code)
    assert code == "engine.output_invalid" or ended["error"]["details"]["traceback"]
    replays_equal(session, roles=1)


def test_code_is_given_the_whole_of_a_large_result_though_the_log_shows_its_ends(play: Any) -> None:
    source = "async def main(input, tools):\n    return len((await tools.effects_pure(note='x' * 100_000))['note'])\n"
    session = play(stages=listed(ran("long", source, tools=["effects.pure"])))
    session.run()
    assert outcomes(session) == [{"ok": True, "value": 100_000}]
    [succeeded] = session.payloads("harness.tool_call.succeeded")
    assert succeeded["truncated"] and succeeded["resultRef"]
    replays_equal(session, roles=1)


def test_an_engine_that_is_not_there_is_named_with_what_would_bring_it(play: Any) -> None:
    session = play(stages=listed(step("far", "code.run", {"language": "python", "source": "x", "engine": "gone"})))
    session.run()
    [ended] = outcomes(session)
    assert ended["error"]["code"] == "engine.not_available"
    assert "harness-engine-monty" in ended["error"]["details"]["hint"]
    assert "harness.session.failed" in session.types()
    for mode in ("skip-inference", "simulate"):  # it may be there by now, so nobody looks whether it is
        assert session.host.replay("@last", mode)["equal"]


# ------------------------------------------------------------------------------------------------ who may run what


@pytest.mark.req("A-40")
def test_a_parallel_step_is_no_task_of_a_role(play: Any) -> None:
    fan = {"items": "{{ input.n }}", "itemKey": "{{ item }}", "maxBranches": 2, "maxConcurrency": 1}
    inner = PURE["task"]["step"]
    asked = step("fan", "parallel", {**fan, "failureMode": "fail_fast"}, steps=[inner])
    waits = step("pause", "wait", {"durationMs": 5})
    session = play(stages=listed({**asked, "role": "worker.code-run"}, waits))
    session.run()
    fanned, waited = (ended["error"] for ended in outcomes(session))
    assert (fanned["code"], waited["code"]) == ("role.parallel", "role.wait")
    assert "fan-out and waiting belong to the runtime" in fanned["message"]
    assert "harness.session.started" not in session.types()
    replays_equal(session, roles=2)


@pytest.mark.req("A-20")
def test_a_task_runs_under_the_role_of_its_kind_and_no_other(play: Any) -> None:
    session = play(stages=listed({**PURE, "role": "worker.code-run"}, {"role": "planner", "task": {"kind": "dance"}}))
    session.run()
    assert [ended["error"]["code"] for ended in outcomes(session)] == ["role.task_mismatch", "role.invalid_task"]
    assert session.effects() == []
