"""``harness init``: a folder in, a project that runs out, with the next command to type."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness_core.shell.config.init import FoundModel, files_to_write, find_models, write_project
from harness_core.shell.config.load import load_config
from harness_core.shell.config.opening import installed_schemas
from harness_core.shell.config.trust import remember_trust
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.paths import encode_path
from harness_hookspecs.kit.render import escape_line

from .output import emit, json_option, options_of

__all__ = ["init"]


@click.command()
@click.option("--force", is_flag=True, help="Replace files that are different.")
@json_option
@click.pass_context
def init(ctx: click.Context, force: bool) -> None:
    """Write ./.harness with six commented files.

    What they set is trusted.
    """
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.ports import make_ports

    project = Path(options_of(ctx).project or ".").resolve()
    if not project.is_dir():
        raise NotFound(f"there is no folder {encode_path(project)}", code="project.not_found")
    records, files_at = open_index().records, make_ports("threads").files
    models = find_models((offer.kind, offer.name) for record in records for offer in record.provides)
    written = write_project(project, files_to_write(models), files_at, force=force)
    found = load_config(project, files_at, env=os.environ, schemas=installed_schemas(records))
    if found.folders is not None:
        remember_trust(files_at, found.folders.state, project, found.untrusted_leaves)
    document = {
        "schema": "harness.init/1",
        "project": encode_path(project),
        "files": written,
        "models": [_model(model) for model in models],
        "default_model": models[0].name,
        "next": f'harness run "what is in this folder?" --model {models[0].name}',
    }
    emit(ctx, document, _written)


def _model(model: FoundModel) -> dict[str, Any]:
    return {"name": model.name, "kind": model.kind, "ready": model.ready, "missing": model.missing}


def _written(document: Mapping[str, Any]) -> str:
    files = document["files"]
    state = "written and trusted" if files else "was there already"
    lines = [f"Project  {escape_line(document['project'])}/.harness {state}"]
    lines += [f"  {path}" for path in files]
    for model in document["models"]:
        ready = "ready" if model["ready"] else f"not installed: {model['missing']}"
        lines.append(f"Model    {model['name']} ({model['kind']}): {ready}")
    if not document["models"][0]["ready"]:
        lines.append("Without a model nothing runs: install what is missing.")
    lines.append(f"Next     {document['next']}")
    return "\n".join(lines)
