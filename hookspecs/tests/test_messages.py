"""The wire types: the fields they promise, byte-equal round trips, nothing that can be changed, usage that adds up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness_hookspecs import messages, mount, role, role_manifest, workflow
from harness_hookspecs.errors import CodecError, ValidationFailed
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import Message, OracleResponse, TextPart, Usage
from harness_hookspecs.value import FrozenDict, WireModel

HASH = "ab" * 32
USAGE = {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 4, "reasoningTokens": 1, "known": True}
TEXT = {"type": "text", "text": "hello"}
CAUSE = {"name": "OSError", "message": "disk"}
ERROR = {"name": "ToolError", "message": "no", "code": "tool.failed", "stack": "File ...", "cause": CAUSE}
CALL = {"callId": "c1", "toolName": "filesystem_read", "args": {"path": "a.py"}}
PARTS = [
    TEXT,
    {"type": "reasoning", "text": "hm", "signature": "opaque"},
    {"type": "tool_call", **CALL},
    {"type": "tool_result", "callId": "c1", "toolName": "filesystem_read", "result": None},
    {"type": "tool_result", "callId": "c1", "toolName": "filesystem_read", "error": ERROR},
    {"type": "refusal", "text": "I will not."},
]
TOOL = {"name": "filesystem_read", "schemaHash": HASH, "tier": "T1"}
PERMISSIONS = {"models": ["small"], "tools": ["filesystem_read"], "maxTier": "T1"}
BASH = {"network": {"allow": ["https://api.example.com/"], "methods": ["GET"]}, "languages": ["python"], "timeoutMs": 1}
MEMORY = {"path": "/mnt/memory/org/", "mode": "ro", "purpose": "what we know", "storeId": "org"}
SNAPSHOT = {
    "workflowId": "w",
    "name": "docs",
    "description": "d",
    "definitionHash": HASH,
    "inputSchema": {"type": "object"},
    "outputSchema": True,
    "modelSlots": {"small": {"capabilities": ["coding"], "description": "fast"}},
    "tools": [TOOL],
    "permissions": PERMISSIONS,
    "planner": {"system": "Plan.", "maxRepairs": 2},
    "workers": {},
    "bash": BASH,
    "memory": [MEMORY],
    "limits": {"maxTokens": 1000},
}
OUTER = {
    "cycleNumber": 1,
    "maxCycles": 3,
    "isFinalCycle": False,
    "priorCycles": [{"cycleNumber": 0, "status": "failed", "output": None, "summary": "nothing"}],
    "findings": [{"severity": "error", "code": "ref.unknown_step", "path": "/steps/0", "step": "a", "message": "m"}],
    "priorLwir": {"kind": "Workflow"},
}
COMMON = {
    "pluginId": "role-workflow",
    "pluginVersion": "0.1.0",
    "delegatedFrom": "acme",
    "promptTemplateVersion": "1",
    "addendumHash": HASH,
    "systemHash": HASH,
    "slot": "small",
    "provider": "local",
    "modelId": "smollm2",
    "params": {"temperature": 0.2},
    "tools": [TOOL],
    "skills": [HASH],
    "mounts": [{"path": "/mnt/scratch/own/", "mode": "rw", "storeId": "own"}],
    "bashHash": HASH,
    "limits": {},
}
WORKER = {"workflowVersionId": "wfv_1", "stepPath": "a", "visitIndex": 0, "uses": "code.run", "stepHash": HASH}

SAMPLES: dict[type[WireModel], dict[str, Any]] = {
    workflow.WorkflowDefinitionSnapshot: SNAPSHOT,
    workflow.OuterLoopContext: OUTER,
    messages.ResolvedModel: {
        "slotId": "small",
        "provider": "local",
        "modelId": "m",
        "capabilities": ["coding"],
        "contextTokens": 8192,
        "params": {"seed": 7},
    },
    messages.ToolReference: TOOL,
    mount.MemoryMount: MEMORY,
    mount.ScratchMount: {"path": "/mnt/scratch/own/", "mode": "rw", "purpose": "notes", "ephemeral": True},
    mount.SkillDescriptor: {"name": "review", "description": "how to review", "path": ".agents/skills/review/SKILL.md"},
    mount.HarnessRuntimeMount: {"path": "/mnt/skills", "mode": "ro", "kind": "skill", "source": "token"},
    workflow.WorkflowBashCapabilities: BASH,
    messages.ArtifactRef: {"ref": f"artifact://sha256-{HASH}", "mediaType": "text/plain", "sizeBytes": 3, "name": "a"},
    messages.Message: {"role": "assistant", "content": PARTS, "callId": "c1"},
    messages.ChatInput: {
        "messages": [{"role": "user", "content": [TEXT]}],
        "tools": ["filesystem_read"],
        "toolChoice": {"toolName": "filesystem_read"},
        "responseSchema": {"type": "object"},
        "maxOutputTokens": 100,
        "temperature": 0,
        "topP": 0.9,
        "stop": ["\n\n"],
    },
    messages.OracleResponse: {"content": [TEXT], "toolCalls": [CALL], "finishReason": "tool_calls", "usage": USAGE},
    messages.ToolCallRequest: CALL,
    messages.ErrorEnvelope: {**ERROR, "details": {"status": 500}},
    role_manifest.PlannerManifest: {"role": "planner", **COMMON, "definitionHash": HASH, "outerLoopHash": HASH},
    role_manifest.OrchestratorManifest: {
        "role": "orchestrator",
        **COMMON,
        "availableHashes": [HASH],
        "toolsProvided": ["run_workflow"],
    },
    role_manifest.WorkerManifest: {"role": "worker.code-run", **COMMON, **WORKER, "engine": "monty", "rules": "cel"},
    role_manifest.FixerManifest: {
        "role": "fixer",
        **COMMON,
        "workflowVersionId": "wfv_1",
        "stepPath": "a",
        "sourceHash": HASH,
        "errorDigest": HASH,
        "priorFixAttempts": 0,
        "maxAttempts": 3,
        "engine": "monty",
    },
}

TASKS: dict[type[WireModel], dict[str, Any]] = {
    role.PlanTask: {"kind": "plan", "workflowSnapshot": SNAPSHOT, "input": {"x": [1, 2.5]}, "outerLoopContext": OUTER},
    role.OrchestrateTask: {"kind": "orchestrate", "available": [SNAPSHOT], "input": None},
    role.ExecuteStepResult: {
        "kind": "execute_step",
        "output": {"rows": [{"a": 1}]},
        "artifactRefs": [SAMPLES[messages.ArtifactRef]],
    },
    role.FixStepResult: {"kind": "fix_step", "output": [], "fixedSource": "pass", "attempts": 1},
}


@pytest.mark.req("A-103")
@pytest.mark.parametrize("model", SAMPLES, ids=lambda model: model.__name__)
def test_a_wire_type_round_trips_byte_for_byte_and_has_no_other_fields(model: type[WireModel]) -> None:
    sample = SAMPLES[model]
    data = codec.dumps(sample)
    assert model.from_json_bytes(data).to_json_bytes() == data
    assert [field.alias for field in model.model_fields.values()] == list(sample)  # a sample has every field there is
    with pytest.raises(ValidationFailed):
        model.from_wire({**sample, "surprise": 1})


@pytest.mark.req("A-03")
def test_a_plan_task_round_trips_and_needs_its_snapshot() -> None:
    data = codec.dumps(TASKS[role.PlanTask])
    task = role.PlanTask.from_json_bytes(data)
    assert task.to_json_bytes() == data
    without = {name: item for name, item in TASKS[role.PlanTask].items() if name != "workflowSnapshot"}
    with pytest.raises(ValidationFailed) as caught:
        role.PlanTask.from_wire(without)
    assert caught.value.where == "/workflowSnapshot"


def containers(value: Any) -> list[Any]:
    if isinstance(value, WireModel):
        return [value, *(inner for name in type(value).model_fields for inner in containers(getattr(value, name)))]
    if isinstance(value, Mapping):
        return [value, *(inner for item in value.values() for inner in containers(item))]
    if isinstance(value, (list, tuple)):
        return [value, *(inner for item in value for inner in containers(item))]
    return []


@pytest.mark.req("A-07")
@pytest.mark.parametrize("model", [*TASKS, *SAMPLES], ids=lambda model: model.__name__)
def test_nothing_in_a_task_a_context_value_or_a_result_can_be_assigned(model: type[WireModel]) -> None:
    value = model.from_wire({**TASKS, **SAMPLES}[model])
    for item in containers(value):
        if isinstance(item, WireModel):
            for name in type(item).model_fields:
                with pytest.raises(ValidationError):
                    setattr(item, name, None)
        elif isinstance(item, dict):
            assert type(item) is FrozenDict
            with pytest.raises(TypeError):
                item["new"] = 1
        elif isinstance(item, list):
            with pytest.raises(TypeError):
                item.append(1)


@pytest.mark.req("A-11")
def test_a_step_result_without_artifact_refs_is_refused_and_an_empty_list_is_not() -> None:
    assert role.ExecuteStepResult.from_wire({"kind": "execute_step", "output": 1, "artifactRefs": []}).output == 1
    with pytest.raises(ValidationFailed) as caught:
        role.ExecuteStepResult.from_wire({"kind": "execute_step", "output": 1})
    assert caught.value.where == "/artifactRefs"


@pytest.mark.req("A-81")
@pytest.mark.parametrize(
    "bad",
    [
        {"content": []},
        {"role": "user"},
        {"role": "operator", "content": []},
        {"role": "user", "content": "text"},
        {"role": "user", "content": [{"text": "no type"}]},
        {"role": "user", "content": [{"type": "image"}]},
    ],
)
def test_a_message_without_role_or_typed_content_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        Message.from_wire(bad)


@pytest.mark.req("A-81")
@pytest.mark.parametrize(
    ("model", "needed"),
    [
        (messages.ToolCallRequest, ["callId", "toolName", "args"]),
        (messages.ToolReference, ["name", "schemaHash", "tier"]),
        (messages.Message, ["role", "content"]),
    ],
)
def test_the_minimal_records_need_each_of_their_fields(model: type[WireModel], needed: list[str]) -> None:
    assert model.model_json_schema()["required"] == needed
    for name in needed:
        with pytest.raises(ValidationFailed):
            model.from_wire({key: item for key, item in SAMPLES[model].items() if key != name})


@pytest.mark.parametrize("ending", [{}, {"result": 1, "error": ERROR}])
def test_a_tool_result_has_exactly_one_ending(ending: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        messages.ToolResultPart.from_wire({"type": "tool_result", "callId": "c", "toolName": "t", **ending})


def test_the_text_of_a_message_is_its_text_parts_only() -> None:
    assert Message.from_wire({"role": "assistant", "content": [*PARTS, TEXT]}).text == "hellohello"
    answer = OracleResponse(content=(TextPart(text="a"),), finish_reason="stop", usage=Usage())
    assert answer.text == "a"
    assert "toolCalls" not in answer.to_wire()


def test_the_case_arguments_never_become_a_request() -> None:
    rows = map(json.loads, (Path(__file__).parents[2] / "tests/cases/json_borders.jsonl").read_bytes().splitlines())
    for row in rows:
        if row["id"] in ("BR-056", "BR-058"):
            with pytest.raises(CodecError):
                messages.ToolCallRequest.from_json_bytes(f'{{"callId":"c","toolName":"t","args":{row["input"]}}}')
