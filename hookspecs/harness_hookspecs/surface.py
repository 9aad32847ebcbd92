"""Kind ``surface``: commands and servers that people and programs reach the host by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import click

__all__ = ["Surface"]


class Surface(Protocol):
    """What an offer of kind ``surface`` builds. It gets the ``Host`` through the command's context object.

    Surfaces are looked at when somebody types a word that no command of the host is called, and for nothing else:
    neither ``--help`` nor any other command imports one.
    """

    def commands(self) -> tuple[click.Command, ...]:
        """Commands to add. One called like a command of the host never runs; two of one name are an error.

        ``ctx.obj`` is a :class:`~harness_hookspecs.host.Host` on the project, closed when the command has ended.
        What the command returns, if a whole number, is the exit code.
        """
