"""``harness demo``: a folder in, a project with a scripted model in it and one finished session out."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from .output import complain, json_option, options_of
from .run import follow

__all__ = ["TEXT", "demo"]

TEXT = "What is new in version 1.1?"
"""What the demonstration asks for."""


@click.command()
@click.argument("directory", metavar="[DIR]", required=False)
@json_option
@click.pass_context
def demo(ctx: click.Context, directory: str | None) -> int:
    """The main job with a scripted model: no key, no network.

    No weights are needed either.

    Makes a small project in DIR (default: demo in the cache folder) and runs one session there: context from git, two
    stages, a reply that a check refuses, an approval. What was made stays, to look at and to change.
    """
    from harness_core.shell.config.folders import command_word
    from harness_hookspecs.kit.paths import encode_path

    options = options_of(ctx)
    project = _make(directory or options.project)
    complain(f"project {encode_path(project)}")
    ctx.obj = options._replace(project=str(project))
    code = follow(ctx, {}, lambda host, _: host.start(TEXT, on_ask="deny"))
    complain(f"again   cd {command_word(project)} && harness run {shlex.quote(TEXT)}")
    return code


def _make(directory: str | None) -> Path:
    from harness_core.shell.config.folders import folders_of
    from harness_core.shell.config.load import load_config
    from harness_core.shell.config.opening import installed_schemas
    from harness_core.shell.config.trust import remember_trust
    from harness_core.shell.example.make import made_alone, make_example
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.ports import make_ports

    folders, ports = folders_of(os.environ), make_ports("threads")
    project = (Path(directory) if directory else folders.cache / "demo").resolve()
    with made_alone(project, ports, folders.state):
        if make_example(project, ports, os.environ.get("PATH", os.defpath)):
            schemas = installed_schemas(open_index().records)
            found = load_config(project, ports.files, env=os.environ, schemas=schemas)
            remember_trust(ports.files, folders.state, project, found.untrusted_leaves)
    return project
