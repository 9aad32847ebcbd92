"""What ``define_workflow`` says is what ``stages.yaml`` says, by the same checks; models of pydantic are schemas."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from harness_hookspecs import define_workflow
from harness_hookspecs.errors import ConfigError, HarnessError, PluginError
from harness_hookspecs.kit.json_schema import compiled_schema, faults
from harness_hookspecs.kit.model_schema import model_schema
from harness_hookspecs.manifest import manifest_from_table
from harness_hookspecs.workflow_definition import WorkflowDefinition


class Mood(Enum):
    """How somebody feels."""

    GOOD = "good"
    BAD = "bad"


class Part(BaseModel):
    """A part of a ticket."""

    title: str = Field(description="What it is called.", max_length=20)
    sizes: list[int] = []


class Ticket(BaseModel):
    mood: Mood
    parts: dict[str, Part]
    first: Part | None = None


class Tree(BaseModel):
    below: list[Tree] = []


class Unsaid(BaseModel):
    what: type


WHOLE: dict[str, Any] = {
    "description": "Sorts tickets.",
    "input": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
    "output": False,
    "models": {"fast": {"bind": "small", "capabilities": ["tool_calling"], "description": "For short answers."}},
    "tools": ["filesystem", "git_log"],
    "planner": {"system": "Plan well.", "form": "sketch", "max_repairs": 3},
    "workers": {"system": "Work well."},
    "permissions": {"secrets": ["token"], "network": ["example.org"], "max_tier": "T1"},
    "limits": {"max_step_executions": 9, "max_tokens": 10_000, "timeout_ms": 60_000},
    "bash": {"network": {"allow": ["https://example.org/"], "methods": ["GET"]}, "languages": ["python"]},
    "memory": [{"path": "/memory/notes", "mode": "ro", "purpose": "Notes.", "store_id": "notes"}],
}


def test_python_says_every_key_of_the_file_and_the_value_is_the_same() -> None:
    assert set(WHOLE) == set(WorkflowDefinition.model_fields)
    assert define_workflow(**WHOLE) == WorkflowDefinition.model_validate(WHOLE)
    assert define_workflow() == WorkflowDefinition()


def test_a_pydantic_model_stands_for_the_schema_of_its_values_in_one_piece() -> None:
    part = {
        "type": "object",
        "description": "A part of a ticket.",
        "required": ["title"],
        "properties": {
            "title": {"type": "string", "description": "What it is called.", "maxLength": 20},
            "sizes": {"type": "array", "items": {"type": "integer"}},
        },
    }
    mood = {"type": "string", "enum": ["good", "bad"], "description": "How somebody feels."}
    written = {
        "type": "object",
        "required": ["mood", "parts"],
        "properties": {
            "mood": mood,
            "parts": {"type": "object", "additionalProperties": part},
            "first": {"anyOf": [part, {"type": "null"}]},
        },
    }
    assert define_workflow(input=Ticket, output=False) == define_workflow(input=written, output=False)
    compiled = compiled_schema(model_schema(Ticket))
    assert not faults(compiled, Ticket(mood=Mood.BAD, parts={"a": Part(title="b")}).model_dump(mode="json"))
    assert faults(compiled, {"mood": "so so", "parts": {}})


@pytest.mark.parametrize(
    ("said", "where", "words"),
    [
        ({"planner": {"max_repairs": 99}}, "/planner/max_repairs", "less than or equal to 20"),
        ({"planner": {"form": "poem"}}, "/planner/form", "'plan' or 'sketch'"),
        ({"bash": {"network": {"allow": []}}}, "/bash/network/methods", "required"),
        ({"models": {"fast": {"bnid": "x"}}}, "/models/fast/bnid", "not permitted"),
        ({"memory": [{**WHOLE["memory"][0], "mode": "w"}]}, "/memory/0/mode", "'ro' or 'rw'"),
        ({"input": {"type": "objct"}}, "/input", "no JSON Schema"),
        ({"input": 7}, "/input", "JSON object"),
        ({"output": Tree}, "/output", "Tree contains itself"),
        ({"input": Unsaid}, "/input", "Unsaid has no JSON Schema"),
    ],
)
def test_what_is_no_definition_is_refused_with_a_pointer(said: Any, where: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        define_workflow(**said)
    assert (caught.value.code, caught.value.where) == ("workflow.definition", where)
    assert words in caught.value.message
    assert caught.value.facts["findings"][0]["path"] == where


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(HarnessError) as caught:
        define_workflow(planner={"max_repairs": 99}, limits={"max_tokens": 0})
    assert {one["path"] for one in caught.value.facts["findings"]} == {"/planner/max_repairs", "/limits/max_tokens"}


def test_an_offered_workflow_has_a_name_that_plans_may_have() -> None:
    offered = [{"kind": "workflow", "name": "Greet"}]
    table = {"manifest": 1, "id": "acme", "summary": "s", "spec": ">=0.1,<0.2", "provides": offered}
    with pytest.raises(PluginError, match="'Greet' is not a workflow's name") as caught:
        manifest_from_table(table)
    assert caught.value.code == "HP005"
    assert manifest_from_table({**table, "provides": [{"kind": "workflow", "name": "greet.all"}]}).provides
