"""What there is where the sample plans run: names go in, surroundings with tools, models and engines come out."""

from __future__ import annotations

import copy
import sys
from functools import cache
from pathlib import Path
from typing import Any

from harness_hookspecs.compiler import KnownModel, KnownTool, Surroundings, Trial
from harness_hookspecs.contracts.world import FakeProcesses
from harness_hookspecs.kit import codec
from harness_hookspecs.tool import Tier, ToolSpec
from harness_hookspecs.workflow import WorkflowDefinitionSnapshot
from harness_rules_cel.rules import CelRules

__all__ = ["PLANS", "TEXT", "changed", "definition", "surroundings", "tool", "trial"]

FOLDER = Path(__file__).parents[1] / "cases/lwir"
PLANS: dict[str, Any] = {path.stem[0]: codec.loads(path.read_bytes()) for path in sorted(FOLDER.glob("[0-9]-*.json"))}
TEXT = {"type": "string"}


def tool(name: str, args: dict[str, Any], *, tier: Tier = "T1", **more: Any) -> KnownTool:
    """A tool that requires all its arguments but those that are called ``maybe...``."""
    required = [arg for arg in args if not arg.startswith("maybe")]
    schema = {"type": "object", "required": required, "properties": args, "additionalProperties": False}
    spec = ToolSpec(name=name.replace(".", "_"), description=name, input_schema=schema, tier=tier, **more)
    return KnownTool(spec, tier, "ab" * 32, "tool-sample@0.1.0")


TOOLS = {
    "tickets.get": tool("tickets.get", {"id": TEXT, "maybe_limit": {"type": "integer", "minimum": 1}},
                        output_schema={"type": "object", "required": ["body"], "properties": {"body": TEXT}}),
    "ats.candidates": tool("ats.candidates", {"job_id": TEXT}),
    "ats_candidates": tool("ats_candidates", {"job_id": TEXT}),
    "files.write": tool("files.write", {"path": TEXT, "text": TEXT}, tier="T2"),
    "repo.scan": tool("repo.scan", {"name": TEXT}),
}  # fmt: skip
MODELS = {name: KnownModel("scripted", f"model-{name}") for name in ("small", "coder", "writer", "judge")}


@cache
def rules() -> CelRules:
    """One engine for all tests."""
    return CelRules()


def surroundings(**more: Any) -> Surroundings:
    """Everything that the sample plans ask for, and no child process."""
    found: dict[str, Any] = {"rules": rules(), "models": MODELS, "tools": TOOLS}
    engines: dict[str, Any] = {"engines": {"python": "3.11"}, "engine": "python"}
    return Surroundings(**{**found, **engines, **more})


def trial(**more: Any) -> Trial:
    """The way to a child process with the engine that the tests use."""
    found: dict[str, Any] = {"processes": FakeProcesses(), "module": "harness_rules_cel", "name": "cel"}
    return Trial(**{**found, "path": tuple(path for path in sys.path if path), **more})


def definition(plan: Any, **more: Any) -> WorkflowDefinitionSnapshot:
    """The workflow that a sample plan was written for."""
    wire: dict[str, Any] = {
        "workflowId": plan["metadata"]["name"],
        "name": plan["metadata"]["name"],
        "definitionHash": "cd" * 32,
        "inputSchema": plan["input"]["schema"],
        "outputSchema": plan["output"]["schema"],
        "modelSlots": {name: {"capabilities": ["chat"]} for name in plan["permissions"]["models"]},
        "tools": [],
        "permissions": plan["permissions"],
        "planner": {"maxRepairs": 2},
        "workers": {},
        "memory": [],
        "limits": {},
    }
    return WorkflowDefinitionSnapshot.from_wire({**wire, **more})


def changed(plan: str, **places: Any) -> Any:
    """A sample plan with some places set, or taken away where the value is ``...``.

    A place is its JSON pointer with ``__`` for the slashes, ``steps__0__with__args``.
    """
    document = copy.deepcopy(PLANS[plan])
    for pointer, value in places.items():
        *path, last = [int(part) if part.isdigit() else part for part in pointer.split("__")]
        place = document
        for part in path:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        if value is ...:
            del place[last]
        elif last == "more":
            place.append(value)
        else:
            place[last] = value
    return document
