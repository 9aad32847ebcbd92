"""Exceptions as data: any exception goes in, a bounded strict JSON object that describes it comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from traceback import TracebackException
from typing import Any, Final, TypeGuard

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.frozen import FrozenDict, FrozenList
from harness_hookspecs.kit.strict import fault

__all__ = ["causes", "describe", "headline", "is_whole", "json_safe"]

MAX_MESSAGE_CHARS: Final = 4_000
MAX_STACK_CHARS: Final = 16_000
MAX_CAUSES: Final = 8
MAX_DETAIL_DEPTH: Final = 6
MAX_DETAIL_CHARS: Final = 20_000

_CONTAINERS: Final = frozenset({dict, list, tuple, FrozenDict, FrozenList})


def describe(error: BaseException, *, with_stack: bool = True) -> dict[str, Any]:
    """Describe an exception and what caused it, in the shape of an error envelope.

    A HarnessError gives its code, and its hint, place and facts as details; any other exception gives its public
    attributes as details. A cause that was told already is left out. Texts that are cut say so. Never raises.

    Returns:
        ``{name, message, code?, stack?, cause?, details?}``.
    """
    chain = list(islice(causes(error), MAX_CAUSES + 1))
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


def headline(error: BaseException) -> str:
    """Name an exception in one text: its type and, where it has one, its message, for example ``KeyError: 'a'``.

    Never raises, also where the exception's own ``str`` does.
    """
    name, message = type(error).__name__, _message(error)
    return f"{name}: {message}" if message else name


def is_whole(error: BaseException) -> TypeGuard[HarnessError]:
    """Whether it is a HarnessError with what everybody reads of one; a subclass may have made itself otherwise."""
    if not isinstance(error, HarnessError):
        return False
    texts = (getattr(error, "message", None), getattr(error, "code", None))
    others = hasattr(error, "hint") and hasattr(error, "where")
    return others and all(isinstance(text, str) for text in texts) and isinstance(getattr(error, "facts", None), dict)


def _message(error: BaseException) -> str:
    # It survives a __str__ that raises.
    return _cut(str(TracebackException(type(error), error, None, compact=True)), MAX_MESSAGE_CHARS)


def causes(error: BaseException, *, hidden: bool = False) -> Iterator[BaseException]:
    """Give an error and what led to it as a traceback tells them, each once.

    Args:
        error: It may have come to stand below itself, as one that is raised again.
        hidden: Whether what ``raise ... from None`` keeps out of a traceback counts as well.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        yield current
        seen.add(id(current))
        suppressed = current.__suppress_context__ and not hidden
        current = current.__cause__ or (None if suppressed else current.__context__)


def _describe_one(error: BaseException, with_stack: bool) -> dict[str, Any]:
    # TracebackException survives a __str__ that raises, and reads no more frames than it is told to.
    told = TracebackException(type(error), error, error.__traceback__, limit=-20, compact=True)
    found: dict[str, Any] = {"name": _cut(type(error).__name__, 200), "message": _cut(str(told), MAX_MESSAGE_CHARS)}
    if is_whole(error):
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
    if is_whole(error):
        placed = {"hint": error.hint, "where": error.where}
        return {**error.facts, **{name: text for name, text in placed.items() if text is not None}}
    own = getattr(error, "__dict__", {})
    return {name: item for name, item in own.items() if isinstance(name, str) and not name.startswith("_")}


def json_safe(value: Any, *, max_chars: int = MAX_DETAIL_CHARS) -> Any:
    """Make bounded strict JSON of any value: what is JSON stays, an object becomes ``<ItsType>``, cuts say so.

    Never calls code of the value's own: no repr, no str, no iteration of foreign containers.

    Args:
        value: Anything; cycles are cut where they close.
        max_chars: About how much text to keep in all.
    """
    return _Copier(max_chars).copy(value)


class _Copier:
    """One copy under way: how much room is left, and which containers it is inside of."""

    def __init__(self, room_chars: int) -> None:
        self._room_chars = room_chars
        self._open: set[int] = set()

    def copy(self, value: Any) -> Any:
        self._room_chars -= 4
        if type(value) in _CONTAINERS:
            return self._container(value)
        if isinstance(value, str):
            return self._text(value, MAX_MESSAGE_CHARS)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value if fault(value) is None else "<a number beyond JSON>"
        return f"<{type(value).__name__}>"

    def _text(self, text: str, limit: int) -> str:
        kept = _cut(str.__str__(text), min(limit, max(self._room_chars, 100)))
        self._room_chars -= len(kept)
        return kept

    def _container(self, value: Any) -> Any:
        if id(value) in self._open:
            return "<cut: it holds itself>"
        if len(self._open) >= MAX_DETAIL_DEPTH:
            return "<cut: nested too deep>"
        self._open.add(id(value))
        copied = self._object(value) if isinstance(value, dict) else self._array(value)
        self._open.discard(id(value))
        return copied

    def _object(self, value: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for done, (key, item) in enumerate(value.items()):
            if self._room_chars <= 0:
                return {**kept, "<cut>": len(value) - done}
            name = self._text(key, 200) if isinstance(key, str) else f"<{type(key).__name__}>"
            kept[name] = self.copy(item)
        return kept

    def _array(self, value: Any) -> list[Any]:
        kept: list[Any] = []
        for done, item in enumerate(value):
            if self._room_chars <= 0:
                return [*kept, f"<cut: {len(value) - done} more>"]
            kept.append(self.copy(item))
        return kept


def _cut(text: str, limit: int) -> str:
    """At most ``limit`` characters of UTF-8 text: the beginning and the end, and between them what is missing."""
    safe = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    if len(safe) <= limit:
        return safe
    half = (limit - 40) // 2
    return f"{safe[:half]}\n[... {len(safe) - 2 * half} characters cut ...]\n{safe[-half:]}"
