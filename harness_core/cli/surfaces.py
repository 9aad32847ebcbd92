"""A word that no command of the host has in, the command of an installed surface out; loaded for such a word alone."""

from __future__ import annotations

import click

from harness_hookspecs.errors import PluginError

from .hosting import open_host, terminal

__all__ = ["surface_command"]


def surface_command(ctx: click.Context, word: str) -> click.Command | None:
    """Find the command that a surface adds under a name; its context object is the host, closed when it ends.

    Nothing of a plugin is imported while no installed one offers a surface.

    Raises:
        PluginError: ``plugin.doubled``: several surfaces add it.
        HarnessError: The project cannot be opened.
    """
    from harness_core.shell.plugins.index import open_index

    if not any(provided.kind == "surface" for record in open_index().records for provided in record.provides):
        return None
    host = open_host(ctx, terminal=terminal())
    ctx.call_on_close(host.close)
    found = [(name, command) for name, command in host.surface_commands() if command.name == word]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        hint = "leave one of them out: harness --no-plugin ID, or plugins.disable"
        raise PluginError(f"several surfaces add the command {word}: {names}", code="plugin.doubled", hint=hint)
    if found:
        ctx.obj = host
    return found[0][1] if found else None
