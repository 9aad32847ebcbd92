"""Kind ``surface``: commands and servers that people and programs reach the host by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import click

__all__ = ["Surface"]


class Surface(Protocol):
    """What an offer of kind ``surface`` builds. It gets the ``Host`` through the command's context object."""

    def commands(self) -> tuple[click.Command, ...]:
        """Commands to add; a name that the host or another surface has is refused."""
