"""``harness plugins enable`` and ``disable``: a plugin's name in, one list in one ``harness.yaml`` changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness_core.shell.config.folders import PROJECT_FOLDER, folders_of, make_folder, shown
from harness_core.shell.plugins.catalogue import Catalogue
from harness_core.shell.plugins.index import open_index
from harness_core.shell.plugins.names import normalise
from harness_core.shell.plugins.switch import disabled_in, with_disabled
from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.host import Files

from .config import load
from .output import emit, json_option, options_of
from .plugins import find_project

__all__ = ["disable", "enable"]

_FILE = "harness.yaml"


@click.command()
@click.argument("plugin", metavar="ID")
@json_option
@click.pass_context
def disable(ctx: click.Context, plugin: str) -> None:
    """Leave a plugin out from now on.

    Writes plugins.disable of the project's harness.yaml, else of your own.
    """
    row = Catalogue(open_index()).row(plugin)
    record = row.record
    name = record.distribution if row.code == "HP020" else record.id
    folder, names = _place(ctx)
    if not any(record.is_called(one) for one in names):
        _write(folder, [*names, name])
    _tell(ctx, name, folder, enabled=False, before=names)


@click.command()
@click.argument("plugin", metavar="ID")
@json_option
@click.pass_context
def enable(ctx: click.Context, plugin: str) -> None:
    """Let a plugin take part again: takes it out of plugins.disable."""
    folder, names = _place(ctx)
    records = [record for record in open_index().records if record.is_called(plugin)]
    kept = [one for one in names if normalise(one) != normalise(plugin) and not any(r.is_called(one) for r in records)]
    if not records and len(kept) == len(names):
        hint = "harness plugins list shows what is installed"
        raise NotFound(f'no installed plugin is called "{plugin}"', code="plugin.not_found", hint=hint)
    if len(kept) < len(names):
        _write(folder, kept)
    _tell(ctx, records[0].id if records else plugin, folder, enabled=True, before=names)


def _place(ctx: click.Context) -> tuple[Path, list[str]]:
    """The folder whose harness.yaml is to be changed, and the list that holds now.

    Lists of a nearer file replace those of a farther one, so the list is changed where it stands.
    """
    project = Path(find_project(options_of(ctx).project)) / PROJECT_FOLDER
    user = folders_of(os.environ).config
    try:
        config = load(ctx)
    except ConfigError:  # also a configuration with mistakes can be told to leave a plugin out
        folder = project if project.is_dir() else user
        return folder, disabled_in(_text(_files(folder)))
    layer = config.origin("plugins.disable").layer
    if layer in {"environment", "flag"}:
        where = config.origin("plugins.disable").text()
        raise ConfigError(f"plugins.disable is set by {where}", code="config.edit", where=where, hint="change it there")
    names = list(config.harness.plugins.disable)
    return user if layer == "user" or not project.is_dir() else project, names


def _files(folder: Path) -> Files:
    from harness_core.shell.ports import make_ports

    make_folder(folder)
    found: Files = make_ports("threads").files(folder)
    return found


def _text(files: Files) -> str:
    try:
        return files.read_bytes(_FILE).decode("utf-8")
    except NotFound:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{_FILE} is not UTF-8", code="config.edit") from error


def _write(folder: Path, names: list[str]) -> None:
    files = _files(folder)
    files.write_bytes(_FILE, with_disabled(_text(files), names).encode())


def _tell(ctx: click.Context, plugin: str, folder: Path, *, enabled: bool, before: list[str]) -> None:
    now = disabled_in(_text(_files(folder)))
    document = {
        "schema": "harness.plugin_switch/1",
        "plugin": plugin,
        "enabled": enabled,
        "changed": now != before,
        "file": shown(folder / _FILE, folders_of(os.environ).home),
        "disable": now,
    }
    emit(ctx, document, _told)


def _told(document: Mapping[str, Any]) -> str:
    state = "takes part" if document["enabled"] else "is left out"
    if not document["changed"]:
        return f"{document['plugin']} {state} already"
    return f"{document['plugin']} {state} from now on ({document['file']})"
