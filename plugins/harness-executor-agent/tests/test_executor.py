from __future__ import annotations

from typing import Any

import pytest

from harness_executor_agent import harness_provide_executors
from harness_executor_agent.step import step_id
from harness_hookspecs.contracts.executor import ExecutorContract
from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.executor import Executor, Fail, Finish, Outcome, RoleCall, StageInput
from harness_hookspecs.role import ExecuteStepTask, parse_task

SCHEMA = {"type": "object", "properties": {"summary": {"type": "string", "maxLength": 9}}, "required": ["summary"]}


def executor() -> Executor:
    [offer] = harness_provide_executors()
    assert (offer.kind, offer.name) == ("executor", "agent")
    built: Executor = offer.build(None, None)
    return built


def stage_input(**changed: Any) -> StageInput:
    usual: dict[str, Any] = {
        "stage": "release-notes", "visit_index": 2, "attempt": 3, "persona": "writer",
        "prompt": "Write.", "context": "c", "model": "small", "max_turns": 4,
    }  # fmt: skip
    return StageInput(**{**usual, **changed})


def asked(**changed: Any) -> tuple[RoleCall, ExecuteStepTask]:
    agent = executor()
    [request] = agent.next(agent.start(stage_input(**changed)))
    assert isinstance(request, RoleCall)
    task = parse_task(request.task)
    assert isinstance(task, ExecuteStepTask)
    return request, task


class TestAgentExecutor(ExecutorContract):
    def subject(self) -> Executor:
        return executor()


@pytest.mark.req("A-05")
def test_a_stage_is_one_step_under_its_own_name() -> None:
    request, task = asked(
        system="Be brief.", tools=("fs_read", "git_diff", "fs_read"), output_schema=SCHEMA, feedback="no"
    )
    assert (request.role, request.step_path, request.visit_index) == ("worker.ai-generate", "release_notes", 2)
    assert task.to_wire() == {
        "kind": "execute_step",
        "step": {
            "id": "release_notes",
            "uses": "ai.generate",
            "with": {
                "model": "small", "prompt": "Write.", "system": "Be brief.",
                "tools": ["fs_read", "git_diff"], "maxTurns": 4,
            },
            "output": {"mode": "object", "schema": SCHEMA},
        },
        "stepInput": {"context": "c", "feedback": "no"},
        "stepContext": {"stepPath": "release_notes", "visitIndex": 2},
    }  # fmt: skip


def test_what_is_not_there_is_left_out() -> None:
    _, task = asked()
    wire = task.to_wire()
    assert wire["step"]["with"] == {"model": "small", "prompt": "Write.", "maxTurns": 4}
    assert wire["step"]["output"] == {"mode": "text"}
    assert wire["stepInput"] == {"context": "c"}


@pytest.mark.parametrize(("schema", "mode"), [({"type": "array"}, "array"), ({"enum": ["a"]}, "json"), (True, "json")])
def test_the_output_mode_follows_the_schema(schema: Any, mode: str) -> None:
    _, task = asked(output_schema=schema)
    assert task.to_wire()["step"]["output"] == {"mode": mode, "schema": schema}


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("notes", "notes"),
        ("Release Notes!", "release_notes"),
        ("2nd-look", "stage_2nd_look"),
        ("end", "stage_end"),
        ("---", "stage"),
        ("x" * 90, "x" * 64),
        ("übung", "bung"),
    ],
)
def test_a_stages_name_becomes_an_identifier(stage: str, expected: str) -> None:
    assert step_id(stage) == expected
    _, task = asked(stage=stage)
    assert task.step.id == expected


def test_the_output_is_the_stages_output_whatever_it_is() -> None:
    agent = executor()
    state = agent.start(stage_input())
    [request] = agent.next(state)
    assert isinstance(request, RoleCall)
    for output in (None, "text", {"kind": "execute_step", "output": 1}, [False]):
        ended = agent.apply(state, Outcome(request_id=request.request_id, ok=True, value=output))
        assert agent.next(ended) == (Finish(output=output),)


def test_an_error_without_a_code_is_a_failed_role() -> None:
    agent = executor()
    state = agent.start(stage_input())
    [request] = agent.next(state)
    assert isinstance(request, RoleCall)
    ended = agent.apply(state, Outcome(request_id=request.request_id, ok=False, error={"name": "E", "message": "why"}))
    assert agent.next(ended) == (Fail(code="role.failed", message="why"),)
    late = Outcome(request_id=request.request_id, ok=True, value=1)
    assert agent.apply(ended, late) == ended


def test_an_outcome_of_something_else_is_refused() -> None:
    agent = executor()
    with pytest.raises(IllegalMove) as caught:
        agent.apply(agent.start(stage_input()), Outcome(request_id="other", ok=True))
    assert caught.value.code == "executor.unknown_request"


def test_a_stage_without_a_prompt_fails_and_says_so() -> None:
    agent = executor()
    [end] = agent.next(agent.start(stage_input(prompt="  ")))
    assert isinstance(end, Fail)
    assert end.code == "executor.no_prompt"
