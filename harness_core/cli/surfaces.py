"""A word that no command of the host has in, a surface's command or why there is none out; loaded for such a word."""

from __future__ import annotations

from collections.abc import Sequence

import click

from harness_core.shell.ports_streams import give_stdout_back, keep_stdout_for_results
from harness_hookspecs.errors import HarnessError, PluginError

from .hosting import open_host, terminal
from .output import options_of

__all__ = ["no_command", "surface_command"]


def surface_command(ctx: click.Context, word: str) -> click.Command | None:
    """Find the command that a surface adds under a name; its context object is the host, closed when it ends.

    Nothing of a plugin is imported while no installed one offers a surface. In a project that cannot be opened no
    surface can be asked: there is no command then, and ``no_command`` says why.

    Raises:
        PluginError: ``plugin.doubled``: several surfaces add it.
    """
    from harness_core.shell.plugins.index import open_index

    if not any(provided.kind == "surface" for record in open_index().records for provided in record.provides):
        return None
    if options_of(ctx).own_process:
        keep_stdout_for_results()
    try:
        host = open_host(ctx, terminal=terminal())
    except HarnessError as error:
        ctx.meta[__name__] = error
        return None
    ctx.call_on_close(host.close)
    found = [(name, command) for name, command in host.surface_commands() if command.name == word]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        hint = "leave one of them out: harness --no-plugin ID, or plugins.disable"
        raise PluginError(f"several surfaces add the command {word}: {names}", code="plugin.doubled", hint=hint)
    if found:
        ctx.obj = host
        give_stdout_back()
    return found[0][1] if found else None


def no_command(ctx: click.Context, word: str, known: Sequence[str]) -> str:
    """Say that a word is no command, which one is near, and why those of surfaces are not known if they are not."""
    from harness_core.settings.problems import nearest

    near = nearest(word, known)
    hint = f"; {near}" if near else ""
    unseen: HarnessError | None = ctx.meta.get(__name__)
    if unseen is None:
        return f'there is no command "{word}"{hint}'
    where = f"{unseen.where}: " if unseen.where and unseen.where not in unseen.message else ""
    return (
        f'there is no command "{word}" among those of harness{hint}\n'
        f"  and those of plugins cannot be looked up: {where}{unseen.message}"
    )
