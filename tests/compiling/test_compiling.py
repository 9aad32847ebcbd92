"""The sample plans compile to the ids they have, however they are written; what a lock holds, and what drift is."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_executor_workflow.compiling.findings import CODES
from harness_executor_workflow.executor import WorkflowExecutor
from harness_hookspecs.compiler import Compilation, KnownModel, VersionLock
from harness_hookspecs.executor import Compiles
from harness_hookspecs.workflow import WorkflowDefinitionSnapshot
from tests.compiling.there import PLANS, changed, definition, surroundings, tool

COMPILER = WorkflowCompiler()
VERSIONS = {
    "1": "wfv_a245673b561da9832927c7f75eba087f",
    "2": "wfv_828be39c6c6e68896837b72133b75726",
    "3": "wfv_5361bb610128ab8c715131cc8886a0f2",
    "4": "wfv_b6de6eb101239e473af81e302ca64bcc",
}
BOUNDS = {"1": 2, "2": 1, "3": 10, "4": 55}


def compiled(plan: Any, **more: Any) -> Compilation:
    found = COMPILER.compile(plan, surroundings(**more))
    assert found.ok, [one.to_wire() for one in found.findings]
    return found


@pytest.mark.req("A-87")
@pytest.mark.parametrize("name", PLANS)
def test_a_sample_plan_has_its_id_and_no_finding(name: str) -> None:
    found = compiled(PLANS[name], definition=definition(PLANS[name]))
    assert found.findings == ()
    assert found.workflow_version_id == VERSIONS[name]
    assert found.lwir_hash is not None and found.lwir_hash.startswith(VERSIONS[name].removeprefix("wfv_"))
    assert found.max_step_executions == BOUNDS[name]
    assert found.plan is not None and found.plan.to_wire() == PLANS[name]


@pytest.mark.req("A-87")
def test_layout_and_the_order_of_keys_are_no_part_of_a_plan() -> None:
    backwards = json.dumps(dict(reversed(PLANS["1"].items())), indent=4)
    versions = {compiled(source).workflow_version_id for source in (PLANS["1"], backwards, backwards.encode())}
    assert versions == {VERSIONS["1"]}


def test_the_executor_of_plans_has_the_compiler_that_checks_them() -> None:
    executor = WorkflowExecutor(lambda: surroundings().rules)
    assert isinstance(executor, Compiles)
    assert executor.compiler().compile(PLANS["1"], surroundings()).workflow_version_id == VERSIONS["1"]


def test_one_letter_more_is_another_plan() -> None:
    assert compiled(changed("1", metadata__description="x")).workflow_version_id != VERSIONS["1"]


def test_the_same_plan_on_another_machine_has_its_id_and_a_lock_of_its_own() -> None:
    here, there = compiled(PLANS["1"]), compiled(PLANS["1"], models={"small": KnownModel("local", "qwen")})
    assert here.workflow_version_id == there.workflow_version_id
    assert here.lock != there.lock


# ---------------------------------------------------------------------------------------------------- lock


def lock(plan: str, **more: Any) -> VersionLock:
    found = compiled(PLANS[plan], **more).lock
    assert found is not None
    return found


def test_a_lock_holds_what_the_plan_uses_and_no_more() -> None:
    found = lock("2", definition=definition(PLANS["2"])).to_wire()
    assert found["workflowVersionId"] == VERSIONS["2"]
    assert len(found["workflowDefinitionHash"]) == 64
    assert found["tools"] == [
        {"name": "ats.candidates", "schemaHash": "ab" * 32, "tier": "T1", "plugin": "tool-sample@0.1.0"}
    ]
    assert found["models"] == [{"slot": "coder", "provider": "scripted", "modelId": "model-coder"}]
    assert found["engines"] == [{"name": "python", "version": "3.11"}]
    assert found["rulesEngine"].startswith("common-expression-language ")
    assert found["compilerVersion"] == "0.1.0"
    assert VersionLock.from_wire(found) == lock("2", definition=definition(PLANS["2"]))


def test_a_lock_has_no_engine_for_a_plan_without_code() -> None:
    assert lock("1").engines == ()


def with_code(*engines: str | None) -> Any:
    """A plan of steps of code, each of which names its engine or none."""
    [step] = [one for one in PLANS["2"]["steps"] if one["uses"] == "code.run"]
    named = [{"engine": engine} if engine is not None else {} for engine in engines]
    steps = [{**step, "id": f"s{number}", "with": step["with"] | more} for number, more in enumerate(named)]
    return {**PLANS["2"], "output": {"schema": True, "value": None}, "steps": steps}


@pytest.mark.parametrize(
    ("engines", "locked"),
    [((None,), ["usual"]), (("other",), ["other"]), (("other", None), ["other", "usual"])],
)
def test_a_lock_has_the_engines_that_run_the_code_and_no_other_that_is_installed(
    engines: tuple[str | None, ...], locked: list[str]
) -> None:
    there = surroundings(engines={"other": "1", "third": "3", "usual": "2"}, engine="usual")
    found = COMPILER.compile(with_code(*engines), there).lock
    assert found is not None
    assert [one.name for one in found.engines] == locked


def test_how_a_plan_is_planned_is_nothing_to_its_lock() -> None:
    usual = definition(PLANS["2"])
    again = {"system": "Plan otherwise.", "maxRepairs": 3}
    planned = usual.to_wire() | {"planner": again, "definitionHash": "ef" * 32, "description": "another"}
    other = WorkflowDefinitionSnapshot.from_wire(planned)
    assert lock("2", definition=other) == lock("2", definition=usual)
    narrower = WorkflowDefinitionSnapshot.from_wire(planned | {"limits": {"maxStepExecutions": 100}})
    assert lock("2", definition=narrower) != lock("2", definition=usual)


def test_nothing_has_drifted_where_nothing_changed() -> None:
    assert list(COMPILER.drift(lock("1"), lock("1"))) == []


def test_drift_is_told_one_thing_a_line() -> None:
    changed_tool = tool("tickets.get", {"id": {"type": "string"}}, tier="T0")._replace(schema_hash="ef" * 32)
    usual = surroundings()
    now = replace(
        usual,
        tools={**usual.tools, "tickets.get": changed_tool},
        models={**usual.models, "small": KnownModel("local", "model-small")},
        definition=definition(PLANS["1"]),
    )
    found = COMPILER.compile(PLANS["1"], now).lock
    assert found is not None
    assert [str(one) for one in COMPILER.drift(lock("1"), found)] == [
        f"workflowDefinitionHash: new, {found.workflow_definition_hash}",
        f"tools tickets.get schemaHash: {'ab' * 32} -> {'ef' * 32}",
        "tools tickets.get tier: T1 -> T0",
        "models small provider: scripted -> local",
    ]


def test_what_came_and_what_went_is_told_by_name() -> None:
    [*_, gone, came] = [str(one) for one in COMPILER.drift(lock("1"), lock("4")) if one.what.startswith("tools")]
    assert gone.startswith("tools repo.scan: new, repo.scan ")
    assert came.startswith("tools tickets.get: gone, was tickets.get ")


# ---------------------------------------------------------------------------------------------------- size


def chain(count: int) -> Any:
    """A plan of so many steps, each of which reads the one before."""
    steps = [
        {"id": f"s{number}", "uses": "ai.generate", "needs": [f"s{number - 1}"] if number else [],
         "with": {"model": "small", "prompt": f"Go on: {{{{ steps.s{number - 1}.output }}}}" if number else "Begin"},
         "output": {"mode": "text"}}
        for number in range(count)
    ]  # fmt: skip
    value = f"{{{{ steps.s{count - 1}.output }}}}"
    return changed("1", steps=steps, output__schema={"type": "string"}, output__value=value)


def diamonds(count: int) -> Any:
    """Forks and joins in a row; the last step reads each of the joins, all of which are surely set."""
    steps: list[Any] = []
    for number in range(count):
        before = [f"join{number - 1}"] if number else []
        text = {"output": {"mode": "text"}, "uses": "ai.generate"}
        one = {"model": "small", "prompt": "Say"}
        cases = [{"when": "input.ticket_id == 'a'", "to": f"left{number}"}]
        steps += [
            {"id": f"fork{number}", "uses": "decision", "needs": before,
             "with": {"cases": cases, "default": f"right{number}"}},
            {"id": f"left{number}", **text, "with": one},
            {"id": f"right{number}", **text, "with": one},
            {"id": f"join{number}", **text, "needs": [f"left{number}", f"right{number}"], "with": one},
        ]  # fmt: skip
    read = " ".join(f"{{{{ steps.join{number}.output }}}}" for number in range(count - 1))
    steps[-1] = {**steps[-1], "with": {"model": "small", "prompt": read}}
    return changed("1", steps=steps, output__schema={"type": "string"}, output__value=read)


@pytest.mark.parametrize("plan", [chain(200), diamonds(50)], ids=["chain", "diamonds"])
def test_a_plan_of_two_hundred_steps_compiles_in_well_under_a_second(plan: Any) -> None:
    compiled(plan)
    started = time.process_time()
    compiled(plan)
    assert time.process_time() - started < 0.8


def test_choices_that_nobody_can_follow_are_refused_and_not_followed() -> None:
    """One of twenty pairs of choices, where all first ones are made before all second ones: 2^20 cases."""
    text = {"uses": "ai.generate", "with": {"model": "small", "prompt": "Say"}, "output": {"mode": "text"}}
    forks = [
        {"id": f"d{number}", "uses": "decision",
         "with": {"cases": [{"when": f"input.ticket_id == '{number}'", "to": f"a{number}"}], "default": "end"}}
        for number in range(40)
    ]  # fmt: skip
    firsts = [{"id": f"a{number}", **text} for number in range(20)]
    seconds = [{"id": f"a{number}", **text, "needs": [f"a{number - 20}"]} for number in range(20, 40)]
    last = {"id": "last", **text, "needs": [one["id"] for one in seconds]}
    value = {"summary": "{{ steps.last.output }}", "severity": "low"}
    plan = changed("1", steps=[*forks, *firsts, *seconds, last], output__value=value)
    started = time.process_time()
    [one] = COMPILER.compile(plan, surroundings()).findings
    assert time.process_time() - started < 5
    assert one.code == "output.maybe_unset" and "more choices than can be followed" in one.message


# --------------------------------------------------------------------------------------------------- pages


def test_the_readme_has_a_line_for_each_code() -> None:
    page = Path(__file__).parents[2] / "plugins/harness-executor-workflow/README.md"
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = dict(line.strip("| ").replace("`", "").split(" | ", 1) for line in lines)
    assert {code: told.get(code) for code in CODES} == dict(CODES)
