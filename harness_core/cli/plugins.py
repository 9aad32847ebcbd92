"""``harness plugins``: what is installed, who takes part, who answers and what is wrong; a list imports no plugin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from harness_core.shell.plugins.catalogue import Catalogue
from harness_core.shell.plugins.index import open_index
from harness_core.shell.plugins.opening import remembered_selection
from harness_core.shell.plugins.policy import STATUSES, Row, Selection, row_document, with_flags

from .output import complain, emit, json_option, options_of

__all__ = ["find_project", "plugins"]

_SWITCHES = ("enable", "disable")
_KINDS = (
    "provider tool role compression validator artifact executor engine rules store sandbox mount approver broker "
    "surface observer"
).split()


class _Group(click.Group):
    """Two commands lie in a module of their own, which costs the import of the whole configuration."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_SWITCHES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SWITCHES:
            return super().get_command(ctx, cmd_name)
        from . import plugin_switch

        found: click.Command = getattr(plugin_switch, cmd_name)
        return found


@click.group(cls=_Group, invoke_without_command=True)
@json_option
@click.pass_context
def plugins(ctx: click.Context) -> None:
    """List, inspect and check plugins."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_plugins)


def _catalogue(ctx: click.Context, *, fresh: bool = False) -> Catalogue:
    """What is installed and who takes part; a configuration that is wrong is said and then left out."""
    options = options_of(ctx)
    index = open_index(fresh=fresh)

    def load() -> Selection:
        from harness_core.shell.plugins.opening import selection_of

        from .config import load as load_config

        return selection_of(load_config(ctx))

    selection = _selection(remembered_selection(index, find_project(options.project), load, env=os.environ), ctx)
    catalogue = Catalogue(index, selection)
    for problem in catalogue.problems():
        if problem.code == "plugin.unknown":
            raise problem
        complain(f"harness: {problem}")
    return catalogue


def _selection(said: Selection, ctx: click.Context) -> Selection:
    options = options_of(ctx)
    return with_flags(said, options.disabled, nothing="--no-plugins" if options.no_plugins else None)


def find_project(start: str | None) -> str:
    """Give the folder that holds ``.harness``, found as the configuration finds it, but without its imports.

    Args:
        start: What ``--project`` names; None looks from the working folder upwards.
    """
    folder = os.path.realpath(start or os.curdir)
    if start is not None:
        return os.path.dirname(folder) if os.path.basename(folder) == ".harness" else folder
    above = folder
    while not os.path.isdir(os.path.join(above, ".harness")):
        if above == os.path.dirname(above):
            return folder
        above = os.path.dirname(above)
    return above


# ---------------------------------------------------------------------------------------------------- list


@plugins.command("list")
@click.option("--kind", type=click.Choice(_KINDS), help="Only those that provide this kind.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status.")
@click.option("--no-cache", is_flag=True, help="Read everything again, and forget how first imports went.")
@json_option
@click.pass_context
def list_plugins(
    ctx: click.Context, kind: str | None = None, status: str | None = None, no_cache: bool = False
) -> None:
    """List the installed plugins, broken ones with the reason; none is imported."""
    catalogue = _catalogue(ctx, fresh=no_cache)
    rows = [row for row in catalogue.rows if _is_wanted(row, kind, status)]
    for line in catalogue.complaints():
        complain(line)
    emit(ctx, {"schema": "harness.plugins/1", "items": [row_document(row) for row in rows]}, _listed)


def _is_wanted(row: Row, kind: str | None, status: str | None) -> bool:
    kinds = {provided.kind for provided in row.record.provides}
    return (kind is None or kind in kinds) and (status is None or row.status == status)


def _listed(document: Mapping[str, Any]) -> str:
    from harness_hookspecs.kit.render import table

    if not document["items"]:
        return "no plugins"
    head = ("id", "version", "status", "provides", "spec", "touches", "lock", "origin")
    lines = table(head, map(_cells, document["items"]))
    reasons = [f"{item['id']}: {item['reason']}" for item in document["items"] if item["reason"]]
    return "\n".join([*lines, *map(_line, reasons)])


def _cells(item: Mapping[str, Any]) -> tuple[str, ...]:
    provides = " ".join(f"{one['kind']}:{one['name']}" for one in item["provides"]) or "-"
    touches = _touches(item["capabilities"])
    return (
        item["id"],
        item["version"],
        item["status"],
        provides,
        item["spec"] or "-",
        touches,
        item["lock"],
        item["origin"],
    )


def _touches(capabilities: Any) -> str:
    if not isinstance(capabilities, Mapping):
        return "undeclared"
    return " ".join(name for name, value in capabilities.items() if value) or "-"


def _line(text: str) -> str:
    from harness_hookspecs.kit.render import escape_line

    return escape_line(text)


# ----------------------------------------------------------------------------------------------- info, why


@plugins.command()
@click.argument("plugin", metavar="ID")
@json_option
@click.pass_context
def info(ctx: click.Context, plugin: str) -> None:
    """Show all that is known of a plugin: manifest, files, origin, settings, and the lines that choose it."""
    catalogue = _catalogue(ctx)
    emit(ctx, _info(catalogue, catalogue.row(plugin)), _informed)


def _info(catalogue: Catalogue, row: Row) -> dict[str, Any]:
    record = row.record
    names = {(provided.kind, provided.name) for provided in record.provides}
    chosen = [
        {"kind": kind, "name": name, "where": where}
        for kind, name, where in catalogue.selection.every_choice()
        if (kind, name.rpartition(":")[2]) in names and (":" not in name or record.is_called(name.rpartition(":")[0]))
    ]
    return {
        "schema": "harness.plugin/1",
        **row_document(row),
        "code": row.code,
        "hint": row.hint,
        "summary": record.summary,
        "module": record.module,
        "files": record.code,
        "manifest": record.manifest,
        "digest": record.digest,
        "conflicts": dict(record.conflicts),
        "imported_before": catalogue.index.was_tried(record),
        "config": {f"{provided.kind}:{provided.name}": provided.config for provided in record.provides},
        "defaults": [f"{provided.kind}:{provided.name}" for provided in record.provides if provided.default],
        "chosen": chosen,
    }


def _informed(document: Mapping[str, Any]) -> str:
    import json

    from harness_hookspecs.kit.render import labels

    skipped = {"schema", "provides", "config", "chosen"}
    pairs = [
        (key, _word(value)) for key, value in document.items() if key not in skipped and value not in (None, {}, [])
    ]
    pairs += [
        ("provides", f"{one['kind']}:{one['name']} {' '.join(one['roles'])}".rstrip()) for one in document["provides"]
    ]
    pairs += [("settings", f"{name} {json.dumps(schema)}") for name, schema in document["config"].items() if schema]
    pairs += [("chosen", f"{one['kind']}:{one['name']} by {one['where']}") for one in document["chosen"]]
    return "\n".join(labels(pairs))


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return _touches(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@plugins.command()
@click.argument("question", metavar="ROLE|KIND:NAME")
@json_option
@click.pass_context
def why(ctx: click.Context, question: str) -> None:
    """Show who answers for a role (planner, worker.ai-generate@reviewer) or an offer (tool:git), and why."""
    from harness_core.shell.plugins.binding import candidates_for

    found = [candidate._asdict() for candidate in candidates_for(_catalogue(ctx), question)]
    emit(ctx, {"schema": "harness.plugin_why/1", "question": question, "items": found}, _explained)


def _explained(document: Mapping[str, Any]) -> str:
    return "\n".join(
        _line(f"{'*' if one['answers'] else '-'} {one['plugin']}:{one['name']}  {one['why']}")
        for one in document["items"]
    )


# --------------------------------------------------------------------------------------------------- check


@plugins.command()
@click.argument("target", metavar="[ID|PATH]", required=False)
@click.option(
    "--import", "run_code", is_flag=True, help="Import it in a child process; check hooks, offers and settings."
)
@json_option
@click.pass_context
def check(ctx: click.Context, target: str | None, run_code: bool) -> None:
    """Check plugins, all or one, installed or in a folder; exit 3 when there are findings."""
    from harness_core.shell.plugins.checking import check_rows

    rows, tried = (_check_folder if target and os.path.isdir(target) else _check_installed)(ctx, target, run_code)
    found = check_rows(rows, tried)
    items = [finding._asdict() for finding in found]
    emit(
        ctx, {"schema": "harness.plugin_check/1", "checked": len(rows), "imported": run_code, "items": items}, _checked
    )
    ctx.exit(3 if items else 0)


def _check_folder(_: click.Context, folder: Any, run_code: bool) -> tuple[list[Row], list[Any]]:
    from harness_core.shell.plugins.checking import folder_row, try_rows
    from harness_core.shell.ports import make_ports

    row, folders = folder_row(folder)
    path = [*folders, *open_index().path]
    return [row], try_rows([row], path, make_ports("threads").processes) if run_code else []


def _check_installed(ctx: click.Context, plugin: str | None, run_code: bool) -> tuple[list[Row], list[Any]]:
    from harness_core.shell.plugins.checking import try_rows
    from harness_core.shell.ports import make_ports

    catalogue = _catalogue(ctx)
    rows = [catalogue.row(plugin)] if plugin else list(catalogue.rows)
    if not run_code:
        return rows, []
    tried = try_rows(rows, catalogue.index.path, make_ports("threads").processes)
    catalogue.learn((record, [flaw for flaw in flaws if flaw.code != "HP047"]) for record, flaws in tried)
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
    return _line(f"{item['code']}  {item['plugin']}  {item['message']}{hint}")
