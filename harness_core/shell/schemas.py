"""A JSON Schema and a value in, located findings out; compiled validators are kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.kit.codec import loads_trusted

__all__ = ["schema_findings"]

MAX_FINDINGS = 20


def schema_findings(schema: Mapping[str, Any], value: Any) -> list[dict[str, Any]]:
    """What is wrong with ``value`` under a JSON Schema 2020-12, at most twenty findings with JSON pointers."""
    validator = _validator(digest(schema), canonical(schema))
    found = sorted(validator.iter_errors(_plain(value)), key=lambda error: [str(part) for part in error.absolute_path])
    return [
        {
            "code": f"schema.{error.validator}",
            "severity": "error",
            "path": "".join(f"/{part}" for part in error.absolute_path),
            "message": error.message if len(error.message) <= 300 else error.message[:297] + "...",
        }
        for error in found[:MAX_FINDINGS]
    ]


@lru_cache(maxsize=256)
def _validator(key: str, schema: bytes) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(loads_trusted(schema))


def _plain(value: Any) -> Any:
    from harness_hookspecs.kit.frozen import thaw

    return thaw(value)
