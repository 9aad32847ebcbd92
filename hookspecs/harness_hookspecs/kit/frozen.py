"""Deep immutable JSON: a plain JSON value goes in and an equal one that cannot be changed comes out."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, NoReturn, Self, TypeVar

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.strict import MAX_INTEGER, fault

__all__ = ["MAX_VALUE_DEPTH", "FrozenDict", "FrozenList", "freeze", "thaw"]

MAX_VALUE_DEPTH: Final = 100
"""The deepest nesting of a JSON value kept in a model; ``[]`` has depth 1."""

_LEAVES: Final = frozenset({str, int, float, bool, type(None)})

K = TypeVar("K")
V = TypeVar("V")


def _refuse(self: object, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__} cannot be changed; make a copy with dict() or list(), or thaw() it")


class FrozenDict(dict[K, V]):
    """A dict that cannot be changed; equal to a plain dict, and written like one."""

    __slots__ = ()

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(cls, handler(dict))


class FrozenList(list[V]):
    """A list that cannot be changed; equal to a plain list, and written like one."""

    __slots__ = ()

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(cls, handler(list))


def freeze(value: Any, *, max_depth: int = MAX_VALUE_DEPTH) -> Any:
    """Copy a JSON value into one that is immutable all the way down.

    Args:
        value: dict, list, tuple, str, int, float, bool, None; a tuple becomes a list, subclasses the plain kind.
        max_depth: Nesting limit.

    Raises:
        CodecError: The value is not strict JSON; ``where`` is the JSON pointer of the first offender.
    """
    try:
        return _freeze(value, max_depth)
    except (_NotJsonError, UnicodeEncodeError):
        found = fault(value, max_depth=max_depth)
    if found is None:
        raise CodecError
    raise CodecError(found.reason, code=found.code, where=found.pointer or None)


def thaw(value: Any) -> Any:
    """Copy a JSON value into plain dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: item if type(item) in _LEAVES else thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _LEAVES else thaw(item) for item in value]
    return value


class _NotJsonError(Exception):
    """Something in the value is not strict JSON; ``fault`` finds out what."""


def _freeze(value: Any, depth: int) -> Any:
    """One call a container, not one a leaf: every value that is kept passes here, and most leaves are plain texts."""
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, dict):
        if depth <= 0:
            raise _NotJsonError
        below = depth - 1
        return FrozenDict(
            {
                key if type(key) is str and key.isascii() else _key(key): (
                    item if type(item) is str and item.isascii() else _freeze(item, below)
                )
                for key, item in value.items()
            }
        )
    if isinstance(value, (list, tuple)):
        if depth <= 0:
            raise _NotJsonError
        below = depth - 1
        return FrozenList(
            [item if type(item) is str and item.isascii() else _freeze(item, below) for item in value]
        )
    if value is None or isinstance(value, bool):
        return value
    return _text(value) if isinstance(value, str) else _number(value)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _NotJsonError
    return _text(key)


def _text(value: str) -> str:
    value.encode()  # raises for a lone surrogate
    return value if type(value) is str else str.__str__(value)


def _number(value: Any) -> int | float:
    if isinstance(value, int) and -MAX_INTEGER <= value <= MAX_INTEGER:
        return int.__int__(value)
    if isinstance(value, float) and isfinite(value):
        return float.__float__(value)
    raise _NotJsonError
