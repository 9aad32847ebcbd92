"""The catalogue in, the commands of the installed surfaces out; one that breaks is named and left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness_hookspecs.errors import HarnessError

from .parts import Need, Parts
from .perform_attempt import attempt
from .plugins.catalogue import Catalogue

__all__ = ["surface_commands"]


def surface_commands(
    catalogue: Catalogue, parts: Parts, complain: Callable[[HarnessError], None]
) -> list[tuple[str, Any]]:
    """Build every surface and ask it for its commands.

    Args:
        catalogue: Who offers what.
        parts: Builds.
        complain: Told why a surface is left out.

    Returns:
        The offer's name and a command, for each command.
    """
    found: list[tuple[str, Any]] = []
    for one in catalogue.offers_of("surface"):
        name = one.provided.name
        built = attempt(parts.get, Need("surface", name), what=f"surface {name}")
        error = built.error
        if built.value is not None:
            said = attempt(built.value.commands, what=f"surface {name}")
            error = said.error
            found += [(name, command) for command in said.value or ()]
        if error is not None:
            complain(error)
    return found
