"""A JSON Schema for a model's eyes: a schema goes in, one line comes out, ``{jobId: string, tags?: [string]}``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["schema_line"]

_MAX_DEPTH: Final = 6
_MAX_CHARACTERS: Final = 800
_MAX_CHOICES: Final = 20
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_$][\w$-]{0,63}")


def schema_line(schema: Any) -> str:
    """Render a schema: ``?`` marks what may be absent, ``<=`` bounds a text's characters, a list's items or a number.

    What is too deep is ``...``, and a line that is too long ends with a mark; the provider gets the full schema.
    """
    line = _any(schema, schema if isinstance(schema, Mapping) else {}, 0)
    return line if len(line) <= _MAX_CHARACTERS else line[:_MAX_CHARACTERS] + "... (cut)"


def _any(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "nothing" if schema is False else "any"
    if depth > _MAX_DEPTH:
        return "..."
    if "$ref" in schema:
        return _any(_target(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return _json(schema["const"])
    if "enum" in schema:
        return _choices(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return "|".join(dict.fromkeys(_any(one, root, depth + 1) for one in schema[key]))
    return _typed(schema, root, depth)


def _typed(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return "|".join(_typed({**schema, "type": one}, root, depth) for one in kind)
    if kind == "object" or "properties" in schema:
        return "{" + ", ".join(_fields(schema, root, depth)) + "}"
    if kind == "array":
        items = _any(schema.get("items", True), root, depth + 1)
        return f"[{items}]{_bound(schema, 'maxItems')}"
    if kind == "string":
        return f"string{_bound(schema, 'maxLength')}"
    if kind in {"integer", "number"}:
        low = f"{_json(schema['minimum'])}<=" if "minimum" in schema else ""
        return f"{low}{kind}{_bound(schema, 'maximum')}"
    return str(kind) if isinstance(kind, str) else "any"


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[str]:
    required = schema.get("required", ())
    properties = schema.get("properties")
    for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
        shown = name if _PLAIN_NAME.fullmatch(name) else _json(name)
        yield f"{shown}{'' if name in required else '?'}: {_any(inner, root, depth + 1)}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield f"*: {_any(schema['additionalProperties'], root, depth + 1)}"


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference inside the same document points to; anything else is any value."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return True
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name, True) if isinstance(found, Mapping) else True
    return found


def _choices(values: Any) -> str:
    shown = [_json(value) for value in values[:_MAX_CHOICES]] if isinstance(values, list) else []
    more = [f"... ({len(values)} in all)"] if isinstance(values, list) and len(values) > _MAX_CHOICES else []
    return "|".join([*shown, *more]) or "nothing"


def _bound(schema: Mapping[str, Any], key: str) -> str:
    return f"<={_json(schema[key])}" if key in schema else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
