"""``harness config`` and ``harness trust``: the project's files in, what holds, what is wrong and why out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.explain import ORDER
from harness_core.shell.config.folders import has_project, no_project
from harness_core.shell.config.opening import open_config
from harness_core.shell.config.trust import gone, remember_trust
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.paths import encode_path
from harness_hookspecs.kit.render import escape_line

from .hosting import warn_of_config
from .output import emit, json_option, options_of
from .published import published_names, published_schema

if TYPE_CHECKING:
    from harness_core.shell.opening import Opened

__all__ = ["config", "load", "refuse_rules", "trust"]

_MAKE_ONE = "harness init makes one here"


def load(
    ctx: click.Context, *, project: str | None = None, flags: Mapping[str, Any] | None = None, quiet: bool = False
) -> EffectiveConfig:
    """Load the configuration that the shared options ask for; its warnings go to stderr, unless it is ``quiet``.

    Raises:
        ConfigError: The files are wrong.
        NotFound: The project that is named is no folder.
    """
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.ports import make_ports

    records = open_index().records
    start = project if project is not None else options_of(ctx).project
    found = open_config(start, make_ports("threads"), env=os.environ, plugins=records, flags=flags)
    if not quiet:
        warn_of_config(found)
    return found


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def config(ctx: click.Context) -> None:
    """Check, show and explain the configuration."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@config.command()
@json_option
@click.pass_context
def check(ctx: click.Context) -> None:
    """Check every file and what it names.

    Exit 3 names each problem with file:line:col; 4: there is no file at all.
    """
    found = load(ctx)
    here = found.project is not None and has_project(found.project)
    outside = "" if here else no_project(Path(str(found.project)))
    if outside and not found.files:
        raise NotFound(outside, code="project.not_found", hint=_MAKE_ONE)
    _refuse_disagreements(ctx)
    document = {
        "schema": "harness.config_check/1",
        "ok": True,
        "project": encode_path(str(found.project)) if here else None,
        "digest": found.digest,
        "files": list(found.files),
        "trusted": found.trusted,
        "untrusted": [leaf.document() for leaf in found.untrusted_leaves],
        "warnings": [warning.document() for warning in found.warnings],
    }
    emit(ctx, document, lambda one: _checked(one, outside, before=found.trusted_earlier is not None))


def _refuse_disagreements(ctx: click.Context) -> None:
    """Stop at names that no plugin answers for and at rules that do not compile, all of them at once.

    Of a project that is not trusted names do not count yet, but its rules never will if they do not compile.
    """
    from harness_core.settings.problems import Problem, config_error
    from harness_core.shell.opening import open_project
    from harness_core.shell.ports import make_ports

    options = options_of(ctx)
    opened = open_project(options.project, make_ports("threads"), flags=options)
    if not opened.config.trusted:
        refuse_rules(opened)
        return
    found = opened.disagreements()
    problems = [Problem(one.code, one.message, where=one.where, hint=one.hint) for one in found]
    if problems:
        raise config_error(problems)


def refuse_rules(opened: Opened) -> None:
    """Stop at rules that do not compile in a project whose files do not count yet.

    Raises:
        ConfigError: The facts name each problem.
    """
    check, records = opened.assembly(live=False).rule_check(), opened.catalogue.index.records
    open_config(opened.project, opened.ports, env=os.environ, plugins=records, check_rule=check)


def _checked(document: Mapping[str, Any], outside: str, *, before: bool) -> str:
    count = len(document["files"])
    valid = f"{count} config file{'s' if count != 1 else ''} valid"
    if outside:
        return f"{valid}; {escape_line(outside)}\n  {_MAKE_ONE}"
    lines = [f"{valid}, {'project trusted' if document['trusted'] else 'project NOT trusted'}"]
    if not document["trusted"]:
        lines += [f"{_leaf(leaf, before)}: {escape_line(leaf['reason'])}" for leaf in document["untrusted"]]
        lines.append("  they do not count before: harness trust")
    return "\n".join(lines)


def _leaf(leaf: Mapping[str, Any], before: bool) -> str:
    """A setting that needs trust, marked where another value of it, or none, was trusted before."""
    mark = ("+ " if leaf["new"] else "  ") if before else "  "
    return f"{mark}{escape_line(leaf['where'])}  {escape_line(leaf['path'])}"


