"""What a person is told beside an error: the values of an expression go in, what is in scope comes out in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["describe_scope"]

_FIELDS_SHOWN = 12


def describe_scope(values: Mapping[str, Any]) -> str:
    """The roots with their fields or their types, for a person."""
    return ", ".join(f"{name} ({_described(values[name])})" for name in sorted(values)) or "nothing"


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        names = sorted(value)
        more = f" and {len(names) - _FIELDS_SHOWN} more" if len(names) > _FIELDS_SHOWN else ""
        return ("fields " + ", ".join(names[:_FIELDS_SHOWN]) + more) if names else "no fields"
    if isinstance(value, list):
        return f"list of {len(value)}"
    kinds = {bool: "true or false", int: "number", float: "number", str: "text", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)
