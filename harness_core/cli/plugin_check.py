"""``harness plugins check``: plugins that are installed or lie in a folder in, what is wrong with them out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_core.shell.plugins.checking import check_rows, folder_row, try_rows
from harness_core.shell.plugins.index import open_index
from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.render import escape_line

from .output import emit, json_option
from .plugins import open_for

if TYPE_CHECKING:
    from harness_core.shell.plugins.policy import Row

__all__ = ["check"]

_OF_OFFERS = {"HP047", "HP048", "HP049"}  # what is wrong with one offer leaves the others as they are


@click.command()
@click.argument("target", metavar="[ID|PATH]", required=False)
@click.option(
    "--import", "run_code", is_flag=True, help="Import it in a child process; check what it offers."
)
@json_option
@click.pass_context
def check(ctx: click.Context, target: str | None, run_code: bool) -> None:
    """Check plugins, all or one, installed or in a folder.

    Exit 3 when there are findings.
    """
    rows, tried = (_check_folder if target and os.path.isdir(target) else _check_installed)(ctx, target, run_code)
    found = check_rows(rows, tried)
    items = [finding._asdict() for finding in found]
    emit(
        ctx, {"schema": "harness.plugin_check/1", "checked": len(rows), "imported": run_code, "items": items}, _checked
    )
    ctx.exit(3 if items else 0)


def _check_folder(_: click.Context, folder: Any, run_code: bool) -> tuple[list[Row], list[Any]]:
    row, folders = folder_row(folder)
    path = [*folders, *open_index().path]
    return [row], try_rows([row], path, make_ports("threads").processes) if run_code else []


def _check_installed(ctx: click.Context, plugin: str | None, run_code: bool) -> tuple[list[Row], list[Any]]:
    if plugin and os.sep in plugin:  # no id has one
        raise NotFound(
            f"there is no folder {plugin}",
            code="plugin.not_found",
            hint="name the folder that holds the plugin's pyproject.toml",
        )
    catalogue = open_for(ctx)
    rows = [catalogue.row(plugin)] if plugin else list(catalogue.rows)
    if not run_code:
        return rows, []
    tried = try_rows(rows, catalogue.index.path, make_ports("threads").processes)
    catalogue.learn((record, [flaw for flaw in flaws if flaw.code not in _OF_OFFERS]) for record, flaws in tried)
    return rows, tried


def _checked(document: Mapping[str, Any]) -> str:
    count, found = document["checked"], document["items"]
    lines = [_finding(one) for one in found]
    return "\n".join(
        [
            *lines,
            f"{count} plugin{'s' if count != 1 else ''} checked, {len(found)} finding{'s' if len(found) != 1 else ''}",
        ]
    )


def _finding(item: Mapping[str, Any]) -> str:
    hint = f" ({item['hint']})" if item["hint"] else ""
    return escape_line(f"{item['code']}  {item['plugin']}  {item['message']}{hint}")
