"""The planner: what a model is told of a definition and of earlier rounds, and what is taken for a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool, says
from harness_hookspecs.errors import RoleError
from harness_hookspecs.role import parse_task
from harness_role_workflow import harness_provide_roles
from harness_role_workflow.addenda import ADDENDA

INPUT = {"type": "object", "required": ["ticket_id"], "properties": {"ticket_id": {"type": "string"}}}
OUTPUT = {
    "type": "object", "required": ["summary", "severity"],
    "properties": {"summary": {"type": "string"}, "severity": {"type": "string"}},
}  # fmt: skip
DEFINITION: dict[str, Any] = {
    "workflowId": "wf", "name": "support.summarise_ticket", "definitionHash": "a" * 64, "inputSchema": INPUT,
    "outputSchema": OUTPUT, "modelSlots": {"small": {"capabilities": []}},
    "tools": [{"name": "tickets.get", "schemaHash": "b" * 64, "tier": "T1"}],
    "permissions": {"models": ["small"], "tools": ["tickets.get"]},
    "planner": {"system": "Plan with care.", "maxRepairs": 2}, "workers": {}, "memory": [], "limits": {},
}  # fmt: skip
PLAN = json.loads((Path(__file__).parents[3] / "tests/cases/lwir/1-summarise-ticket.json").read_text(encoding="utf-8"))


def planning(ctx: FakeRoleContext, **more: Any) -> Any:
    task = parse_task({"kind": "plan", "workflowSnapshot": DEFINITION, "input": {"ticket_id": "7"}, **more})
    [offer] = harness_provide_roles()
    result = offer.build(None, None).run(task, ctx).to_wire()
    assert result["kind"] == "plan"
    return result["lwir"]


@pytest.mark.req("A-10")
def test_whatever_document_a_model_writes_is_the_plan_and_the_hosts_to_judge() -> None:
    assert planning(FakeRoleContext([says(json.dumps(PLAN))])) == PLAN
    assert planning(FakeRoleContext([says('{"dance": true}')])) == {"dance": True}


def test_the_model_is_told_the_definition_and_its_tools_and_may_call_none() -> None:
    tool = FakeTool(description="A ticket.")
    ctx = FakeRoleContext([says("{}")], tools={"tickets_get": tool}, role="planner")
    planning(ctx)
    [chat] = ctx.model.asked
    system, question = chat.messages
    assert system.text.startswith(f"Be brief.\n\nPlan with care.\n\n{ADDENDA['planner'].text}")
    assert "- tickets_get: A ticket." in system.text
    assert chat.tools is None and tool.runs == []
    heading, definition, *_ = question.text.split("\n")
    told = json.loads(definition)
    assert (heading, told["inputSchema"], told["permissions"]["tools"]) == ("Definition:", INPUT, ["tickets.get"])
    assert {"definitionHash", "planner", "memory"}.isdisjoint(told)
    assert question.text.endswith(
        'Input of this run:\n{"ticket_id":"7"}\n\nTask:\nWrite the workflow as one JSON document and nothing else.'
    )


@pytest.mark.req("A-93")
def test_earlier_rounds_and_what_was_wrong_are_told() -> None:
    finding = {
        "severity": "error", "code": "bind.tool_missing", "path": "/steps/0/with/tool", "step": "fetch",
        "message": "there is no tool tickets.got", "hint": "tickets.get",
    }  # fmt: skip
    outer = {
        "cycleNumber": 1, "maxCycles": 2, "isFinalCycle": True, "findings": [finding], "priorLwir": {"steps": []},
        "priorCycles": [{"cycleNumber": 0, "status": "failed", "output": {"n": 1}, "summary": "too slow"}],
    }  # fmt: skip
    ctx = FakeRoleContext([says("{}")])
    planning(ctx, outerLoopContext=outer)
    text = ctx.model.asked[0].messages[1].text
    assert 'Round 0 ended failed:\n{"n":1}\ntoo slow\n\nThe last document:\n{"steps":[]}\n\n' in text
    said = "- error bind.tool_missing at /steps/0/with/tool: there is no tool tickets.got (tickets.get)"
    assert f"What is wrong with it:\n{said}\n\nRound:\nThis is round 1 of 2, the last one.\n\nTask:" in text


def test_the_answer_is_constrained_by_the_schema_that_is_given() -> None:
    ctx = FakeRoleContext([says("{}")], response_schema={"type": "object", "maxProperties": 0})
    planning(ctx)
    assert ctx.model.asked[0].to_wire()["responseSchema"] == {"type": "object", "maxProperties": 0}


def test_without_one_it_is_not_constrained() -> None:
    ctx = FakeRoleContext([says("{}")])
    assert planning(ctx) == {}
    assert "responseSchema" not in ctx.model.asked[0].to_wire()


def test_a_model_that_is_to_write_a_sketch_is_told_what_one_is() -> None:
    whole, short = FakeRoleContext([says("{}")]), FakeRoleContext([says("{}")])
    planning(whole)
    planning(short, form="sketch")
    told = short.model.asked[0].messages[1].text
    assert 'Form:\nA sketch is {"steps": [...]}' in told
    assert told.endswith("Write a sketch of the workflow as one JSON document and nothing else.")
    assert "sketch" not in whole.model.asked[0].messages[1].text


def test_an_answer_that_is_no_document_is_asked_for_again_and_then_given_up() -> None:
    ctx = FakeRoleContext([says("Here it is:"), says("```json\n{}\n```")])
    assert planning(ctx) == {}
    assert "no JSON document" in ctx.model.asked[1].messages[-1].text
    with pytest.raises(RoleError) as caught:
        planning(FakeRoleContext(lambda turn, chat: says("[]")))
    assert caught.value.code == "planner.no_document"
