"""The one place where a pure plugin call of ``decide`` is made: anything it raises becomes a failed decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from harness_hookspecs.errors import HarnessError, PluginError
from harness_hookspecs.kit.failure import headline, is_whole

__all__ = ["Guarded", "guarded", "plugin_error"]

T = TypeVar("T")

_HOSTS_OWN = "approval.denied_unattended"
"""Ends a session, as what nobody may be asked about; no plugin knows that, so none may say so."""


class Guarded(NamedTuple):
    """The value, or the error it raised instead."""

    value: Any
    error: HarnessError | None


def guarded(call: Callable[..., Any], *args: Any, what: str) -> Guarded:
    """Call an executor's or the rule engine's pure function; ``what`` names it in an error that is not one of ours."""
    try:
        return Guarded(call(*args), None)
    except KeyboardInterrupt:  # perhaps a person's; which thread this is, is not known in here
        raise
    except BaseException as error:  # the plugin's bug is this decision's failure, not the loop's (contract.md)
        return Guarded(None, plugin_error(error, what))


def plugin_error(error: BaseException, what: str) -> HarnessError:
    """What a plugin raised, as an error that may be recorded: one of ours as it is, anything else under its name.

    The one code that is the host's own to give becomes ``plugin.raised``.
    """
    if is_whole(error):
        if error.code == _HOSTS_OWN:
            error.code = "plugin.raised"  # type: ignore[misc]  # an instance may be more exact
        return error
    named = PluginError(f"{what} raised {headline(error)}", code="plugin.raised")
    named.__cause__ = error
    return named
