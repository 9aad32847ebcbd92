"""The pluggy markers of the project: how a specification and an implementation are recognised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pluggy

__all__ = ["PROJECT", "hookimpl", "hookspec", "implements"]

PROJECT = "harness"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

F = TypeVar("F", bound=Callable[..., object])


def implements(spec: F) -> Callable[[F], F]:
    """Mark a function as the implementation of ``spec``; a wrong signature is then a type error.

    Args:
        spec: The specification, for example ``hooks.harness_provide_tools``.

    Returns:
        A decorator that registers the function under the specification's name.
    """

    def mark(function: F) -> F:
        return hookimpl(specname=spec.__name__)(function)

    return mark
