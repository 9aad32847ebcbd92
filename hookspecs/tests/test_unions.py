"""Tasks and results are closed unions: each kind comes back byte for byte, and there is no further one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from harness_hookspecs import role
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.kit import codec
from harness_hookspecs.role import parse_result, parse_task

SNAPSHOT = {
    "workflowId": "w",
    "name": "docs",
    "description": "d",
    "definitionHash": "ab" * 32,
    "inputSchema": {"type": "object"},
    "outputSchema": True,
    "modelSlots": {},
    "tools": [],
    "permissions": {"models": [], "tools": []},
    "planner": {"system": "Plan.", "maxRepairs": 2},
    "workers": {},
    "memory": [],
    "limits": {},
}
STEP = {"id": "fetch", "uses": "tool.call", "with": {"tool": "filesystem_read", "args": {}}, "output": {"mode": "json"}}
FAILURE = {"name": "CodeError", "message": "no such name"}
CONTEXT = {"stepPath": "fetch", "visitIndex": 0}

TASKS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "plan": (role.PlanTask, {"workflowSnapshot": SNAPSHOT, "input": [1, {"x": None}]}),
    "orchestrate": (role.OrchestrateTask, {"available": [SNAPSHOT, SNAPSHOT], "input": "any JSON"}),
    "execute_step": (role.ExecuteStepTask, {"step": STEP, "stepInput": {"b": 1, "a": 2}, "stepContext": CONTEXT}),
    "fix_step": (
        role.FixStepTask,
        {"step": STEP, "stepInput": None, "originalAttemptError": FAILURE, "priorFixAttempts": 0},
    ),
}
RESULTS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "plan": (role.PlanResult, {"lwir": {"anything": ["at", "all"]}}),
    "orchestrate": (role.OrchestrateResult, {"output": {"b": 1, "a": 2}}),
    "execute_step": (role.ExecuteStepResult, {"output": None, "artifactRefs": []}),
    "fix_step": (role.FixStepResult, {"output": 1.5, "fixedSource": "x = 1\n", "attempts": 2}),
    "delegate_to_default": (role.DelegateToDefault, {}),
}


@pytest.mark.req("A-02")
@pytest.mark.parametrize("kind", TASKS)
def test_a_task_is_parsed_as_what_its_kind_says(kind: str) -> None:
    model, fields = TASKS[kind]
    wire = {"kind": kind, **fields}
    assert type(parse_task(wire)) is model
    for other in TASKS.keys() - {kind}:  # the fields of one are not those of another
        with pytest.raises(ValidationError):
            parse_task({**wire, "kind": other})


@pytest.mark.req("A-02")
@pytest.mark.parametrize("wire", [{"kind": "dance"}, {"kind": "delegate_to_default"}, {"kind": ""}])
def test_a_task_of_another_kind_is_refused_and_the_four_are_named(wire: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_task(wire)
    [error] = caught.value.errors()
    assert error["ctx"]["expected_tags"] == "'plan', 'orchestrate', 'execute_step', 'fix_step'"
    assert error["ctx"]["expected_tags"] in str(caught.value)


@pytest.mark.req("A-04")
def test_an_orchestrate_task_round_trips_with_all_its_workflows() -> None:
    data = codec.dumps({"kind": "orchestrate", **TASKS["orchestrate"][1]})
    task = role.OrchestrateTask.from_json_bytes(data)
    assert (len(task.available), task.available[0].workflow_id, task.input) == (2, "w", "any JSON")
    assert task.to_json_bytes() == data


@pytest.mark.req("A-04")
@pytest.mark.parametrize("left_out", ["available", "input"])
def test_an_orchestrate_task_needs_each_of_its_fields(left_out: str) -> None:
    fields = {name: item for name, item in TASKS["orchestrate"][1].items() if name != left_out}
    with pytest.raises(ValidationFailed) as caught:
        role.OrchestrateTask.from_wire({"kind": "orchestrate", **fields})
    assert caught.value.where == f"/{left_out}"


@pytest.mark.req("A-04")
def test_there_is_nothing_to_orchestrate_without_a_workflow() -> None:
    with pytest.raises(ValidationError, match=r"role\.nothing_available"):
        parse_task({"kind": "orchestrate", "available": [], "input": None})


@pytest.mark.req("A-08")
@pytest.mark.parametrize("kind", RESULTS)
def test_each_result_round_trips_byte_for_byte_and_has_no_other_fields(kind: str) -> None:
    model, fields = RESULTS[kind]
    wire = {"kind": kind, **fields}
    found: Any = parse_result(wire)
    assert type(found) is model
    assert found.to_json_bytes() == codec.dumps(wire)
    assert model.from_json_bytes(codec.dumps(wire)) == found
    for broken in [{**wire, "surprise": 1}, *({k: v for k, v in wire.items() if k != name} for name in wire)]:
        with pytest.raises(ValidationError):
            parse_result(broken)


@pytest.mark.req("A-08")
@pytest.mark.parametrize("wire", [{"kind": "dance"}, {"kind": "execute"}, {}, None, "plan", []])
def test_what_is_none_of_the_five_results_is_refused(wire: Any) -> None:
    with pytest.raises(ValidationError):
        parse_result(wire)


SIDE_BY_SIDE = """
import threading, pydantic.type_adapter as adapters
from harness_hookspecs.role import parse_result
build, built, start = adapters.create_schema_validator, [], threading.Barrier(8)

def counted(*details, **more):
    built.append(1)
    return build(*details, **more)

def parse():
    start.wait()
    parse_result({"kind": "delegate_to_default"})

adapters.create_schema_validator = counted
threads = [threading.Thread(target=parse) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(built))
"""


def test_who_parse_side_by_side_build_each_union_once() -> None:
    done = subprocess.run([sys.executable, "-c", SIDE_BY_SIDE], check=True, capture_output=True, text=True)
    assert done.stdout == "2\n"
