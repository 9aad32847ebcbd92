"""The one place where a pure plugin call of ``decide`` is made: anything it raises becomes a failed decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from harness_hookspecs.errors import HarnessError, PluginError

__all__ = ["Guarded", "guarded"]

T = TypeVar("T")


class Guarded(NamedTuple):
    """The value, or the error it raised instead."""

    value: Any
    error: HarnessError | None


def guarded(call: Callable[..., Any], *args: Any) -> Guarded:
    """Call an executor's or the rule engine's pure function."""
    try:
        return Guarded(call(*args), None)
    except HarnessError as error:
        return Guarded(None, error)
    except Exception as error:  # the plugin's bug is this decision's failure, not the loop's (contract.md)
        return Guarded(None, PluginError(f"{type(error).__name__}: {error}", code="plugin.raised"))
