"""A plugin's call in, its value or its error out: the one place where what a plugin raises at run time is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from harness_core.kernel.guard import plugin_error
from harness_hookspecs.errors import HarnessError

from .ports.interruption import is_interruption

__all__ = ["Attempt", "attempt"]

T = TypeVar("T")


class Attempt(NamedTuple, Generic[T]):
    """What came of a call: a value, or the error in its place."""

    value: T | None
    error: HarnessError | None


def attempt(
    call: Callable[..., T], *args: Any, what: str, passing: tuple[type[BaseException], ...] = (), **kwargs: Any
) -> Attempt[T]:
    """Make a call into a plugin.

    Args:
        call: The plugin's function.
        what: Who is called, for the message of an error that is not one of ours.
        passing: What is no error of this call's and is raised on, ``Suspend`` for a role's.

    Returns:
        The value, or the error: a ``HarnessError`` as it is, anything else as ``PluginError(code="plugin.raised")``
        with the cause, be it ``SystemExit`` or a Ctrl-C that nobody typed. One that a person typed passes, and so does
        the end of a simulation.
    """
    try:
        return Attempt(call(*args, **kwargs), None)
    except passing:
        raise
    except BaseException as error:  # a plugin may raise anything, and the host must live
        if is_interruption(error):
            raise
        return Attempt(None, plugin_error(error, what))
