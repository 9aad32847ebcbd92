"""The tools as models and the host see them: nothing goes in, their specifications come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.tool import EffectClass, Tier, ToolSpec

__all__ = ["SPECS"]

_NOTE: Final = {"note": {"type": "string", "default": "", "description": "Anything; it stands in the line."}}


def _spec(
    name: str, description: str, tier: Tier, effect: EffectClass, more: Mapping[str, Any] | None = None
) -> ToolSpec:
    schema = {"type": "object", "properties": {**_NOTE, **(more or {})}, "additionalProperties": False}
    return ToolSpec(
        name=f"effects_{name}",
        description=description,
        input_schema=schema,
        tier=tier,
        effect=effect,
        timeout_seconds=60.0,
    )


SPECS: Final = (
    _spec("pure", "Change nothing; the line only shows that it ran.", "T1", "pure"),
    _spec("keyed", "Add a line once for each key.", "T2", "keyed"),
    _spec("unkeyed", "Add a line each time.", "T2", "unkeyed"),
    _spec("network", "Add a line each time, as something that reaches outside.", "T3", "unkeyed"),
    _spec("destroy", "Add a line each time, as something that cannot be undone.", "T4", "unkeyed"),
    _spec(
        "slow",
        "Add a line, then take a while before answering.",
        "T2",
        "unkeyed",
        {
            "seconds": {"type": "number", "minimum": 0, "maximum": 60, "default": 1},
            "line": {"enum": ["before", "after", "both"], "default": "before"},
            "deaf": {"type": "boolean", "default": False, "description": "Go on when it is cancelled."},
        },
    ),
    _spec(
        "fail",
        "Add a line and fail.",
        "T2",
        "unkeyed",
        {"how": {"enum": ["error", "refused", "crash", "never"], "default": "error"}},
    ),
    _spec(
        "big",
        "Give back a text of that size; the line only shows that it ran.",
        "T1",
        "pure",
        {"size_bytes": {"type": "integer", "minimum": 0, "maximum": 67_108_864, "default": 1_048_576}},
    ),
)
