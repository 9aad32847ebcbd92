"""``harness doctor``: the installation in, one line for each thing that was looked at out; broken plugins stop none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_core.shell.doctor import (
    Checked,
    check_command,
    check_disk,
    check_folders,
    check_python,
    check_sqlite,
    sqlite_in_use,
)
from harness_hookspecs.errors import HarnessError

from .output import emit, json_option, options_of

if TYPE_CHECKING:
    from harness_core.shell.config.effective import EffectiveConfig
    from harness_core.shell.plugins.catalogue import Catalogue

__all__ = ["doctor"]

_NEEDED = ("kernel", "stage runtime", "agent runtime")  # without the others something can still run
_MARKS = {"ok": "ok", "warning": "!!", "problem": "XX"}


@click.command()
@click.option("--fix", is_flag=True, help="Make missing folders and read all plugins anew.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool) -> None:
    """Find out what is wrong with the installation; new plugins are tried in a child process. Exit 3 for a problem."""
    from harness_core.shell.config.folders import folders_of

    folders = folders_of(os.environ)
    places = {"config": folders.config, "data": folders.data, "state": folders.state, "cache": folders.cache}
    checks = [
        check_python(),
        check_sqlite(*sqlite_in_use()),
        check_command(os.environ),
        *check_folders(places, fix=fix),
    ]
    checks.append(check_disk(folders.data))
    config, about_config = _config(ctx)
    catalogue, about_plugins = _plugins(ctx, config, fresh=fix)
    checks += [*about_config, *about_plugins, *_store(config, catalogue), *_models(config, catalogue)]
    layers = _layers(config, catalogue)
    checks += [_layer_check(layer) for layer in layers if layer["missing"]]
    problems = sum(check.state == "problem" for check in checks)
    document = {
        "schema": "harness.doctor/1",
        "ok": not problems,
        "checks": [{**check._asdict(), "facts": dict(check.facts)} for check in checks],
        "layers": layers,
    }
    emit(ctx, document, _told)
    ctx.exit(3 if problems else 0)


def _config(ctx: click.Context) -> tuple[EffectiveConfig | None, list[Checked]]:
    from .config import load

    try:
        config = load(ctx)
    except HarnessError as error:
        count = len(error.facts.get("problems") or ()) or 1
        said = f"{count} problem{'s' if count != 1 else ''} in the configuration: {error}"
        return None, [Checked("config", "problem", said, error.hint or "harness config check", {"code": error.code})]
    if not config.trusted:
        leaves = [leaf.document() for leaf in config.untrusted_leaves]
        said = f"{config.project} sets what needs trust: {leaves[0]['path']}"
        return config, [Checked("config", "warning", said, "read it, then: harness trust", {"untrusted": leaves})]
    return config, [Checked("config", "ok", f"the configuration of {config.project} is valid", None, {})]


def _plugins(ctx: click.Context, config: EffectiveConfig | None, *, fresh: bool) -> tuple[Catalogue, list[Checked]]:
    from harness_core.shell.plugins.catalogue import Catalogue
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.plugins.opening import selection_of
    from harness_core.shell.plugins.policy import Selection, with_flags
    from harness_core.shell.ports import make_ports

    options = options_of(ctx)
    said = Selection() if config is None else selection_of(config)
    nothing = "--no-plugins" if options.no_plugins else None
    selection = with_flags(said, options.disabled, nothing=nothing)
    catalogue = Catalogue(open_index(fresh=fresh), selection, processes=make_ports("threads").processes)
    catalogue.try_new(again=True)
    problems = [
        Checked("plugins", "problem", str(error), error.hint, {"code": error.code}) for error in catalogue.problems()
    ]
    return catalogue, [_count(catalogue), *problems, *_rows(catalogue)]


def _count(catalogue: Catalogue) -> Checked:
    count = len(catalogue.rows)
    states = {
        status: sum(row.status == status for row in catalogue.rows) for row in catalogue.rows for status in [row.status]
    }
    told = ", ".join(f"{number} {status}" for status, number in sorted(states.items())) or "none"
    return Checked("plugins", "ok" if count else "warning", f"{count} installed: {told}", None, {"statuses": states})


def _rows(catalogue: Catalogue) -> list[Checked]:
    found = []
    for row in catalogue.rows:
        if row.status in {"broken", "doubled", "skipped"}:
            record = row.record
            said = f"{record.id} ({record.distribution} {record.version}) is {row.status}: {row.reason}"
            name = record.distribution if row.code == "HP020" else record.id
            fix = f"{row.hint}; or: " if row.hint else ""
            facts = {"plugin": record.id, "distribution": record.distribution, "code": row.code, "status": row.status}
            found.append(Checked("plugin", "warning", said, f"{fix}harness plugins disable {name}", facts))
    return found


def _store(config: EffectiveConfig | None, catalogue: Catalogue) -> list[Checked]:
    """Whether the log opens; it is looked at, not opened, since who asks what is wrong wants nothing changed."""
    if config is None or config.project is None or config.folders is None:
        return []
    from harness_core.shell.opening import Opened
    from harness_core.shell.ports import make_ports
    from harness_core.shell.redaction import Redactor

    folders, ports = config.folders, make_ports("threads")
    opened = Opened(ports, config, catalogue, config.project, folders.data, folders.state, Redactor(), None)
    try:
        said = opened.look_at_store()
    except HarnessError as error:
        return [Checked("store", "problem", str(error), error.hint, {"code": error.code})]
    return [Checked("store", "ok", said, None, {})] if said else []


def _models(config: EffectiveConfig | None, catalogue: Catalogue) -> list[Checked]:
    if config is None:
        return []
    from harness_core.shell.model_entries import entry_rows

    found = []
    for row in entry_rows(config, catalogue):
        missing = row.path if row.path and not _weights_are_there(row.path, config) else None
        said = row.reason or (f"{missing} is not there" if missing else f"by {row.plugin}, {row.context_tokens} tokens")
        state = "warning" if row.reason or missing else "ok"
        facts = {"model": row.name, "provider": row.provider, "plugin": row.plugin, "path": row.path}
        found.append(Checked("model", state, f"{row.name}: {said}", None, facts))
    return found or [Checked("model", "warning", "models.yaml names no model", "harness init", {})]


def _weights_are_there(path: str, config: EffectiveConfig) -> bool:
    """Whether a model's file is there: in an installed package (``pkg:NAME``), or below the project's folder."""
    if path.startswith("pkg:"):
        from importlib.util import find_spec

        return find_spec(path.removeprefix("pkg:").partition("/")[0]) is not None
    project = str(config.project) if config.project is not None else "."
    return os.path.exists(os.path.join(project, os.path.expanduser(path)))


def _layers(config: EffectiveConfig | None, catalogue: Catalogue) -> list[dict[str, Any]]:
    if config is None:
        return []
    from harness_core.shell.layers import layers_of

    return [
        {"layer": layer.layer, "plugins": list(layer.plugins), "missing": list(layer.missing)}
        for layer in layers_of(config, catalogue)
    ]


def _layer_check(layer: Mapping[str, Any]) -> Checked:
    said = f"{layer['layer']}: {'; '.join(layer['missing'])}"
    state = "problem" if layer["layer"] in _NEEDED else "warning"
    return Checked("layer", state, said, "harness plugins list", {"layer": layer["layer"]})


def _told(document: Mapping[str, Any]) -> str:
    from harness_hookspecs.kit.render import escape_line

    lines = []
    for check in document["checks"]:
        lines.append(escape_line(f"{_MARKS[check['state']]}  {check['name']}: {check['message']}"))
        if check["fix"]:
            lines.append(escape_line(f"      {check['fix']}"))
    lines += ["", *(escape_line(_layer_line(layer)) for layer in document["layers"])]
    return "\n".join(lines).rstrip()


def _layer_line(layer: Mapping[str, Any]) -> str:
    return f"{layer['layer']:18} {', '.join(layer['plugins']) or 'nobody'}"
