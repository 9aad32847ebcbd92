"""``harness artifacts``: what stages made, as a list, and the content behind a reference."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from harness_core.kernel.projections.naming import LAST
from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.render import escape_for_terminal, table

from .hosting import SESSION, open_host
from .noun import NounGroup
from .output import emit, json_option, wants_json, write_document

__all__ = ["artifacts"]


@click.group(cls=NounGroup, default="list")
def artifacts() -> None:
    """List and read what stages made."""


@artifacts.command("list", hidden=True)
@click.argument("session", metavar=f"[{SESSION}]", default=LAST)
@json_option
@click.pass_context
def list_artifacts(ctx: click.Context, session: str) -> None:
    """List the accepted artifacts of a session, oldest first."""
    with open_host(ctx) as host:
        found = host.find(session)
        items = list(host.artifacts(found))
    emit(ctx, {"schema": "harness.artifacts/1", "session_id": found, "items": items}, _listed)


def _listed(document: Mapping[str, Any]) -> str:
    rows = [
        (
            item["type"],
            item["status"],
            f"{item['stage']}#{item['visit']}",
            str(item["attempt"]),
            str(item["seq"]),
            item["ref"],
        )
        for item in document["items"]
    ]
    if not rows:
        return f"session {document['session_id'][-8:]} has no accepted artifact"
    return "\n".join(table(("type", "status", "stage", "attempt", "seq", "reference"), rows))


@artifacts.command()
@click.argument("ref", metavar="REF")
@json_option
@click.pass_context
def get(ctx: click.Context, ref: str) -> None:
    """Print the content behind artifact://sha256-... as it is; on a terminal with what could trick it made visible."""
    with open_host(ctx) as host:
        content = host.artifact(ref)
    if wants_json(ctx):
        write_document({"schema": "harness.artifact/1", "ref": ref, "size_bytes": len(content), **_content(content)})
    elif sys.stdout and sys.stdout.isatty():
        click.echo(escape_for_terminal(content.decode(errors="replace")))
    else:
        click.echo(content, nl=False)


def _content(content: bytes) -> dict[str, Any]:
    """The content in the form that loses nothing: JSON, else text, else base64."""
    try:
        value = loads(content)
        json.dumps(value, allow_nan=False)
        return {"encoding": "json", "content": value}
    except CodecError:
        pass
    try:
        return {"encoding": "text", "content": content.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(content).decode()}
