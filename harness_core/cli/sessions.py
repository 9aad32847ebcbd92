"""``harness sessions``: the index of sessions, and one session's document as it is or as it was at an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from .hosting import open_host
from .named import session_argument
from .noun import NounGroup
from .numbers import Whole
from .output import emit, json_option, tabled
from .session_text import Beside, project_names, session_text, short, stage_with_context
from .waiting import budget_reached

__all__ = ["STATUSES", "sessions"]

STATUSES: Final = ("created", "active", "paused", "awaiting_approval", "failed", "completed", "cancelled")
"""The states of a session."""


@click.group(cls=NounGroup, default="list")
def sessions() -> None:
    """List and show sessions."""


@sessions.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only sessions in this state.")
@click.option("--all", "every", is_flag=True, help="Sessions of all projects.")
@json_option
@click.pass_context
def list_sessions(ctx: click.Context, status: str | None, every: bool) -> None:
    """List this project's sessions, the newest first.

    Tokens are those read and written; +? after them says that not every call reported what it used.
    """
    with open_host(ctx) as host:
        found = host.sessions(every_project=True)
        ours = {document["id"] for document in found} if every else {one["id"] for one in host.sessions()}
    items = [one for one in found if one["id"] in ours and status in (None, one["status"])]
    document = {
        "schema": "harness.sessions/1",
        "items": items,
        "hidden": {"other_projects": len(found) - len(ours), "other_status": len(ours) - len(items)},
    }
    emit(ctx, document, lambda one: _listed(one, every=every))


def _listed(document: Mapping[str, Any], *, every: bool) -> str:
    projects = project_names(document["items"])
    rows = [
        (
            short(item["id"]),
            *([projects[item["project"]]] if every else []),
            item["updated_at"][:16].replace("T", " "),
            item["status"],
            item["stage"] or "-",
            str(item["usage"]["input_tokens"] + item["usage"]["output_tokens"])
            + ("" if item["usage"]["known"] else "+?"),
            item["title"],
            ", ".join(f"{waiting['kind']} {short(waiting['id'])}" for waiting in item["waiting"]),
        )
        for item in document["items"]
    ]
    head = ("id", *(["project"] if every else []), "changed (UTC)", "status", "stage", "tokens", "title", "waits for")
    lines = tabled(head, rows, optional=("stage", "waits for"))
    hidden = document["hidden"]
    notes = [
        f"({count} hidden: {why})"
        for count, why in (
            (hidden["other_status"], "another status"),
            (hidden["other_projects"], "other projects; --all"),
        )
        if count
    ]
    return "\n".join([lines if rows else "no sessions", *notes])


@sessions.command()
@session_argument()
@click.option("--at", type=Whole(min=1), metavar="SEQ", help="As it was after this event.")
@json_option
@click.pass_context
def show(ctx: click.Context, session: str, at: int | None) -> None:
    """Show one session."""
    with open_host(ctx) as host:
        document = host.session(session, at)
        made = [one for one in host.artifacts(document["id"]) if one["seq"] <= document["last_seq"]]
        context = stage_with_context(document, lambda: host.events(document["id"]))
        beside = Beside(context, budget_reached(host, document) if at is None else None)
    emit(ctx, document, lambda one: session_text(one, made, beside=beside, current=at is None))
