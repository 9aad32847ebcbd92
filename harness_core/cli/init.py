"""``harness init``: a folder in, a project that runs out, with the next command to type."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import click

from harness_core.shell.config.folders import PROJECT_FOLDER, find_project, has_project
from harness_core.shell.config.init import (
    FoundModel,
    ProjectPlan,
    files_to_write,
    find_models,
    plan_project,
    write_project,
)
from harness_core.shell.config.load import load_config
from harness_core.shell.config.opening import installed_schemas
from harness_core.shell.config.sections import PluginSchemas
from harness_core.shell.config.trust import remember_trust
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.host import Ports
from harness_hookspecs.kit.paths import encode_path
from harness_hookspecs.kit.render import escape_line

from .output import emit, json_option, options_of

__all__ = ["init"]

_Trust = Literal["trusted", "strange", "wrong"]
_NEXT: Final[Mapping[_Trust, str]] = {
    "trusted": 'harness run "what is in this folder?"',
    "strange": "harness trust --dry-run",
    "wrong": "harness config check",  # which says what is wrong with files that stayed
}


@click.command()
@click.option("--force", is_flag=True, help="Replace files that are different; each is kept as NAME.orig.")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@json_option
@click.pass_context
def init(ctx: click.Context, force: bool, dry_run: bool) -> None:
    """Write ./.harness with six commented files.

    What is missing is written, what is there and different is left alone. What it wrote is trusted; where files of
    yours stay, the project is as trusted as it was.
    """
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.ports import make_ports

    project = find_project(Path(options_of(ctx).project or "."), exact=True)
    around = None if has_project(project) else find_project(project)
    records, ports = open_index().records, make_ports("threads")
    models = find_models((offer.kind, offer.name) for record in records for offer in record.provides)
    wanted = files_to_write(models)
    plan = plan_project(project, wanted, ports.files, force=force)
    trust: _Trust | None = None
    if not dry_run:
        write_project(project, wanted, ports.files, plan)
        trust = _trust(project, ports, installed_schemas(records), plan.keep)
    document = {
        "schema": "harness.init/1",
        "project": encode_path(project),
        "dry_run": dry_run,
        **_done(plan),
        "trusted": None if trust is None else trust == "trusted",
        "inside": encode_path(around) if around is not None and around != project else None,
        "models": [_model(model) for model in models],
        "default_model": models[0].name,
        "next": _next(trust, plan, force=force),
    }
    emit(ctx, document, _written)


def _trust(project: Path, ports: Ports, schemas: PluginSchemas, kept: Sequence[str]) -> _Trust:
    """Trust what was written here; what stayed counts only if it was trusted before: it may be a stranger's."""
    try:
        found = load_config(project, ports.files, env=os.environ, schemas=schemas)
    except ConfigError:
        if not kept:
            raise
        return "wrong"
    strangers = {_shown(path) for path in kept}
    if found.folders is None or any(leaf.new and leaf.origin.source in strangers for leaf in found.untrusted_leaves):
        return "strange"
    remember_trust(ports.files, found.folders.state, project, found.untrusted_leaves)
    return "trusted"


def _next(trust: _Trust | None, plan: ProjectPlan, *, force: bool) -> str:
    if trust is not None:
        return _NEXT[trust]
    return f"harness init{' --force' if force else ''}" if plan.write else "harness config check"


def _done(plan: ProjectPlan) -> dict[str, Any]:
    replaced = [{"file": _shown(path), "original": _shown(aside)} for path, aside in plan.originals.items()]
    return {
        "files": [_shown(path) for path in plan.write],
        "kept": [_shown(path) for path in plan.keep],
        "replaced": replaced,
    }


def _shown(path: str) -> str:
    return f"{PROJECT_FOLDER}/{path}"


def _model(model: FoundModel) -> dict[str, Any]:
    return {"name": model.name, "kind": model.kind, "ready": model.ready, "missing": model.missing}


def _written(document: Mapping[str, Any]) -> str:
    originals = {one["file"]: one["original"] for one in document["replaced"]}
    lines = [f"Project  {escape_line(document['project'])}/{PROJECT_FOLDER} {_state(document)}"]
    lines += [f"  {path}{_aside(originals.get(path))}" for path in document["files"]]
    lines += [f"  {path} is different and stays as it is" for path in document["kept"]]
    if document["kept"]:
        lines.append("  harness init --force replaces what is different and keeps it as NAME.orig")
    if document["inside"]:
        lines.append(f"Inside   the project {escape_line(document['inside'])}: this folder is now one of its own")
    return "\n".join([*lines, *_models(document), f"Next     {document['next']}"])


def _state(document: Mapping[str, Any]) -> str:
    if document["dry_run"]:
        return "would be written" if document["files"] else "would stay as it is"
    if not document["trusted"]:
        return "written, but not trusted: it has files of yours" if document["files"] else "is not trusted"
    return "written and trusted" if document["files"] else "was there already"


def _aside(original: str | None) -> str:
    return "" if original is None else f"   (what was there: {original})"


def _models(document: Mapping[str, Any]) -> Iterator[str]:
    if _shown("models.yaml") in document["kept"]:  # what was found is not what that file names
        yield "Models   those of the models.yaml that stays: harness models lists them"
        return
    for model in document["models"]:
        ready = "ready" if model["ready"] else f"not installed: {model['missing']}"
        yield f"Model    {model['name']} ({model['kind']}): {ready}"
    if not document["models"][0]["ready"]:
        yield "Without a model nothing runs: install what is missing."