@config.command()
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@json_option
@click.pass_context
def show(ctx: click.Context, origin: bool = False) -> None:
    """Show what holds, all layers laid over each other."""
    found = load(ctx)
    settings = found.six.document()
    places = {path: _origin(found, path) for path in _paths(settings)}
    document = {
        "schema": "harness.config/1",
        "project": encode_path(str(found.project)),
        "digest": found.digest,
        "trusted": found.trusted,
        "settings": settings,
        "origins": places if origin else None,
        "untrusted": [leaf.document() for leaf in found.untrusted_leaves],
        "warnings": [warning.document() for warning in found.warnings],
    }
    emit(ctx, document, lambda one: _shown(one, found))


def _origin(found: EffectiveConfig, path: str) -> dict[str, Any]:
    origin = found.origin(path)
    return {"layer": origin.layer, "where": origin.text()}


def _paths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every leaf by the text of its key."""
    from harness_core.settings.paths import format_path
    from harness_core.shell.config.explain import dig, leaves_below

    flat = {key: value for file in settings.values() for key, value in file.items()}
    found = [path for key in flat for path in leaves_below((key,), flat, {})]
    return {format_path(path): dig(flat, path) for path in found}


def _shown(document: Mapping[str, Any], found: EffectiveConfig) -> str:
    lines = []
    for path, value in _paths(document["settings"]).items():
        place = f"   ({escape_line(found.origin(path).text())})" if document["origins"] is not None else ""
        lines.append(f"{escape_line(path)} = {_value(value)}{place}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    return escape_line(json.dumps(value, ensure_ascii=False))


@config.command()
@click.argument("key")
@json_option
@click.pass_context
def explain(ctx: click.Context, key: str) -> None:
    """Explain a key, for example run.max_depth.

    What each layer says of it, which wins and why the others lose.
    """
    found = load(ctx)
    keys = [explanation.document() for explanation in found.explain(key)]
    emit(ctx, {"schema": "harness.config_explain/1", "key": key, "order": ORDER, "keys": keys}, _explained)


def _explained(document: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for found in document["keys"]:
        lines.append(f"{escape_line(found['path'])} = {_value(found['value'])}")
        lines += [_voice(voice) for voice in found["voices"]]
    return "\n".join([*lines, f"order: {document['order']}"])


def _voice(voice: Mapping[str, Any]) -> str:
    mark = "*" if voice["wins"] else "-"
    value = _value(voice["value"]) if voice["said"] else ""
    return f"  {mark} {escape_line(voice['where']):40} {value:24} {escape_line(voice['reason'])}".rstrip()


@config.command()
@click.argument("name", required=False)
@json_option
@click.pass_context
def schema(ctx: click.Context, name: str | None) -> None:
    """Print a JSON Schema, or without NAME the names there are.

    They are of the six files, of documents and of wire types.
    """
    if name is None:
        names = [{"name": one} for one in published_names()]
        emit(
            ctx,
            {"schema": "harness.schemas/1", "items": names},
            lambda one: "\n".join(item["name"] for item in one["items"]),
        )
        return
    found = published_schema(name)
    emit(
        ctx,
        {"schema": "harness.schema/1", "name": name, "json_schema": found},
        lambda one: json.dumps(one["json_schema"], indent=2),
    )


@click.command()
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--dry-run", is_flag=True, help="Only list what would be trusted.")
@json_option
@click.pass_context
def trust(ctx: click.Context, directory: str | None, dry_run: bool) -> None:
    """Trust what a project's files set.

    As they are now: a change of those settings asks again.
    """
    from harness_core.shell.ports import make_ports

    found = load(ctx, project=directory, quiet=True)  # what it would warn of is what this prints
    project, folders = found.project, found.folders
    if not dry_run and project is not None and folders is not None:
        remember_trust(make_ports("threads").files, folders.state, Path(project), found.untrusted_leaves)
    document = {
        "schema": "harness.trust/1",
        "project": encode_path(str(project)),
        "trusted": found.trusted or not dry_run,
        "changed": not (dry_run or found.trusted),
        "before": found.trusted_earlier is not None,
        "leaves": [leaf.document() for leaf in found.untrusted_leaves],
        "gone": list(gone(found.untrusted_leaves, found.trusted_earlier)),
    }
    emit(ctx, document, _trusted)


def _trusted(document: Mapping[str, Any]) -> str:
    project = escape_line(document["project"])
    if not document["leaves"]:
        return f"{project} sets nothing that needs trust"
    changed = "was trusted and has changed since" if document["before"] else "is not trusted"
    head = f"{project} {'is trusted' if document['trusted'] else changed}; its files set"
    head += " (+ is new)" if document["before"] and any(leaf["new"] for leaf in document["leaves"]) else ""
    leaves = [f"{_leaf(leaf, document['before'])} = {_value(leaf['value'])}" for leaf in document["leaves"]]
    return "\n".join([head, *leaves, *(f"- {escape_line(path)} is no longer set" for path in document["gone"])])
