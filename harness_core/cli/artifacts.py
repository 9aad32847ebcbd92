"""``harness artifacts``: what stages made, as a list, and the content behind a reference."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_core.kernel.projections.artifacts import artifact_ref, digest_of_ref
from harness_core.kernel.projections.naming import resolve_one
from harness_core.shell.ports_streams import results
from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.render import escape_for_terminal

from .hosting import open_host
from .named import session_argument
from .noun import NounGroup
from .output import echo, emit, json_option, tabled, wants_json, write_document
from .session_text import ref_shown

if TYPE_CHECKING:
    from harness_core.shell.host import Host

__all__ = ["artifacts"]

_SCHEME = artifact_ref("")


@click.group(cls=NounGroup, default="list")
def artifacts() -> None:
    """List and read what stages made."""


@artifacts.command("list", hidden=True)
@session_argument()
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
            ref_shown(item["ref"]),
        )
        for item in document["items"]
    ]
    if not rows:
        return f"session {document['session_id'][-8:]} has no accepted artifact"
    return tabled(("type", "status", "stage", "attempt", "seq", "reference"), rows)


@artifacts.command()
@click.argument("ref", metavar="REF")
@json_option
@click.pass_context
def get(ctx: click.Context, ref: str) -> None:
    """Print the content behind a reference as it is.

    On a terminal what could trick it is made visible. REF is artifact://sha256-... or either end of its 64 digits, four
    or more of them.
    """
    with open_host(ctx) as host:
        ref = _find(host, ref)
        content = host.artifact(ref)
    if wants_json(ctx):
        write_document({"schema": "harness.artifact/1", "ref": ref, "size_bytes": len(content), **_content(content)})
    elif (stream := results()) and stream.isatty():
        echo(escape_for_terminal(content.decode(errors="replace")))
    else:
        echo(content, end_of_line=False)


def _find(host: Host, reference: str) -> str:
    """The reference that is meant: a whole one as it is, an end of one among the accepted artifacts of all projects."""
    if digest_of_ref(reference) is not None:
        return reference
    known: dict[str, str] = {
        ref.removeprefix(_SCHEME): ref for one in host.sessions(every_project=True) for ref in one["artifacts"]
    }
    hint = "harness artifacts S lists those of a session"
    return known[resolve_one(reference.lower().removeprefix(_SCHEME), list(known), "artifact", hint=hint)]


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
