"""``harness graph``: the stages as configured, or what a session did, as Mermaid, DOT or JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from harness_core.kernel.projections.drawing import FORMATS

from .hosting import open_host
from .named import session_argument
from .output import emit, json_option, write_document

__all__ = ["graph"]


@click.command()
@session_argument(without="the configured stages")
@click.option("--format", "form", type=click.Choice([*FORMATS, "json"]), default="mermaid", show_default=True)
@json_option
@click.pass_context
def graph(ctx: click.Context, session: str | None, form: str) -> None:
    """Draw the stages or what a session did.

    Without a session the stages as configured, with one how often each way was taken.
    """
    with open_host(ctx) as host:
        document = host.graph(session)
    if form == "json":
        write_document(document)
        return
    emit(ctx, document, lambda one: _drawn(one, form))


def _drawn(document: Mapping[str, Any], form: str) -> str:
    return FORMATS[form](document)
