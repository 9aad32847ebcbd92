"""A call of a workflow's tool in, what it asks of a child session out, or why there can be none."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.state import SessionState
from harness_core.shell.child_calls import asked_child
from harness_core.shell.child_tools import ChildTools, child_tools
from harness_core.shell.nursing import grant_id
from harness_core.shell.toolbox import Tool
from harness_hookspecs.errors import HarnessError, RoleError
from harness_hookspecs.role import parse_task


def task(**schemas: Any) -> Any:
    """An orchestration of these workflows, each with the schema of its input."""
    more = {
        "outputSchema": True, "modelSlots": {}, "tools": [], "permissions": {"models": [], "tools": []},
        "planner": {"maxRepairs": 0}, "workers": {}, "memory": [], "limits": {},
    }  # fmt: skip
    available = [
        {"workflowId": name, "name": name, "definitionHash": "a" * 64, "inputSchema": schema, **more}
        for name, schema in schemas.items()
    ]
    return parse_task({"kind": "orchestrate", "available": available, "input": None})


def made(**schemas: Any) -> ChildTools:
    found = child_tools(task(**schemas), {})
    assert found is not None
    return found


START = {"workflowId": "w", "input": 1}


@pytest.mark.parametrize(("depth", "limit"), [(0, 0), (1, 1), (3, 3), (5, 3)])
def test_a_session_that_lies_as_deep_as_may_be_begins_no_other(depth: int, limit: int) -> None:
    state = SessionState(created={"depth": depth})
    with pytest.raises(HarnessError) as caught:
        asked_child(made(w=True), "start_workflow", START, state, limit)
    assert (caught.value.code, f"run.max_depth is {limit}" in caught.value.message) == ("child.too_deep", True)
    assert asked_child(made(w=True), "start_workflow", START, state, depth + 1).goal == "start"


def test_a_workflow_whose_input_is_no_object_takes_it_as_the_one_argument_of_its_tool() -> None:
    tools = made(w={"type": "array", "items": {"type": "integer"}})
    spec = tools.tools["workflow_w"].spec
    assert spec.input_schema["required"] == ["input"]
    call = tools.call("workflow_w", {"input": [1]}, SessionState())
    assert (call.goal, call.input) == ("start", [1])
    with pytest.raises(HarnessError) as caught:
        tools.call("workflow_w", {"input": ["x"]}, SessionState())
    assert [one["path"] for one in caught.value.facts["findings"]] == ["/input/0"]


def test_what_takes_nothing_is_called_with_nothing() -> None:
    with pytest.raises(HarnessError) as caught:
        made(w=False).call("start_workflow", START, SessionState())
    assert caught.value.code == "tool.invalid_args"


@pytest.mark.parametrize(
    ("schemas", "said"),
    [
        ({"a.b": True, "a-b": True, "c": True}, ["a-b and a.b would have one tool, workflow_a_b"]),
        ({"w": True}, ["the stage has a tool workflow_w already"]),
        ({"x" * 90: True, "x" * 91: True}, [f"{'x' * 90} and {'x' * 91} would"]),
        ({"a.b": True, "a_b": True, "w": True}, ["a.b and a_b would", "the stage has a tool workflow_w already"]),
    ],
)
def test_two_tools_of_one_name_are_an_error_that_says_whose(schemas: dict[str, Any], said: list[str]) -> None:
    beside: dict[str, Tool] = {"workflow_w": made(w=True).tools["workflow_w"]}
    with pytest.raises(RoleError) as caught:
        child_tools(task(**schemas), beside)
    assert caught.value.code == "workflow.tool_name"
    assert all(one in caught.value.message for one in said), caught.value.message


def test_each_grant_of_each_child_has_a_name_of_its_own_or_the_inbox_would_drop_the_second() -> None:
    grants = [{"tokens": tokens, "calls": 5, "seconds": 60.0} for tokens in (1_234_567, 1_234_570)]
    names = {grant_id(child, grant) for child in ("one", "two") for grant in grants}
    assert len(names) == 4
    assert grant_id("one", grants[0]) == grant_id("one", {**grants[0]})
