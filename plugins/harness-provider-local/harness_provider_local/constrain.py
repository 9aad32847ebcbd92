"""A JSON Schema goes in; the grammar that makes the engine keep to it comes out, and what an answer does against it.

The engine's compiler (LLGuidance) has two habits this module lives with. With ``lenient`` it ignores keywords it does
not know, ``uniqueItems`` and ``not`` among them. What it cannot compile at all, look-around in a ``pattern`` for
example, makes it generate without any constraint and without an error. So what would do that is taken out before, and
every answer is validated against the whole schema afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.errors import CodecError, PluginError, ProviderError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import UNRESOLVABLE, best_fault, compiled_schema

__all__ = ["check_schema", "grammar", "loosened", "violation"]

_GUIDANCE: Final = {"whitespace_flexible": False, "lenient": True}
_BEYOND_ENGINE: Final = re.compile(r"\(\?(?:[=!>]|<[=!]|P=|\()|\\[1-9]|\\[kGZzbB]")
"""Look-around, back references, word boundaries, conditions: what regular expressions cannot do in linear time."""

_ONE: Final = frozenset({"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"})
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DROPPED: Final = frozenset({"$schema", "$id", "title", "description", "examples", "default", "$comment"})


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is none; the engine would quietly ignore it.

    Raises:
        ProviderError: ``provider.schema_invalid``.
    """
    try:
        compiled_schema(schema)
    except PluginError as error:
        if error.code == UNRESOLVABLE:
            return  # the engine says what it makes of it, and the answer is judged
        raise ProviderError(
            f"The response schema is no JSON Schema: {error.message}",
            code="provider.schema_invalid",
            where=error.where or "/",
        ) from error


def grammar(schema: Mapping[str, Any]) -> str:
    """Give the engine's grammar for compact JSON that satisfies the schema as far as the engine can enforce it."""
    guided = {**loosened(schema), "x-guidance": _GUIDANCE}
    return "%llguidance {}\nstart: %json " + codec.dumps(guided).decode()


def loosened(schema: Any) -> Any:
    """Take out of a schema what the engine cannot compile, and what only people read.

    The result allows more, never less.
    """
    if not isinstance(schema, Mapping):
        return schema
    return {key: _loose(key, value) for key, value in schema.items() if not _beyond(key, value)}


def _beyond(key: str, value: Any) -> bool:
    return key in _DROPPED or (key == "pattern" and isinstance(value, str) and bool(_BEYOND_ENGINE.search(value)))


def _loose(key: str, value: Any) -> Any:
    if key in _ONE:
        return loosened(value)
    if key in _MANY and isinstance(value, (list, tuple)):
        return [loosened(item) for item in value]
    if key in _NAMED and isinstance(value, Mapping):
        kept = value if key != "patternProperties" else {k: v for k, v in value.items() if not _BEYOND_ENGINE.search(k)}
        return {name: loosened(item) for name, item in kept.items()}
    return value


def violation(schema: Mapping[str, Any], text: str) -> str | None:
    """Say what an answer's text does against the schema; ``None`` when it satisfies it."""
    try:
        value = codec.loads(text)
    except CodecError as error:
        return f"not JSON: {error}"
    try:
        fault = best_fault(compiled_schema(schema), value)
    except PluginError as error:
        what = "refers to something that is not there" if error.code == UNRESOLVABLE else "is no JSON Schema"
        return f"the schema {what}: {error.message}"
    return None if fault is None else f"{fault.pointer or '/'}: {fault.message}"
