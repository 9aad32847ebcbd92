"""A definition in, the JSON Schema of every workflow that may be written for it out, for constrained decoding."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.workflow import Workflow, WorkflowDefinitionSnapshot

__all__ = ["plan_schema"]


def plan_schema(snapshot: WorkflowDefinitionSnapshot) -> dict[str, Any]:
    """The schema of a workflow that has the definition's name and data schemas and names only its tools and slots.

    What a schema cannot say (graph, references, bounds) is the compiler's to find.
    """
    schema = copy.deepcopy(_any_workflow())
    parts = schema["$defs"]
    models = sorted(snapshot.model_slots)
    tools = sorted(tool.name for tool in snapshot.tools)
    _one_of(parts["AiGenerateWith"]["properties"]["model"], models)
    _one_of(parts["Fixer"]["properties"]["model"], models)
    _one_of(parts["ToolCallWith"]["properties"]["tool"], tools)
    _some_of(parts["Permissions"]["properties"]["models"], models)
    for where in ("Permissions", "AiGenerateWith", "CodeRunWith"):
        _some_of(parts[where]["properties"]["tools"], tools)
    parts["Metadata"]["properties"]["name"] = {"const": snapshot.name}
    parts["InputContract"]["properties"]["schema"] = {"const": thaw(snapshot.input_schema)}
    parts["OutputContract"]["properties"]["schema"] = {"const": thaw(snapshot.output_schema)}
    return schema


@lru_cache(maxsize=1)
def _any_workflow() -> dict[str, Any]:
    return Workflow.model_json_schema(by_alias=True)


def _one_of(schema: dict[str, Any], names: Sequence[str]) -> None:
    """Where there is nothing to choose from any name is let pass: a finding says more than a schema without a way."""
    if names:
        schema["enum"] = list(names)


def _some_of(schema: dict[str, Any], names: Sequence[str]) -> None:
    if names:
        schema["items"] = {"enum": list(names)}
    else:
        schema["maxItems"] = 0
