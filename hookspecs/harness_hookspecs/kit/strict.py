"""The rules of strict JSON for Python values: a value goes in, the first fault in it or None comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

__all__ = ["MAX_INTEGER", "MAX_WRITE_DEPTH", "Fault", "fault"]

MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8259, section 6)."""

MAX_WRITE_DEPTH: Final = 254
"""The deepest nesting that orjson writes; ``[]`` has depth 1. What is deeper could be read and not written back."""


class Fault(NamedTuple):
    """Why a Python value is not strict JSON, and where: a stable code, a sentence and a JSON pointer."""

    code: str
    reason: str
    pointer: str


def fault(value: Any, *, max_depth: int = MAX_WRITE_DEPTH) -> Fault | None:
    """Find the first thing in a value that strict JSON does not allow, in document order, or None.

    Walks without recursion, so that a cyclic value ends as ``codec.too_deep``.
    """
    waiting: list[tuple[Any, str, int]] = [(value, "", 1)]
    while waiting:
        item, pointer, depth = waiting.pop()
        if not isinstance(item, (dict, list, tuple)):
            found = _scalar_fault(item, pointer)
        elif depth > max_depth:
            found = Fault("codec.too_deep", f"The value is nested deeper than {max_depth} levels.", pointer)
        else:
            found = _key_fault(item, pointer)
            if found is None:
                inner = [(child, f"{pointer}/{_escape(key)}", depth + 1) for key, child in _children(item)]
                waiting.extend(reversed(inner))
        if found is not None:
            return found
    return None


def _children(item: Any) -> Iterable[tuple[str | int, Any]]:
    return item.items() if isinstance(item, dict) else enumerate(item)


def _escape(key: str | int) -> str:
    return key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _key_fault(item: Any, pointer: str) -> Fault | None:
    if not isinstance(item, dict):
        return None
    for key in item:
        if not isinstance(key, str):
            return Fault("codec.key", f"A key is of type {type(key).__name__}, not text.", pointer)
        if _has_surrogate(key):
            return Fault("codec.surrogate", "A key holds a lone surrogate.", pointer)
    return None


def _scalar_fault(item: Any, pointer: str) -> Fault | None:
    if isinstance(item, str):
        return Fault("codec.surrogate", "The text holds a lone surrogate.", pointer) if _has_surrogate(item) else None
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, int):
        small = -MAX_INTEGER <= item <= MAX_INTEGER
        return None if small else Fault("codec.integer_range", "The integer is beyond 2^53-1.", pointer)
    if isinstance(item, float):
        return None if math.isfinite(item) else Fault("codec.not_finite", "The number is NaN or infinite.", pointer)
    return Fault("codec.type", f"A value of type {type(item).__name__} is not JSON.", pointer)
