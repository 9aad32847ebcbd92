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
    from harness_core.shell.layers import Layer
    from harness_core.shell.model_entries import EntryRow
    from harness_core.shell.opening import Opened
    from harness_core.shell.plugins.catalogue import Catalogue

__all__ = ["doctor"]

_NEEDED = ("kernel", "stage runtime", "agent runtime")  # without the others something can still run
_MAX_NAMED = 8
_MARKS = {"ok": "ok", "warning": "!!", "problem": "XX"}


@click.command()
@click.option("--fix", is_flag=True, help="Make missing folders and read all plugins anew.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool) -> None:
    """Find out what is wrong with the installation.

    New plugins are tried in a child process. Exit 3 for a problem.
    """
    from harness_core.shell.config.folders import folders_of
    from harness_core.shell.layers import layers_of

    folders = folders_of(os.environ)
    places = {"config": folders.config, "data": folders.data, "state": folders.state, "cache": folders.cache}
    checks = [
        check_python(),
        check_sqlite(*sqlite_in_use()),
        check_command(os.environ),
        *check_folders(places, fix=fix),
    ]
    checks.append(check_disk(folders.data))
    config, unreadable = _config(ctx)
    catalogue, about_plugins = _plugins(ctx, config, fresh=fix)
    opened = _opened(config, catalogue)
    layers = [] if config is None else layers_of(config, catalogue)
    checks += [*unreadable, *_written(opened), *about_plugins, *_store(opened), *_models(opened)]
    checks += [_layer_check(layer) for layer in layers if layer.missing]
    problems = sum(check.state == "problem" for check in checks)
    document = {
        "schema": "harness.doctor/1",
        "ok": not problems,
        "checks": [{**check._asdict(), "facts": dict(check.facts)} for check in checks],
        "layers": [
            {"layer": one.layer, "plugins": list(one.plugins), "missing": list(one.missing)} for one in layers
        ],
    }
    emit(ctx, document, _told)
    ctx.exit(3 if problems else 0)


def _config(ctx: click.Context) -> tuple[EffectiveConfig | None, list[Checked]]:
    """The configuration, or what is wrong with its files."""
    from .config import load

    try:
        return load(ctx), []
    except HarnessError as error:
        count = len(error.facts.get("problems") or ()) or 1
        said = f"{count} problem{'s' if count != 1 else ''} in the configuration: {error}"
        return None, [Checked("config", "problem", said, error.hint or "harness config check", {"code": error.code})]


def _opened(config: EffectiveConfig | None, catalogue: Catalogue) -> Opened | None:
    """The project as a host stands on it; who asks what is wrong wants nothing changed, so nothing is written."""
    if config is None or config.project is None or config.folders is None:
        return None
    from harness_core.shell.opening import Opened
    from harness_core.shell.ports import make_ports
    from harness_core.shell.redaction import Redactor

    folders, ports = config.folders, make_ports("threads")
    return Opened(ports, config, catalogue, config.project, folders.data, folders.state, Redactor(), None)


def _written(opened: Opened | None) -> list[Checked]:
    """What the files say, once they can be read: whether they count, and as ``config check`` what would stop a run."""
    if opened is None:
        return []
    from harness_core.shell.config.folders import has_project, no_project
    from harness_core.shell.perform_attempt import attempt

    if not opened.config.trusted:
        from .config import refuse_rules

        refused = attempt(refuse_rules, opened, what="the check of the rules").error
        return [*([] if refused is None else [_wrong(refused)]), _untrusted(opened)]
    found = attempt(opened.disagreements, what="the check of the configuration")
    wrong = [found.error] if found.error is not None else found.value or []
    if wrong:
        return [_wrong(error) for error in wrong]
    if not has_project(opened.project):
        said = f"{no_project(opened.project)}{'; your own files are valid' if opened.config.files else ''}"
        return [Checked("config", "warning", said, "harness init makes one here", {})]
    return [Checked("config", "ok", f"the configuration of {opened.project} is valid", None, {})]


def _wrong(error: HarnessError) -> Checked:
    return Checked("config", "problem", str(error), error.hint, {"code": error.code})


def _untrusted(opened: Opened) -> Checked:
    from harness_core.shell.config.trust import TRUST_HINT, gone

    config = opened.config
    leaves = [leaf.document() for leaf in config.untrusted_leaves]
    lost = gone(config.untrusted_leaves, config.trusted_earlier)
    new = [leaf["path"] for leaf in leaves if leaf["new"]] + [f"{path} no longer" for path in lost]
    more = f" and {len(new) - _MAX_NAMED} more" if len(new) > _MAX_NAMED else ""
    state = "sets what needs trust" if config.trusted_earlier is None else "was trusted and has changed since; it sets"
    said = f"{opened.project} {state}: {', '.join(new[:_MAX_NAMED])}{more}"
    return Checked("config", "warning", said, TRUST_HINT, {"untrusted": leaves})


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


def _store(opened: Opened | None) -> list[Checked]:
    """Whether the log opens; it is looked at, not opened."""
    if opened is None:
        return []
    try:
        said = opened.look_at_store()
    except HarnessError as error:
        return [Checked("store", "problem", str(error), error.hint, {"code": error.code})]
    return [Checked("store", "ok", said, None, {})] if said else []


def _models(opened: Opened | None) -> list[Checked]:
    """Whether each model could answer; what a stage needs and does not have is a problem, anything else a warning."""
    if opened is None:
        return []
    from harness_core.shell.model_entries import entry_rows, no_model
    from harness_core.shell.views import configured_stages

    rows = entry_rows(opened.config, opened.catalogue)
    if not rows:
        said, fix = no_model(opened.config)
        return [Checked("model", "warning", said, fix, {})]
    used = {stage.model for stage in configured_stages(opened.config)}
    return [_model(row, opened, "problem" if row.name in used else "warning") for row in rows]


def _model(row: EntryRow, opened: Opened, lacking: str) -> Checked:
    from harness_core.shell.model_entries import entry_need

    facts = {"model": row.name, "provider": row.provider, "plugin": row.plugin, "path": row.path}
    if row.reason:
        return Checked("model", lacking, f"{row.name}: {row.reason}", None, facts)
    if row.path and not _weights_are_there(row.path, opened.config):
        return Checked("model", lacking, f"{row.name}: {row.path} is not there", None, facts)
    try:
        looked = opened.parts.look(entry_need(opened.config, row.name))
    except HarnessError as error:
        return Checked("model", lacking, f"{row.name}: {error}", error.hint, {**facts, "code": error.code})
    said = f"{row.name}: by {row.plugin}, {row.context_tokens} tokens{f'; {looked}' if looked else ''}"
    return Checked("model", "ok", said, None, facts)


def _weights_are_there(path: str, config: EffectiveConfig) -> bool:
    """Whether a model's file is there: in an installed package (``pkg:NAME``), or below the project's folder."""
    if path.startswith("pkg:"):
        from importlib.util import find_spec

        return find_spec(path.removeprefix("pkg:").partition("/")[0]) is not None
    project = str(config.project) if config.project is not None else "."
    return os.path.exists(os.path.join(project, os.path.expanduser(path)))


def _layer_check(layer: Layer) -> Checked:
    state = "problem" if layer.layer in _NEEDED else "warning"
    return Checked("layer", state, f"{layer.layer}: {'; '.join(layer.missing)}", layer.fix, {"layer": layer.layer})


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
