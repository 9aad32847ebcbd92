"""A payload as an older version wrote it in, the payload of today out: a table from type and version, nothing else.

Whoever changes the form of an event raises its version in the vocabulary and adds here what makes the new form of the
old one. What is stored is never rewritten; each event is read through this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["UPCASTERS", "Upcaster", "upcast"]

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Takes the payload of one version and gives that of the next. It is pure: the same for the same payload for ever."""

UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""By type and the version that is read: one for each version below the current one."""


def upcast(event_type: str, version: int, payload: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """Read a payload as the latest version that there is a way to; one that is of today, or of tomorrow, stays."""
    step = UPCASTERS.get((event_type, version))
    while step is not None:
        version, payload = version + 1, step(payload)
        step = UPCASTERS.get((event_type, version))
    return version, payload
