"""The one step of an agent stage: a stage's input goes in, the wire form of an ``execute_step`` task comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["request_id", "step_id", "task"]

_MAX_ID_CHARACTERS: Final = 64
_RESERVED: Final = frozenset({"end", "fail"})
_MAX_TURNS: Final = 100
_MODES: Final = {"object": "object", "array": "array"}


def step_id(stage: str) -> str:
    """The stage's name as an identifier that expressions can read: ``[a-z][a-z0-9_]*``, never a reserved target."""
    name = re.sub(r"[^a-z0-9]+", "_", stage.lower()).strip("_")
    if not name or name[0].isdigit() or name in _RESERVED:
        name = f"stage_{name}".rstrip("_")
    return name[:_MAX_ID_CHARACTERS]


def request_id(stage_input: Mapping[str, Any]) -> str:
    """The id of the stage attempt's only request; the same for the same visit and attempt."""
    stage, visit, attempt = stage_input["stage"], stage_input["visit_index"], stage_input["attempt"]
    return f"{stage}.visit[{visit}].attempt[{attempt}].{step_id(stage)}"


def task(stage_input: Mapping[str, Any]) -> dict[str, Any]:
    """The task: one synthetic ``ai.generate`` step under the stage's own name."""
    name = step_id(stage_input["stage"])
    return {
        "kind": "execute_step",
        "step": {"id": name, "uses": "ai.generate", "with": _with(stage_input), "output": _output(stage_input)},
        "stepInput": _step_input(stage_input),
        "stepContext": {"stepPath": name, "visitIndex": stage_input["visit_index"]},
    }


def _with(stage_input: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"model": stage_input["model"], "prompt": stage_input["prompt"]}
    if stage_input.get("system"):
        settings["system"] = stage_input["system"]
    if stage_input.get("tools"):
        settings["tools"] = list(dict.fromkeys(stage_input["tools"]))
    settings["maxTurns"] = max(1, min(stage_input["max_turns"], _MAX_TURNS))
    return settings


def _output(stage_input: Mapping[str, Any]) -> dict[str, Any]:
    schema = stage_input.get("output_schema")
    if schema is None:
        return {"mode": "text"}
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return {"mode": _MODES.get(str(kind), "json"), "schema": schema}


def _step_input(stage_input: Mapping[str, Any]) -> dict[str, Any]:
    given = {"context": stage_input["context"]}
    if stage_input.get("feedback"):
        given["feedback"] = stage_input["feedback"]
    return given
