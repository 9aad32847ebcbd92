"""``harness sessions``: the index of sessions, one as it is or as it was at an event, forks of it, two side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from harness_hookspecs.kit.paths import encode_path

from .deliver import deliver
from .diff_text import diff_text
from .gc import gc
from .hosting import budget_of, open_host, recorded_flags, settings_of
from .named import session_argument
from .noun import NounGroup
from .numbers import Whole, minute
from .output import emit, json_option, tabled
from .run import budget_option, follow, on_ask_option, set_option, yolo_of, yolo_options
from .session_text import Beside, project_names, session_text, short, stage_with_context, waits_text

if TYPE_CHECKING:
    from harness_core.shell.host import Host

    from .progress import Progress

__all__ = ["STATUSES", "sessions"]

STATUSES: Final = ("created", "active", "paused", "awaiting_approval", "failed", "completed", "cancelled")
"""The states of a session."""


@click.group(cls=NounGroup, default="list")
def sessions() -> None:
    """List, show, fork, compare and remove sessions."""


sessions.add_command(gc)
sessions.add_command(deliver)


@sessions.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only sessions in this state.")
@click.option("--all", "every", is_flag=True, help="Sessions of all projects.")
@json_option
@click.pass_context
def list_sessions(ctx: click.Context, status: str | None, every: bool) -> None:
    """List this project's sessions, the newest first.

    Tokens are those read and written; +? after them says that not every call reported what it used, unknown that none
    did.
    """
    with open_host(ctx) as host:
        found = host.sessions(every_project=True)
        here = encode_path(str(host.config.project))
    ours = {one["id"] for one in found if every or one["project"] == here}
    items = [one for one in found if one["id"] in ours and status in (None, one["status"])]
    document = {
        "schema": "harness.sessions/1",
        "items": items,
        "hidden": {"other_projects": len(found) - len(ours), "other_status": len(ours) - len(items)},
    }
    emit(ctx, document, lambda one: _listed(one, every=every))


def _tokens(usage: Mapping[str, Any]) -> str:
    """In and out; a lower bound is marked, and where there is none but 0 it says nothing."""
    total = usage["input_tokens"] + usage["output_tokens"]
    if usage["known"]:
        return str(total)
    return f"{total}+?" if total else "unknown"


def _listed(document: Mapping[str, Any], *, every: bool) -> str:
    projects = project_names(document["items"])
    rows = [
        (
            short(item["id"]),
            *([projects[item["project"]]] if every else []),
            minute(item["updated_at"]),
            item["status"],
            item["stage"] or "-",
            _tokens(item["usage"]),
            item["title"],
            ", ".join(waits_text(item["waiting"])),
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
    from .waiting import below, budget_reached  # with all models of events, which a list does without

    with open_host(ctx) as host:
        document = host.session(session, at)
        made = [one for one in host.artifacts(document["id"]) if one["seq"] <= document["last_seq"]]
        context = stage_with_context(document, lambda: host.events(document["id"]))
        current = at is None
        reached = budget_reached(host, document) if current else None
        beside = Beside(context, reached, below=below(host, document) if current else ())
    emit(ctx, document, lambda one: session_text(one, made, beside=beside, current=current))


@sessions.command()
@session_argument(without=None)
@click.option("--at", type=Whole(min=1), metavar="SEQ", required=True, help="With what it had come to at this event.")
@set_option
@on_ask_option("what the session was started with")
@yolo_options
@budget_option
@json_option
@click.pass_context
def fork(ctx: click.Context, /, session: str, at: int, **given: Any) -> int:
    """Begin a new session with what another one had come to.

    It goes on from the last event at or before SEQ after which no stage was open: what was amid a stage there begins
    anew, with real calls. The configuration is that of now; flags the other session was started with hold, but for
    those of --set. Nothing of the other session changes. Files, and what tools did, stay as they are now.

    Exits: those of harness run; 4 no such event.
    """
    begin: dict[str, Any] = {
        "budget": budget_of(given["budget"]),
        "yolo": yolo_of(yolo=given["yolo"], destructive=given["yolo_destructive"]),
        "on_ask": given["on_ask"],
    }
    settings = settings_of(given["settings"])
    with open_host(ctx) as host:
        found = host.find(session)
        host.session(found, at)  # what is not there is said before any other thing that may be wrong
        flags = recorded_flags(host, found)

    def start(host: Host, _: Progress) -> str:
        return str(host.fork(found, at, wait=False, **begin)["id"])

    return follow(ctx, {**flags, **settings}, start)


@sessions.command()
@session_argument()
@json_option
@click.pass_context
def tree(ctx: click.Context, session: str) -> None:
    """Show a session with those it comes from and its forks.

    A star marks it.
    """
    with open_host(ctx) as host:
        document = host.tree(session)
    emit(ctx, document, _branches)


def _branches(document: Mapping[str, Any]) -> str:
    rows = [
        (
            "  " * item["depth"] + short(item["id"]) + (" *" if item["id"] == document["session_id"] else ""),
            "-" if item["forked_at"] is None else str(item["forked_at"]),
            minute(item["created_at"]),
            item["status"],
            item["stage"] or "-",
            item["title"],
        )
        for item in document["items"]
    ]
    return tabled(("id", "forked at", "created (UTC)", "status", "stage", "title"), rows)


@sessions.command()
@session_argument(without=None)
@click.argument("other", metavar="OTHER")
@json_option
@click.pass_context
def diff(ctx: click.Context, session: str, other: str) -> None:
    """Show what two sessions did differently.

    What was asked and pinned, stages, transitions, artifacts, tool calls and what was used; ids and times are no
    difference. OTHER is named as S is.
    """
    with open_host(ctx) as host:
        document = host.diff(session, other)
    emit(ctx, document, diff_text)
