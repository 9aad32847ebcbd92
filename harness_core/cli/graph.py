"""``harness graph``: stages or a plan, as configured or as a session went, in; Mermaid, DOT or JSON text out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness_core.kernel.projections.drawing import FORMATS

from .hosting import open_host, usage_error, warn_of_config
from .named import session_argument
from .output import emit, json_option, write_document
from .plan_file import read_plan

__all__ = ["graph"]


@click.command()
@session_argument(without="the configured stages")
@click.option("--format", "form", type=click.Choice([*FORMATS, "json"]), default="mermaid", show_default=True)
@click.option("--plan", metavar="FILE|-", type=click.Path(path_type=Path), help="Draw the plan in this file.")
@click.option("--version", "version", metavar="VERSION", help="Draw a plan that was registered.")
@click.option("--stage", metavar="NAME", help="Of a session: draw what ran of the plan of this stage.")
@json_option
@click.pass_context
def graph(
    ctx: click.Context, session: str | None, form: str, plan: Path | None, version: str | None, stage: str | None
) -> None:
    """Draw the stages, a plan, or what a session did.

    Without a session the stages as configured, with one how often each way was taken.
    """
    if sum(one is not None for one in (session, plan, version)) > 1:
        raise usage_error("a session, --plan and --version are three things; name one of them")
    if stage is not None and session is None:
        raise usage_error("--stage goes with a session, whose plan ran there")
    with open_host(ctx) as host:
        if session is not None and stage is not None:
            document = host.plan_graph(run=(session, stage))
        elif plan is not None:
            document = host.plan_graph(source=read_plan(plan))
        elif version is not None:
            document = host.plan_graph(version=version)
        else:
            if session is None:
                warn_of_config(host.config)
            document = host.graph(session)
    if form == "json":
        write_document(document)
        return
    emit(ctx, document, lambda one: _drawn(one, form))


def _drawn(document: Mapping[str, Any], form: str) -> str:
    return FORMATS[form](document)
