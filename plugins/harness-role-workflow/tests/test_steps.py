"""Steps that ask no model: what they give, what they refuse, and that they call nothing but what they name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.fake_engine import FakeEngine
from harness_hookspecs.contracts.fake_rules import FakeRules
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool
from harness_hookspecs.contracts.role_steps import StepsContract
from harness_hookspecs.errors import Cancelled, HarnessError, RoleError, RuleError, Suspend, ToolError
from harness_hookspecs.role import RoleHarness, parse_task
from harness_role_workflow import harness_provide_roles

RUN_ID = "019b76da-a800-7000-8000-000000000001"
OBJECT: Mapping[str, Any] = {"type": "object", "required": ["body"], "properties": {"body": {"type": "string"}}}


def run(
    tmp_path: Path, uses: str, with_: Mapping[str, Any], step_input: Any, ctx: FakeRoleContext, **given: Any
) -> Any:
    """The output of a step."""
    host = FakeHost(tmp_path, rules=given.pop("rules", None), engines=given.pop("engines", None))
    step = {"id": "one", "uses": uses, "with": dict(with_), **given}
    if uses != "decision":
        step.setdefault("output", {"mode": "json"})
    where = {"stepPath": "one", "visitIndex": 0}
    task = parse_task({"kind": "execute_step", "step": step, "stepInput": step_input, "stepContext": where})
    [offer] = harness_provide_roles()
    result = offer.build(None, host).run(task, ctx).to_wire()
    assert (result["kind"], result["artifactRefs"], ctx.model.asked) == ("execute_step", [], [])
    return result["output"]


class TestSteps(StepsContract):
    def subject(self) -> RoleHarness:
        [offer] = harness_provide_roles()
        built: RoleHarness = offer.build(None, self.host)
        return built


# --------------------------------------------------------------------------------------------------------- tool.call


@pytest.mark.parametrize(
    ("own", "step_input", "called"),
    [({"id": "7"}, {}, {"id": "7"}), (None, {"id": "7"}, {"id": "7"}), (None, None, {}), ({}, {"id": "7"}, {})],
)
def test_a_tool_is_called_once_with_the_steps_arguments_or_else_its_input(
    tmp_path: Path, own: Any, step_input: Any, called: Any
) -> None:
    tool = FakeTool({"body": "long"})
    ctx = FakeRoleContext(tools={"tickets_get": tool, "other": FakeTool()})
    with_ = {"tool": "tickets.get", **({} if own is None else {"args": own})}
    output = {"mode": "object", "schema": OBJECT}
    assert run(tmp_path, "tool.call", with_, step_input, ctx, output=output) == {"body": "long"}
    assert tool.runs == [called]
    assert [noted.what for noted in ctx.noted] == ["tool"]


@pytest.mark.parametrize(
    ("output", "result", "given"),
    [
        ({"mode": "text"}, "as it is", "as it is"),
        ({"mode": "text"}, {"b": 1.0, "a": None}, '{"a":null,"b":1}'),
        ({"mode": "choice", "values": ["ok", "no"]}, "ok", "ok"),
        ({"mode": "array", "schema": {"type": "array"}}, [1], [1]),
        ({"mode": "json"}, None, None),
    ],
)
def test_a_result_that_keeps_the_contract_is_the_output(
    tmp_path: Path, output: Mapping[str, Any], result: Any, given: Any
) -> None:
    ctx = FakeRoleContext(tools={"look": FakeTool(result)})
    assert run(tmp_path, "tool.call", {"tool": "look"}, {}, ctx, output=output) == given


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ({"mode": "object", "schema": OBJECT}, {"body": 7}),
        ({"mode": "object", "schema": True}, ["body"]),
        ({"mode": "array", "schema": True}, {}),
        ({"mode": "choice", "values": ["ok", "no"]}, "maybe"),
        ({"mode": "json", "schema": False}, 1),
    ],
)
def test_a_result_that_breaks_the_contract_is_none(tmp_path: Path, output: Mapping[str, Any], result: Any) -> None:
    ctx = FakeRoleContext(tools={"look": FakeTool(result)})
    with pytest.raises(RoleError) as caught:
        run(tmp_path, "tool.call", {"tool": "look"}, {}, ctx, output=output)
    assert (caught.value.code, bool(caught.value.facts["findings"])) == ("role.output_invalid", True)


def test_what_a_tool_raises_passes(tmp_path: Path) -> None:
    for stop in (ToolError("no", code="tool.own"), Suspend("approval", "appr_1")):
        with pytest.raises(type(stop)):
            run(tmp_path, "tool.call", {"tool": "look"}, {}, FakeRoleContext(tools={"look": FakeTool(stop)}))


# ---------------------------------------------------------------------------------------------------------- decision


def choose(tmp_path: Path, rules: FakeRules, *cases: str, values: Any = None) -> Any:
    with_ = {"cases": [{"when": when, "to": f"to_{at}"} for at, when in enumerate(cases)], "default": "otherwise"}
    return run(tmp_path, "decision", with_, values or {}, FakeRoleContext(), rules=rules)


def test_cases_are_looked_at_in_order_up_to_the_first_that_holds(tmp_path: Path) -> None:
    rules = FakeRules({"no": False, "yes": True})
    assert choose(tmp_path, rules, "no", "yes", "no")["chosen"] == "to_1"
    assert [text for text, _ in rules.asked] == ["no", "yes"]
    assert choose(tmp_path, rules, "no") == {"chosen": "otherwise", "caseIndex": None, "values": {}}


def test_what_is_no_bool_or_an_error_ends_the_step(tmp_path: Path) -> None:
    odd: tuple[Any, ...] = (1, "true", None, [])
    for held in odd:
        with pytest.raises(RoleError, match="a bool belongs"):
            choose(tmp_path, FakeRules({"odd": held}), "odd")
    with pytest.raises(RuleError, match="no such key"):
        choose(tmp_path, FakeRules({"odd": RuleError("no such key"), "yes": True}), "odd", "yes")


@pytest.mark.parametrize(
    ("when", "read"),
    [
        ("odd.steps.a == steps.a.output", {"steps.a.output": [1]}),
        ("odd || steps.a.output.exists(b, b == 1)", {"steps.a.output": [1]}),
        ("odd || size(input.name) > 3 && visit.index == 0", {"input.name": "x", "visit.index": 0}),
        ("odd || input.name == 'visit.index' || input['name'] == 'it\\'s input.no'", {
            "input.name": "x", "input": {"name": "x"},
        }),
        ("odd || has(input.gone)", {}),
        ("odd || input.name.length", {"input.name": "x"}),
    ],
)  # fmt: skip
def test_what_the_conditions_read_is_told_by_path(tmp_path: Path, when: str, read: Mapping[str, Any]) -> None:
    values = {"steps": {"a": {"output": [1]}}, "input": {"name": "x"}, "visit": {"index": 0}}
    assert choose(tmp_path, FakeRules({when: True}), when, values=values)["values"] == read


# ---------------------------------------------------------------------------------------------------------- code.run


def code(tmp_path: Path, source: str, step_input: Any = None, *, tools: Any = None, **more: Any) -> tuple[Any, Any]:
    engine = FakeEngine()
    with_ = {"language": "python", "source": source, "tools": list(tools or ())}
    ctx = FakeRoleContext(tools={name.replace(".", "_"): tool for name, tool in (tools or {}).items()})
    engines = {"plain": engine}
    return run(tmp_path, "code.run", with_, step_input, ctx, engines=engines, **more), engine.runs[0]


def test_code_runs_with_its_input_its_tools_and_bounds_that_depend_on_its_place_alone(tmp_path: Path) -> None:
    source = "async def main(input, tools):\n    return [input, SEED, EPOCH_MS, await tools.ats_all(id=1)]\n"
    tool = FakeTool(["x"])
    found = [code(tmp_path, source, {"a": 1}, tools={"ats.all": tool}, timeoutMs=1_500) for _ in range(2)]
    (output, asked), again = found
    assert (output, asked) == again
    assert output == [{"a": 1}, asked.seed, int(RUN_ID.replace("-", "")[:12], 16), ["x"]]
    assert (asked.tools, asked.limits.timeout_seconds) == (("ats.all",), 1.5)
    assert tool.runs == [{"id": 1}] * 2


def test_code_may_not_hide_that_a_person_must_decide_or_that_it_is_over(tmp_path: Path) -> None:
    source = """async def main(input, tools):
    for _ in range(3):
        try:
            await tools.look()
        except BaseException:
            pass
"""
    for stop in (Suspend("approval", "appr_1"), Cancelled("over")):
        tool = FakeTool(stop)
        with pytest.raises(type(stop)):
            code(tmp_path, source, tools={"look": tool})
        assert len(tool.runs) == 1


def test_a_tool_error_that_code_does_not_catch_says_so_and_one_that_it_catches_is_its_own_business(
    tmp_path: Path,
) -> None:
    bare = "async def main(input, tools):\n    return await tools.look()\n"
    with pytest.raises(RoleError, match="no such file") as caught:
        code(tmp_path, bare, tools={"look": FakeTool(ToolError("no such file"))})
    assert caught.value.code == "engine.tool"
    catching = bare.replace("    return", "    try:\n        return") + "    except Exception:\n        return 'none'\n"
    assert code(tmp_path, catching, tools={"look": FakeTool(ToolError("no such file"))})[0] == "none"


def test_without_an_engine_the_code_is_refused_with_what_would_bring_one(tmp_path: Path) -> None:
    with pytest.raises(HarnessError) as caught:
        run(tmp_path, "code.run", {"language": "python", "source": "x"}, None, FakeRoleContext())
    assert caught.value.code == "engine.not_available"
    assert "harness-engine-monty" in str(caught.value.hint)
