"""What a model is held to while it writes: what there is goes in; the JSON Schema of plans, or of sketches, comes out.

The names of models and tools are filled in, so that constrained decoding cannot write one that does not exist; so are
the name and the schemas of the workflow that a plan is written for. A grammar is made of them: they have no words for
people, the type of a step stands before what follows from it, and nothing in a sketch is without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness_hookspecs.compiler import KnownTool, Surroundings
from harness_hookspecs.tool import TIERS
from harness_hookspecs.value import thaw
from harness_hookspecs.workflow import Workflow

from .arguments import plain_kinds
from .binding import allowed_models, ceilings
from .shapes import KINDS, kinds

__all__ = ["plan_schema", "sketch_schema"]

_ID: Final = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,23}$"}
_PROMPT: Final = {"type": "string", "pattern": "^[A-Za-z0-9 ,.:;?!'()-]{8,240}$"}
_MAX_INPUTS: Final = 4
_MAX_STEPS: Final = 6  # of a sketch that a small model writes: it may not find an end by itself
_LARGEST: Final = 10**9  # of a number that is written out: a grammar alone lets digits follow each other for ever
_FOR_PEOPLE: Final = frozenset({"title", "description", "default", "discriminator"})
_OF_NUMBERS: Final = frozenset({"type", "minimum", "maximum", "examples", *_FOR_PEOPLE})


def plan_schema(surroundings: Surroundings) -> dict[str, Any]:
    """The JSON Schema of full plans, for one request."""
    schema: dict[str, Any] = _for_a_grammar(Workflow.model_json_schema())
    models, tools = allowed_models(surroundings), _tools(surroundings)
    parts = schema["$defs"]
    _set(parts, "AiGenerateWith", "model", {"enum": models})
    _set(parts, "AiGenerateWith", "tools", _some_of(tools))
    _set(parts, "CodeRunWith", "tools", _some_of(tools))
    _set(parts, "Fixer", "model", {"enum": models})
    _set(parts, "ToolCallWith", "tool", {"enum": list(tools)})
    _set(parts, "Permissions", "models", _some_of(models))
    _set(parts, "Permissions", "tools", _some_of(tools))
    for name, empty in (("ToolCallStep", not tools), ("AiGenerateStep", not models)):
        if empty:
            _drop(schema, name)
    if surroundings.engines:
        _set(parts, "CodeRunWith", "engine", {"enum": sorted(surroundings.engines)})
    definition = surroundings.definition
    if definition is not None:
        _set(parts, "Metadata", "name", {"const": definition.name})
        _set(parts, "InputContract", "schema", {"const": thaw(definition.to_wire()["inputSchema"])})
        _set(parts, "OutputContract", "schema", {"const": thaw(definition.to_wire()["outputSchema"])})
    return schema


def _set(parts: dict[str, Any], part: str, name: str, schema: Any) -> None:
    parts[part]["properties"][name] = schema


def _some_of(names: Iterable[str]) -> dict[str, Any]:
    listed = sorted(names)
    if not listed:
        return {"type": "array", "maxItems": 0}
    return {"type": "array", "items": {"enum": listed}, "uniqueItems": True, "maxItems": len(listed)}


def _for_a_grammar(schema: Any) -> Any:
    """The schema without words for people, and with ``uses`` required and first but for the id of a step."""
    if isinstance(schema, list):
        return [_for_a_grammar(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {word: inner for word, inner in schema.items() if word not in _FOR_PEOPLE}
    for word, inner in found.items():
        is_named = word in ("properties", "$defs")
        found[word] = {name: _for_a_grammar(one) for name, one in inner.items()} if is_named else _for_a_grammar(inner)
    properties = found.get("properties", {})
    if "uses" in properties:
        rest = {name: one for name, one in properties.items() if name != "sensitive"}  # which the check refuses
        found["properties"] = {name: properties[name] for name in ("id", "uses")} | rest
        found["required"] = ["id", "uses", *(name for name in found["required"] if name not in ("id", "uses"))]
    return found


def _drop(schema: dict[str, Any], name: str) -> None:
    """Take a type of step out of every union that has it."""
    reference = f"#/$defs/{name}"
    waiting: list[Any] = [schema]
    for one in waiting:  # grows
        if isinstance(one, dict):
            for word in ("oneOf", "anyOf"):
                if word in one:
                    one[word] = [option for option in one[word] if option.get("$ref") != reference]
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
    schema["$defs"].pop(name, None)


def _tools(surroundings: Surroundings) -> dict[str, KnownTool]:
    """The tools that a plan may call, by name: those that exist, are allowed and within the tier."""
    return {
        name: tool
        for name, tool in sorted(surroundings.tools.items())
        if all(name in one.tools and tool.tier <= (one.max_tier or TIERS[-1]) for one in ceilings(surroundings))
    }


def sketch_schema(surroundings: Surroundings) -> dict[str, Any]:
    """The JSON Schema of sketches, for one request; narrower than what a sketch may be, so that what fits it compiles.

    Inputs are chosen from what the workflow is given and the step before; prompts are plain words.
    """
    models = allowed_models(surroundings)
    called = (_tool_step(name, tool, surroundings) for name, tool in _tools(surroundings).items())
    steps = [step for step in called if step is not None]
    if models:
        steps.append(_prompt_step(models, surroundings))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_object({"steps": {"type": "array", "minItems": 1, "maxItems": _MAX_STEPS, "items": _any_of(steps)}}),
    }


def _any_of(steps: list[Any]) -> Any:
    return {"anyOf": steps} if steps else False


def _object(properties: dict[str, Any], optional: Iterable[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def _tool_step(name: str, tool: KnownTool, surroundings: Surroundings) -> dict[str, Any] | None:
    """A call of the tool; None where it requires what a sketch cannot say."""
    given = thaw(tool.spec.input_schema)
    required = given.get("required", [])
    said = {arg: _argument(schema, surroundings) for arg, schema in given.get("properties", {}).items()}
    args = {arg: schema for arg, schema in said.items() if schema is not None}
    if not args.keys() >= set(required):
        return None
    inputs = _object(args, [arg for arg in args if arg not in required])
    return _object({"id": _ID, "uses": {"const": "tool.call"}, "tool": {"const": name}, "inputs": inputs})


def _argument(schema: Any, surroundings: Surroundings) -> Any:
    """What an argument may be said by: a source whose value it takes, or else a value without an inner life."""
    known = schema if isinstance(schema, Mapping) else {}
    for word in ("const", "enum"):
        if word in known:
            return {word: known[word]}
    taken = plain_kinds(schema) if isinstance(schema, Mapping | bool) else KINDS
    fitting = [f"input.{name}" for name, shape in _given(surroundings).items() if kinds(shape) <= taken]
    if known.get("type") == "string" or taken == KINDS:
        fitting.append("previous")
    return {"enum": fitting} if fitting else _literal(known)


def _literal(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A value that is written out: true or false, or a number of a few digits."""
    if schema.get("type") == "boolean":
        return {"type": "boolean"}
    if schema.get("type") not in ("integer", "number") or not schema.keys() <= _OF_NUMBERS:
        return None
    least, most = max(schema.get("minimum", -_LARGEST), -_LARGEST), min(schema.get("maximum", _LARGEST), _LARGEST)
    return {"type": schema["type"], "minimum": least, "maximum": most} if least <= most else None


def _given(surroundings: Surroundings) -> dict[str, Any]:
    """The fields that the workflow's input surely has."""
    definition = surroundings.definition
    schema = {} if definition is None else definition.to_wire()["inputSchema"]
    if not isinstance(schema, Mapping):
        return {}
    properties = schema.get("properties", {})
    return {name: properties[name] for name in schema.get("required", ()) if name in properties}


def _prompt_step(models: list[str], surroundings: Surroundings) -> dict[str, Any]:
    sources = [*(f"input.{name}" for name in _given(surroundings)), "previous"]
    inputs = {"type": "array", "items": {"enum": sources}, "minItems": 1, "maxItems": _MAX_INPUTS}
    properties = {"id": _ID, "uses": {"const": "ai.generate"}, "prompt": _PROMPT, "inputs": inputs}
    return _object(properties | ({"model": {"enum": models}} if len(models) > 1 else {}))
