"""Plans of the design in, the same plans with tools whose effects can be counted out: two shapes that are killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.reference import Site, calls, says, scripted_models, write_site

__all__ = ["fan_out", "fixed"]

_LWIR = Path(__file__).parents[1] / "cases" / "lwir"
_USAGE = says("")["usage"]
_FETCHED = """async def main(input, tools):
    row = await tools.effects_keyed(note=input["job_id"])
"""
_WRONG = _FETCHED + '    await tools.effects_unkeyed(note="b")\n    return [{"id": row["gone"], "score": 1}]\n'
_RIGHT = _WRONG.replace("gone", "note").replace("return", 'await tools.effects_keyed(note="c")\n    return')
"""Each repair makes the calls of the one before it and one more: what is recorded answers, what is not happens."""


def fixed(root: Path) -> Site:
    """Plan 2: code that breaks after its call, a repair that makes an unkeyed one and does not help, one that does."""
    plan = _plan("2")
    plan["input"]["schema"] = {"type": "object"}
    plan["permissions"] = {"models": ["coder"], "tools": ["effects.unkeyed", "effects.keyed"]}
    [step] = plan["steps"]
    step["input"] |= {"job_id": "a", "threshold": 0.8}
    source = step["with"]["source"].replace("ats_candidates(job_id=", "effects_keyed(note=")
    step["with"] |= {"tools": plan["permissions"]["tools"], "source": source}
    replies = [
        _said("This is repair 1 of", text=_WRONG),
        _said("This is repair 2 of", text=_RIGHT),
    ]
    return _site(root, plan, replies)


def fan_out(root: Path) -> Site:
    """Plan 4: three branches of a call and a question with a call, a decision, and a join of what it left."""
    plan = _plan("4")
    plan["input"]["schema"] = {"type": "object"}
    plan["permissions"] = {"models": ["small"], "tools": ["effects.keyed", "effects.unkeyed"]}
    audit = plan["steps"][0]
    audit["with"]["items"] = "{{ [{'name': 'a'}, {'name': 'b'}, {'name': 'c'}] }}"
    scan, judge = audit["steps"]
    scan["with"] = {"tool": "effects.unkeyed", "args": {"note": "{{ item.name }}"}}
    scan["output"] = {"mode": "object", "schema": {"type": "object", "properties": {"note": {"type": "string"}}}}
    judge["with"] = {"model": "small", "prompt": "Rank: {{ item.name }}", "tools": ["effects.keyed"]}
    replies = [
        {"when": {"contains": "Rank: b", "turn": 1}, **calls(("keyed", {"note": "ranked"}))},
        _said("Rank: b", text="block"),
        _said("Rank:", text="ok"),
        _said("Explain the blockers", text="b is blocked"),
        _said("Write the report from: b is blocked", text="the report"),
    ]
    return _site(root, plan, replies)


def _plan(name: str) -> dict[str, Any]:
    [file] = _LWIR.glob(f"{name}-*.json")
    plan: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return plan


def _said(contains: str, **said: Any) -> dict[str, Any]:
    return {"when": {"contains": contains}, "usage": _USAGE, **said}


def _site(root: Path, plan: dict[str, Any], replies: list[dict[str, Any]]) -> Site:
    stage = {
        "role": "worker", "executor": "workflow", "artifact": "json", "plan": plan, "allowed_tools": ["effects"],
        "on_success": "completed", "on_failure": "failed",
    }  # fmt: skip
    models = scripted_models("small", "coder")
    tools = {"tools": {"effects": {"probes": False}}}
    stages = {"initial": "run", "stages": {"run": stage}}
    return write_site(root, stages=stages, replies=replies, models=models, tools=tools)
