"""``harness plugins``: what is installed, who takes part, who answers and what is wrong; a list imports no plugin."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_core.shell.config.xdg import working_folder_gone
from harness_core.shell.plugins.index import Index, open_index
from harness_core.shell.plugins.listing import STATUSES, Listing, configuration_state, kept_listing

from .output import complain, emit, json_option, labelled, options_of, tabled

if TYPE_CHECKING:
    from harness_core.shell.plugins.catalogue import Catalogue
    from harness_core.shell.plugins.policy import Row

__all__ = ["find_project", "open_for", "plugins"]

_ELSEWHERE = {"check": ".plugin_check", "enable": ".plugin_switch", "disable": ".plugin_switch"}
_KINDS = (
    "provider tool role compression validator artifact executor engine rules store sandbox mount approver broker "
    "surface observer workflow"
).split()


class _Group(click.Group):
    """Some commands lie in modules of their own, so that a list does not pay for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        found: click.Command = getattr(import_module(_ELSEWHERE[cmd_name], __package__), cmd_name)
        return found


@click.group(cls=_Group, invoke_without_command=True)
@json_option
@click.pass_context
def plugins(ctx: click.Context) -> None:
    """List, inspect and check plugins."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_plugins)


def open_for(ctx: click.Context, index: Index | None = None) -> Catalogue:
    """Give what is installed and who takes part, as the options and the configuration say.

    Raises:
        ConfigError: The configuration is wrong, or somebody names a plugin that is not installed.
    """
    from harness_core.shell.plugins.catalogue import Catalogue
    from harness_core.shell.plugins.opening import remembered_selection, selection_of
    from harness_core.shell.plugins.policy import Selection, with_flags

    options = options_of(ctx)
    index = index or open_index()

    def load() -> Selection:
        from .config import load as load_config

        return selection_of(load_config(ctx))

    said = remembered_selection(index, find_project(options.project), load, env=os.environ)
    nothing = "--no-plugins" if options.no_plugins else None
    catalogue = Catalogue(index, with_flags(said, options.disabled, nothing=nothing))
    for problem in catalogue.problems():
        if problem.code == "plugin.unknown":
            raise problem
    return catalogue


def find_project(start: str | None) -> str:
    """Give the folder that holds ``.harness``, found as the configuration finds it, but without its imports.

    Args:
        start: What ``--project`` names; None looks from the working folder upwards.
    """
    try:
        folder = os.path.realpath(start or os.curdir)
    except FileNotFoundError as error:
        raise working_folder_gone() from error
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
@click.option("--kind", metavar="KIND", type=click.Choice(_KINDS), help=f"Only those of a kind: {', '.join(_KINDS)}.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those with this status.")
@click.option("--no-cache", is_flag=True, help="Read everything again, and forget how first imports went.")
@json_option
@click.pass_context
def list_plugins(
    ctx: click.Context, kind: str | None = None, status: str | None = None, no_cache: bool = False
) -> None:
    """List the installed plugins, broken ones with the reason.

    None is imported.
    """
    options = options_of(ctx)
    index = open_index(fresh=no_cache)
    state = configuration_state(find_project(options.project), os.environ)
    key = [state, [list(said) for said in options.disabled], options.no_plugins]
    found = kept_listing(index, key, lambda: _listing(ctx, index))
    for line in found["complaints"]:
        complain(line)
    items = [item for item in found["items"] if _is_wanted(item, kind, status)]
    emit(ctx, {"schema": "harness.plugins/1", "items": items}, _listed)


def _listing(ctx: click.Context, index: Index) -> Listing:
    from harness_core.shell.plugins.policy import row_document

    catalogue = open_for(ctx, index)
    return {"items": [row_document(row) for row in catalogue.rows], "complaints": catalogue.complaints()}


def _is_wanted(item: Mapping[str, Any], kind: str | None, status: str | None) -> bool:
    kinds = {offer["kind"] for offer in item["provides"]}
    return (kind is None or kind in kinds) and (status is None or item["status"] == status)


def _listed(document: Mapping[str, Any]) -> str:
    if not document["items"]:
        return "no plugins"
    head = ("id", "version", "status", "origin", "provides")
    lines = tabled(head, map(_cells, document["items"]))
    reasons = [f"{item['id']}: {item['reason']}" for item in document["items"] if item["reason"]]
    return "\n".join([lines, *map(_line, reasons)])


def _cells(item: Mapping[str, Any]) -> tuple[str, ...]:
    provides = " ".join(f"{one['kind']}:{one['name']}" for one in item["provides"]) or "-"
    return item["id"], item["version"], item["status"], item["origin"], provides


def _line(text: str) -> str:
    from harness_hookspecs.kit.render import escape_line

    return escape_line(text)


# ----------------------------------------------------------------------------------------------- info, why


@plugins.command()
@click.argument("plugin", metavar="ID")
@json_option
@click.pass_context
def info(ctx: click.Context, plugin: str) -> None:
    """Show all that is known of a plugin.

    Its manifest, files, origin and settings, and the lines that choose it.
    """
    catalogue = open_for(ctx)
    emit(ctx, _info(catalogue, catalogue.row(plugin)), _informed)


def _info(catalogue: Catalogue, row: Row) -> dict[str, Any]:
    from harness_core.shell.plugins.policy import row_document

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
    skipped = {"schema", "provides", "config", "chosen"}
    pairs = [
        (key.replace("_", " "), line)
        for key, value in document.items()
        if key not in skipped and value not in (None, {}, [])
        for line in _lines(value)
    ]
    pairs += [
        ("provides", f"{one['kind']}:{one['name']} {' '.join(one['roles'])}".rstrip()) for one in document["provides"]
    ]
    pairs += [("settings", line) for name, schema in document["config"].items() for line in _settings(name, schema)]
    pairs += [("chosen", f"{one['kind']}:{one['name']} by {one['where']}") for one in document["chosen"]]
    return "\n".join(labelled(pairs))


def _settings(offer: str, schema: Mapping[str, Any] | None) -> Iterator[str]:
    """A line for each key that may be set: what it is when nobody sets it, and what it means."""
    import json

    for key, said in (schema or {}).get("properties", {}).items():
        usual = f" = {json.dumps(said['default'])}" if "default" in said else ""
        meaning = f"  {said['description']}" if "description" in said else ""
        yield f"{offer} {key}{usual}{meaning}"


def _lines(value: Any) -> list[str]:
    """A line for each key of a table that says something: what a plugin touches, why it does not go with another."""
    if isinstance(value, Mapping):
        said = [key if one is True else f"{key}: {_word(one)}" for key, one in value.items() if one]
        return said or ["none"]
    return [_word(value)]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@plugins.command()
@click.argument("question", metavar="ROLE|KIND:NAME")
@json_option
@click.pass_context
def why(ctx: click.Context, question: str) -> None:
    """Show who answers for a role or an offer, and why.

    A role is planner or worker.ai-generate@reviewer for example, an offer tool:git.
    """
    from harness_core.shell.plugins.binding import candidates_for

    found = [candidate._asdict() for candidate in candidates_for(open_for(ctx), question)]
    emit(ctx, {"schema": "harness.plugin_why/1", "question": question, "items": found}, _explained)


def _explained(document: Mapping[str, Any]) -> str:
    return "\n".join(
        _line(f"{'*' if one['answers'] else '-'} {one['plugin']}:{one['name']}  {one['why']}")
        for one in document["items"]
    )
