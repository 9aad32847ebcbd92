from __future__ import annotations

from typing import Any

import pytest

from harness_executor_orchestrate import harness_provide_executors
from harness_hookspecs.contracts.executor import ExecutorContract
from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Executor, Fail, Finish, Outcome, RoleCall, StageInput
from harness_hookspecs.role import OrchestrateTask, parse_task

WORKFLOW = {
    "workflowId": "tickets", "name": "tickets", "definitionHash": "a" * 64, "inputSchema": True, "outputSchema": True,
    "modelSlots": {}, "tools": [], "permissions": {"models": [], "tools": []}, "planner": {"maxRepairs": 0},
    "workers": {}, "memory": [], "limits": {},
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def executor() -> Executor:
    [offer] = harness_provide_executors()
    assert (offer.kind, offer.name) == ("executor", "orchestrate")
    built: Executor = offer.build(None, None)
    return built


def stage_input(**changed: Any) -> StageInput:
    usual: dict[str, Any] = {
        "stage": "triage", "visit_index": 2, "attempt": 3, "persona": "chief", "prompt": "Sort them.", "context": "c",
        "model": "small", "max_turns": 4, "workflows": (WORKFLOW,),
    }  # fmt: skip
    return StageInput(**{**usual, **changed})


class TestOrchestrateExecutor(ExecutorContract):
    def subject(self) -> Executor:
        return executor()

    def stage_input(self, **changed: Any) -> StageInput:
        return super().stage_input(**{"workflows": (WORKFLOW,), **changed})


@pytest.mark.req("A-05")
def test_a_stage_is_one_orchestration_of_what_it_may_run() -> None:
    chief = executor()
    [request] = chief.next(chief.start(stage_input(output_schema=SCHEMA, feedback="no")))
    assert isinstance(request, RoleCall)
    assert (request.role, request.step_path) == ("orchestrator", None)
    task = parse_task(request.task)
    assert isinstance(task, OrchestrateTask)
    assert task.to_wire() == {
        "kind": "orchestrate",
        "available": [WORKFLOW],
        "input": {"prompt": "Sort them.", "context": "c", "feedback": "no", "outputSchema": SCHEMA, "maxTurns": 4},
    }


@pytest.mark.parametrize("output", [None, "text", {"kind": "orchestrate", "output": 1}, [False]])
def test_the_output_is_the_stages_output_whatever_it_is(output: Any) -> None:
    chief = executor()
    state = chief.start(stage_input())
    [request] = chief.next(state)
    assert isinstance(request, RoleCall)
    ended = chief.apply(state, Outcome(request_id=request.request_id, ok=True, value=output))
    assert chief.next(ended) == (Finish(output=output),)


def test_an_error_ends_it_and_what_comes_late_changes_nothing() -> None:
    chief = executor()
    state = chief.start(stage_input())
    [request] = chief.next(state)
    assert isinstance(request, RoleCall)
    ended = chief.apply(state, Outcome(request_id=request.request_id, ok=False, error={"name": "E", "message": "why"}))
    assert chief.next(ended) == (Fail(code="role.failed", message="why"),)
    assert chief.apply(ended, Outcome(request_id=request.request_id, ok=True, value=1)) == ended


def test_an_outcome_of_something_else_is_refused() -> None:
    chief = executor()
    with pytest.raises(IllegalMove) as caught:
        chief.apply(chief.start(stage_input()), Outcome(request_id="other", ok=True))
    assert caught.value.code == "executor.unknown_request"


@pytest.mark.parametrize(
    ("missing", "code"), [({"prompt": " "}, "executor.no_prompt"), ({"workflows": ()}, "executor.no_workflows")]
)
def test_a_stage_without_a_prompt_or_without_workflows_fails_and_says_so(missing: dict[str, Any], code: str) -> None:
    chief = executor()
    [end] = chief.next(chief.start(stage_input(**missing)))
    assert isinstance(end, Fail)
    assert end.code == code
