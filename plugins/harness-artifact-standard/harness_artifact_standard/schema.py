"""JSON Schemas for constrained answers: a model goes in, a schema without references comes out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

__all__ = ["MAX_CHOICES", "narrowed_to", "plain_schema"]

MAX_CHOICES: Final = 200
"""More changed files than this are not listed in the schema; the semantic check still looks at each."""

_MAX_PATH_CHARACTERS: Final = 255


def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's schema with every reference replaced by what it points to; the caller's own."""
    plain: dict[str, Any] = json.loads(_written(model))
    return plain


@cache
def _written(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    return json.dumps(_plain(schema, definitions))


def _plain(value: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_plain(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _plain(definitions[value["$ref"].rsplit("/", 1)[-1]], definitions)
    dropped = {"description"} | ({"title"} if isinstance(value.get("title"), str) else set())
    kept = {key: item for key, item in value.items() if key not in dropped or isinstance(item, dict)}
    return {key: _plain(item, definitions) for key, item in kept.items()}


def narrowed_to(schema: dict[str, Any], field: str, changed: Iterable[Any]) -> dict[str, Any]:
    """The schema with the entries of an array field restricted to some names, of which one at least is wanted.

    ``uniqueItems`` is not used: constrained decoders ignore it, so a repeated name is merged when it is parsed.
    """
    names = sorted({name for name in changed if isinstance(name, str) and 0 < len(name) <= _MAX_PATH_CHARACTERS})
    array = schema["properties"][field]
    array["maxItems"] = min(array["maxItems"], len(names))
    if names:
        array["minItems"] = 1
    if 0 < len(names) <= MAX_CHOICES:
        array["items"] = {"type": "string", "enum": names}
    return schema
