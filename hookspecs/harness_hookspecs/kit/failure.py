"""Exceptions as data: any exception goes in, a bounded strict JSON object that describes it comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from traceback import TracebackException
from typing import Any, Final

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.frozen import FrozenDict, FrozenList
from harness_hookspecs.kit.strict import fault

__all__ = [
    "MAX_CAUSES",
    "MAX_DETAIL_DEPTH",
    "MAX_ITEMS",
    "MAX_MESSAGE_CHARS",
    "MAX_STACK_CHARS",
    "describe",
    "json_safe",
]

MAX_MESSAGE_CHARS: Final = 4_000
MAX_STACK_CHARS: Final = 16_000
MAX_CAUSES: Final = 8
MAX_DETAIL_DEPTH: Final = 6
MAX_ITEMS: Final = 100

_CONTAINERS: Final = frozenset({dict, list, tuple, FrozenDict, FrozenList})


def describe(error: BaseException, *, with_stack: bool = True) -> dict[str, Any]:
    """Describe an exception and what caused it, in the shape of an error envelope.

    A HarnessError gives its code, and its hint, place and facts as details; any other exception gives its public
    attributes as details. A cause that was told already is left out. Texts that are cut say so. Never raises.

    Returns:
        ``{name, message, code?, stack?, cause?, details?}``.
    """
    chain = list(islice(_chain(error), MAX_CAUSES + 1))
    described: dict[str, Any] | None = None
    if len(chain) > MAX_CAUSES:
        chain.pop()
        described = {"name": "MoreCauses", "message": "Deeper causes were cut."}
    for item in reversed(chain):
        outer = _describe_one(item, with_stack)
        if described is not None:
            outer["cause"] = described
        described = outer
    return described or {}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        yield current
        seen.add(id(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _describe_one(error: BaseException, with_stack: bool) -> dict[str, Any]:
    # TracebackException survives a __str__ that raises, and reads no more frames than it is told to.
    told = TracebackException(type(error), error, error.__traceback__, limit=-20, compact=True)
    found: dict[str, Any] = {"name": _cut(type(error).__name__, 200), "message": _cut(str(told), MAX_MESSAGE_CHARS)}
    if isinstance(error, HarnessError):
        found["message"] = json_safe(error.message)
        found["code"] = json_safe(error.code)
    stack = "".join(told.stack.format())
    if with_stack and stack:
        found["stack"] = _cut(stack, MAX_STACK_CHARS)
    details = json_safe(_details(error))
    if details:
        found["details"] = details
    return found


def _details(error: BaseException) -> Mapping[str, Any]:
    if isinstance(error, HarnessError):
        placed = {"hint": error.hint, "where": error.where}
        return {**error.facts, **{name: text for name, text in placed.items() if text is not None}}
    own = getattr(error, "__dict__", {})
    return {name: item for name, item in own.items() if isinstance(name, str) and not name.startswith("_")}


def json_safe(value: Any, *, max_depth: int = MAX_DETAIL_DEPTH) -> Any:
    """Make strict JSON of any value: what is JSON stays, an object becomes ``<ItsType>``, the rest is cut and says so.

    Never calls code of the value's own: no repr, no str, no iteration of foreign containers.
    """
    return _safe(value, max_depth)


def _safe(value: Any, depth: int) -> Any:
    if type(value) in _CONTAINERS:
        if depth <= 0:
            return "<cut: nested too deep>"
        return _safe_dict(value, depth) if isinstance(value, dict) else _safe_list(value, depth)
    if isinstance(value, str):
        return _cut(str.__str__(value), MAX_MESSAGE_CHARS)
    if isinstance(value, (int, float)) and fault(value) is not None:
        return "<a number beyond JSON>"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return f"<{type(value).__name__}>"


def _safe_dict(value: Any, depth: int) -> dict[str, Any]:
    kept = {
        _cut(key if isinstance(key, str) else f"<{type(key).__name__}>", 200): _safe(item, depth - 1)
        for key, item in islice(value.items(), MAX_ITEMS)
    }
    if len(value) > MAX_ITEMS:
        kept["<cut>"] = len(value) - MAX_ITEMS
    return kept


def _safe_list(value: Any, depth: int) -> list[Any]:
    kept = [_safe(item, depth - 1) for item in islice(value, MAX_ITEMS)]
    return [*kept, f"<cut: {len(value) - MAX_ITEMS} more>"] if len(value) > MAX_ITEMS else kept


def _cut(text: str, limit: int) -> str:
    """At most ``limit`` characters of UTF-8 text: the beginning and the end, and between them what is missing."""
    safe = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    if len(safe) <= limit:
        return safe
    half = (limit - 40) // 2
    return f"{safe[:half]}\n[... {len(safe) - 2 * half} characters cut ...]\n{safe[-half:]}"
