"""Errors that a person can act on: an expression, a place in it and a reason go in, a RuleError comes out.

The message has the reason, the line of the expression with a caret, what is in scope and the nearest name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.errors import RuleError

__all__ = ["describe_scope", "refuse"]

_FIELDS_SHOWN = 12


def refuse(
    text: str,
    at: int | None,
    message: str,
    *,
    code: str,
    hint: str | None = None,
    scope: str | None = None,
) -> RuleError:
    """Build the error.

    Args:
        text: The expression.
        at: Offset of the offender, ``None`` when the binding did not say.
        message: What is wrong, in one sentence.
        code: The stable code.
        hint: What to write instead.
        scope: What is in scope, as ``describe_scope`` says it.
    """
    lines = [message, *_shown(text, at)]
    if scope:
        lines.append(f"in scope: {scope}")
    column = None if at is None else at + 1
    return RuleError("\n".join(lines), code=code, hint=hint, expression=text[:1024], column=column)


def _shown(text: str, at: int | None) -> list[str]:
    if at is None:
        return [f"  {line}" for line in text.splitlines()]
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    return [f"  {line}", f"  {' ' * (at - start)}^"]


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
