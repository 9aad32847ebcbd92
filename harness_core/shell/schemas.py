"""A JSON Schema and a value in, located findings out; compiled validators are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.frozen import thaw

__all__ = ["schema_findings"]

MAX_FINDINGS = 20
MAX_COMPILED = 256

_COMPILED: dict[str, Any] = {}  # a cache by content: what is forgotten is compiled again


def schema_findings(schema: Mapping[str, Any], value: Any, *, schema_hash: str | None = None) -> list[dict[str, Any]]:
    """What is wrong with ``value`` under a JSON Schema 2020-12, at most twenty findings with JSON pointers.

    Args:
        schema: The schema.
        value: The value.
        schema_hash: Any hash that stands for this schema, where one is at hand; computing it is half the work.
    """
    validator = _compiled(schema_hash or digest(schema), schema)
    found = sorted(validator.iter_errors(thaw(value)), key=lambda error: [str(part) for part in error.absolute_path])
    return [
        {
            "code": f"schema.{error.validator}",
            "severity": "error",
            "path": "".join(f"/{part}" for part in error.absolute_path),
            "message": error.message if len(error.message) <= 300 else error.message[:297] + "...",
        }
        for error in found[:MAX_FINDINGS]
    ]


def _compiled(key: str, schema: Mapping[str, Any]) -> Any:
    found = _COMPILED.pop(key, None)
    if found is None:
        from jsonschema import Draft202012Validator

        found = Draft202012Validator(thaw(schema))
    _COMPILED[key] = found
    while len(_COMPILED) > MAX_COMPILED:
        _COMPILED.pop(next(iter(_COMPILED)), None)
    return found
