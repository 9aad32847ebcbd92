"""The catalogue in, the commands of the installed surfaces out; one that breaks is named and left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from harness_hookspecs.errors import HarnessError, PluginError

from .parts import Need, Parts
from .perform_attempt import attempt
from .plugins.catalogue import Catalogue

__all__ = ["surface_commands"]


def surface_commands(
    catalogue: Catalogue, parts: Parts, complain: Callable[[HarnessError], None]
) -> list[tuple[str, click.Command]]:
    """Build every surface and ask it for its commands.

    Args:
        catalogue: Who offers what.
        parts: Builds.
        complain: Told why a surface is left out, whole: also for one thing among its commands that is none.

    Returns:
        The offer's name and a command, for each command.
    """
    found: list[tuple[str, click.Command]] = []
    for one in catalogue.offers_of("surface"):
        name = one.provided.name
        said = attempt(_commands, parts, name, what=f"surface {name}")
        if said.error is not None:
            complain(said.error)
        found += [(name, command) for command in said.value or ()]
    return found


def _commands(parts: Parts, name: str) -> tuple[click.Command, ...]:
    given: tuple[Any, ...] = tuple(parts.get(Need("surface", name)).commands())
    for command in given:
        if not isinstance(command, click.Command):
            kind = type(command).__name__
            raise PluginError(f"surface {name} gives {kind} where a click.Command belongs", code="plugin.raised")
    return given
