"""A plugin's call in, its value or its error out: the one place where what a plugin raises at run time is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from harness_hookspecs.errors import HarnessError, PluginError

__all__ = ["Attempt", "attempt"]

T = TypeVar("T")


class Attempt(NamedTuple, Generic[T]):
    """What came of a call: a value, or the error in its place."""

    value: T | None
    error: HarnessError | None


def attempt(call: Callable[..., T], *args: Any, what: str, **kwargs: Any) -> Attempt[T]:
    """Make a call into a plugin.

    Args:
        call: The plugin's function.
        what: Who is called, for the message of an error that is not one of ours.

    Returns:
        The value, or the error: a ``HarnessError`` as it is, anything else as ``PluginError(code="plugin.raised")``
        with the cause. ``Suspend`` and the like pass: they are no errors.
    """
    try:
        return Attempt(call(*args, **kwargs), None)
    except HarnessError as error:
        return Attempt(None, error)
    except Exception as error:  # a plugin may raise anything, and the host must live
        wrapped = PluginError(f"{what} raised {type(error).__name__}: {error}", code="plugin.raised")
        wrapped.__cause__ = error
        return Attempt(None, wrapped)
