"""An orchestration: the model runs workflows by the tools that it has, and its last answer is the output."""

from __future__ import annotations

from typing import Any

import pytest

from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool, calls, says
from harness_hookspecs.errors import RoleError
from harness_hookspecs.messages import TextPart
from harness_hookspecs.role import OrchestrateResult, RoleTask, parse_task
from harness_role_workflow.role import WorkflowRole

SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
GIVEN = {"prompt": "Sum them.", "context": "three numbers", "maxTurns": 3, "outputSchema": SCHEMA}


def task(given: Any = GIVEN) -> RoleTask:
    workflow = {
        "workflowId": "tickets", "name": "tickets", "description": "Sorts\na ticket.", "definitionHash": "a" * 64,
        "inputSchema": {"type": "object"}, "outputSchema": True, "modelSlots": {}, "tools": [],
        "permissions": {"models": [], "tools": []}, "planner": {"maxRepairs": 0}, "workers": {}, "memory": [],
        "limits": {},
    }  # fmt: skip
    return parse_task({"kind": "orchestrate", "available": [workflow], "input": given})


def context(*script: Any, schema: Any = SCHEMA) -> FakeRoleContext:
    run = FakeTool(7, description="Runs", schema={"type": "object"})
    return FakeRoleContext(list(script), tools={"run_workflow": run}, response_schema=schema, role="orchestrator")


def output_of(ctx: FakeRoleContext, of: RoleTask | None = None) -> Any:
    result = WorkflowRole().run(of or task(), ctx)
    assert isinstance(result, OrchestrateResult)
    return result.to_wire()["output"]


@pytest.mark.req("A-89")
def test_the_output_is_the_answer_after_the_workflows_were_run_by_the_models_own_calls() -> None:
    ctx = context(calls(("c1", "run_workflow", {"n": 1}), ("c2", "run_workflow", {"n": 2})), says('{"sum": 14}'))
    assert output_of(ctx) == {"sum": 14}
    [turn] = [noted.given for noted in ctx.noted if noted.what == "tools"]
    assert [one["toolName"] for one in turn] == ["run_workflow", "run_workflow"]


def test_the_model_is_told_what_is_asked_and_what_there_is_to_run() -> None:
    ctx = context(says('{"sum": 0}'))
    output_of(ctx, task({**GIVEN, "feedback": "it was no sum"}))
    [system, question] = ctx.model.asked[0].messages
    told = "".join(part.text for part in question.content if isinstance(part, TextPart))
    for words in ("three numbers", "Sum them.", '- tickets: Sorts a ticket. Input: {"type":"object"}', "no sum"):
        assert words in told
    assert "maxTurns" not in told
    assert "You reach the goal by running workflows" in str(system.content)


def test_an_input_of_another_form_is_told_as_it_is() -> None:
    ctx = context(says("fine"), schema=None)
    assert output_of(ctx, task({"numbers": [1, 2]})) == "fine"
    assert '"numbers":[1,2]' in str(ctx.model.asked[0].messages[1].content)


def test_an_answer_that_does_not_fit_is_asked_for_again_and_never_guessed() -> None:
    ctx = context(says('{"sum": "many"}'), says("14"), says('{"sum": 14}'))
    assert output_of(ctx) == {"sum": 14}
    with pytest.raises(RoleError) as caught:
        output_of(context(says("x"), says("y"), says("z")))
    assert caught.value.code == "role.output_invalid"


def test_its_turns_are_those_of_its_stage() -> None:
    ask = calls(("c1", "run_workflow", {"n": 1}))
    with pytest.raises(RoleError) as caught:
        output_of(context(ask, ask, ask))
    assert (caught.value.code, caught.value.facts["turns"]) == ("role.turns_exhausted", 3)
