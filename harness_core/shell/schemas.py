"""A JSON Schema and a value in, located findings out; compiled schemas are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.json_schema import compiled_schema, faults

__all__ = ["data_findings", "schema_findings"]

MAX_COMPILED = 256

_COMPILED: dict[str, Any] = {}  # a cache by content: what is forgotten is compiled again


def data_findings(schema: Mapping[str, Any] | bool, value: Any) -> list[dict[str, Any]]:
    """The same of a schema that may also be true or false, as those of workflows and plans are."""
    rule = schema if isinstance(schema, Mapping) else {} if schema else {"not": {}}
    return schema_findings(rule, value)


def schema_findings(schema: Mapping[str, Any], value: Any, *, schema_hash: str | None = None) -> list[dict[str, Any]]:
    """What is wrong with ``value`` under a JSON Schema 2020-12, at most twenty findings with JSON pointers.

    Args:
        schema: The schema.
        value: The value, as the codec reads and writes it.
        schema_hash: Any hash that stands for this schema, where one is at hand; computing it is half the work.

    Raises:
        PluginError: The schema itself is broken (``plugin.schema_invalid``, ``plugin.schema_unresolvable``), or could
            ask for too much (``plugin.schema_too_complex``).
    """
    key = schema_hash or digest(schema)
    return [
        {"code": f"schema.{one.keyword}", "severity": "error", "path": one.pointer, "message": one.message}
        for one in faults(_COMPILED.get(key) or _compiled(key, schema), value)
    ]


def _compiled(key: str, schema: Mapping[str, Any]) -> Any:
    found = _COMPILED[key] = compiled_schema(schema)
    for oldest in list(_COMPILED)[:-MAX_COMPILED]:
        _COMPILED.pop(oldest, None)  # of two threads the other may have been first
    return found
