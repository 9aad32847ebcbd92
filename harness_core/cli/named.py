"""How people name a session, an approval or an effect in a command: the argument, and the words of its help."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, Final, TypeVar

import click

from harness_core.kernel.projections.naming import LAST

__all__ = ["SESSION_IS", "approval_argument", "effect_argument", "session_argument"]

F = TypeVar("F", bound=Callable[..., Any])

_ENDS: Final = "its id or either end of it, four characters or more"
SESSION_IS: Final = f"S is a session: {_ENDS}, or {LAST}, the newest of this project"


def session_argument(without: str | None = LAST) -> Callable[[F], F]:
    """Give a command its ``S``, and its help the words for it.

    Args:
        without: What is meant without one: ``@last``, or in words what the command does then; None when one is needed.
    """

    def give(command: F) -> F:
        if without is None:
            return _explained(click.argument("session", metavar="S")(command), f"{SESSION_IS}.")
        default = LAST if without == LAST else None
        argument = click.argument("session", metavar="[S]", required=False, default=default)
        return _explained(argument(command), f"{SESSION_IS}; without S: {without}.")

    return give


def approval_argument(command: F) -> F:
    """Give a command its ``A``."""
    said = f"A is an approval: {_ENDS}; harness approvals lists those that wait."
    return _explained(click.argument("approval", metavar="A")(command), said)


def effect_argument(command: F) -> F:
    """Give a command its ``EFFECT``."""
    said = f"EFFECT is an effect in doubt: {_ENDS}; harness approvals lists them."
    return _explained(click.argument("effect", metavar="EFFECT")(command), said)


def _explained(command: F, said: str) -> F:
    command.__doc__ = f"{cleandoc(command.__doc__ or '')}\n\n{said}"
    return command
