"""Tools go in; the text and the schema of our own calling convention come out, and calls are read back from answers.

The model answers with one JSON object: ``{"tool": NAME, "arguments": {...}}`` or ``{"final": ANSWER}``. The schema is
enforced while it decodes, so a call always parses. That holds for every model; the formats that chat templates bring
along are not enforced by the engine (``tool_choice: required`` gave prose in every trial).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ToolCallPart, ToolResultPart
from harness_hookspecs.provider import ToolSchema

__all__ = ["call_text", "instructions", "result_text", "schema"]

_HEAD: Final = (
    "Answer with one JSON object and nothing else. Either call one tool:\n"
    '{"tool": NAME, "arguments": {...}}\n'
    "or, when you are done, give the answer:\n"
    '{"final": ANSWER}\n'
    "The tools, each with the schema of its arguments:"
)


def instructions(tools: Sequence[ToolSchema]) -> str:
    """Give the block of the system message that tells the model how to call."""
    shown = [f"- {tool.name}: {tool.description}\n  {_json(tool.input_schema)}" for tool in tools]
    return "\n".join([_HEAD, *shown])


def schema(tools: Sequence[ToolSchema], response_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give the schema of the answer: one branch per tool, and one for the final answer.

    Args:
        tools: What may be called.
        response_schema: The schema of the final answer; ``None`` is any text.
    """
    parts = {f"tool{number}": tool.input_schema for number, tool in enumerate(tools)}
    parts["final"] = {"type": "string"} if response_schema is None else response_schema
    branches = [
        _object(tool={"const": tool.name}, arguments={"$ref": f"#/$defs/tool{number}"})
        for number, tool in enumerate(tools)
    ]
    branches.append(_object(final={"$ref": "#/$defs/final"}))
    return {"$defs": {name: _moved(part, f"#/$defs/{name}") for name, part in parts.items()}, "oneOf": branches}


def call_text(part: ToolCallPart) -> str:
    """Show an earlier call as the model wrote it."""
    return _json({"tool": part.tool_name, "arguments": part.args})


def result_text(part: ToolResultPart) -> str:
    """Show what a call gave."""
    if part.error is not None:
        return f"Error of {part.tool_name}: {part.error.message}"
    shown = part.result if isinstance(part.result, str) else _json(part.result)
    return f"Result of {part.tool_name}:\n{shown}"


def _json(value: Any) -> str:
    return codec.dumps(value).decode()


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _moved(part: Any, home: str) -> Any:
    """Point a schema's own references to the place where it now stands."""
    if isinstance(part, Mapping):
        return {key: _moved_value(key, value, home) for key, value in part.items() if key not in {"$schema", "$id"}}
    return [_moved(item, home) for item in part] if isinstance(part, (list, tuple)) else part


def _moved_value(key: str, value: Any, home: str) -> Any:
    if key == "$ref" and isinstance(value, str) and value.startswith("#"):
        return home + value[1:]
    return _moved(value, home)
