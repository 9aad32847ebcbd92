"""What workers are to say in, a project whose one stage has workflows do it out: shared by tests of children."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.reference import _USAGE, calls, says

__all__ = ["PLAN", "chief", "lead", "planner", "start", "worker"]

INPUT = {
    "type": "object",
    "properties": {"note": {"type": "string"}},
    "required": ["note"],
    "additionalProperties": False,
}
TOOLS = ["effects_pure", "effects_keyed", "effects_network", "effects_slow"]

PLAN: Mapping[str, Any] = {
    "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "jobs"}, "input": {"schema": INPUT},
    "output": {"schema": True, "value": "{{ steps.work.output }}"},
    "permissions": {"models": ["scripted"], "tools": TOOLS},
    "steps": [{
        "id": "work", "uses": "ai.generate", "output": {"mode": "text"},
        "with": {"model": "scripted", "prompt": "Do {{ input.note }} now.", "tools": TOOLS},
    }],
}  # fmt: skip
"""What the planner writes: one step in which a model works."""

STAGES: Mapping[str, Any] = {
    "initial": "lead",
    "workflows": {"jobs": {"description": "Does a job.", "input": INPUT, "tools": ["effects"]}},
    "stages": {
        "lead": {"role": "chief", "task": "Do it.", "executor": "orchestrate", "on_success": "completed"},
    },
}


def lead(**more: Any) -> dict[str, Any]:
    """Its stages; ``more`` are keys of the one that orchestrates."""
    return {**STAGES, "stages": {"lead": {**STAGES["stages"]["lead"], **more}}}


def chief(turn: int, *asked: tuple[str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    """What the orchestrator says at a turn: calls of tools, or its answer."""
    when = {"when": {"stage": "lead", "turn": turn}}
    if not asked:
        return {**when, **says(text)}
    return {**when, "tool_calls": [{"name": name, "args": args} for name, args in asked], "usage": _USAGE}


def planner(plan: Any = PLAN, **when: Any) -> dict[str, Any]:
    """What the planner of a job says."""
    return {"when": {"stage": "jobs", "contains": "Write the workflow", **when}, "json": plan, "usage": _USAGE}


def start(note: str) -> tuple[str, dict[str, Any]]:
    """A call that plans and runs the job of that note."""
    return "start_workflow", {"workflowId": "jobs", "input": {"note": note}}


def worker(note: str, *asked: tuple[str, Mapping[str, Any]], text: str = "done", turn: int = 1) -> dict[str, Any]:
    """What the model of the job of that note says at a turn."""
    said = calls(*asked) if asked else {"text": text, "usage": _USAGE}
    return {"when": {"stage": "jobs", "turn": turn, "contains": f"Do {note} now."}, **said}
