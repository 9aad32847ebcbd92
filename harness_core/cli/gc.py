"""``harness sessions gc``: sessions that ended long ago go, and the log keeps that they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from .errors import exit_of_code
from .hosting import open_host, terminal
from .numbers import age, counted, minute, sized
from .output import emit, fitted, json_option, labelled, say, tabled, wants_json
from .session_text import short

__all__ = ["gc"]

_STORE: Final = 6
_WHY: Final = {
    "not_final": "not final",
    "younger": "ended later",
    "other_projects": "of other projects; --all",
    "related": "name, or are named by, one that stays",
    "running": "run by somebody",
}


@click.command()
@click.option("--older", type=age, metavar="AGE", required=True, help="Those that ended so long ago: 30d, 12h, 2w.")
@click.option("--all", "every", is_flag=True, help="Sessions of all projects.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@json_option
@click.pass_context
def gc(ctx: click.Context, older: int, every: bool, dry_run: bool, yes: bool) -> int:
    """Remove sessions that ended long ago, for ever.

    Events, artifacts and contents that no other session names go with them; the log keeps how many events each had, and
    the hash of the last. One that has not ended, or is related to one that stays, stays.
    """
    asks = not yes and not wants_json(ctx) and terminal() is not None
    with open_host(ctx) as host:
        document = host.prune(older, every_project=every, dry_run=dry_run, asked=_agreed if asks else None)
    emit(ctx, document, _told)
    return exit_of_code(document["failed"][0]["code"]) or _STORE if document["failed"] else 0


def _agreed(plan: Mapping[str, Any]) -> bool:
    say(click.get_current_context(), _listed(plan))
    return click.confirm(f"Remove {_of(plan)} for ever?", err=True)


def _of(document: Mapping[str, Any]) -> str:
    return f"{counted(len(document['sessions']), 'session')} with {counted(document['events'], 'event')}"


def _listed(document: Mapping[str, Any]) -> str:
    rows = [
        (short(one["id"]), minute(one["ended_at"]), one["status"], str(one["events"]), one["title"])
        for one in document["sessions"]
    ]
    return tabled(("id", "ended (UTC)", "status", "events", "title"), rows)


def _told(document: Mapping[str, Any]) -> str:
    before = f"that ended before {minute(document['before'])} (UTC)"
    if not document["sessions"]:
        lines = [fitted(f"no session to remove {before}")]
    elif document["removed"]:
        contents = f"{counted(document['contents'], 'content')} of {sized(document['content_bytes'])}"
        lines = [fitted(f"removed {_of(document)} {before}, and {contents}; the room is used again")]
    else:
        said = "would remove" if document["dry_run"] else "nothing was removed of"
        lines = [*([_listed(document)] if document["dry_run"] else []), fitted(f"{said} {_of(document)} {before}")]
    lines += [f"({count} kept: {_WHY[why]})" for why, count in document["kept"].items() if count]
    failed = [(short(one["session_id"]), f"{one['message']}  {one['code']}") for one in document["failed"]]
    return "\n".join([*lines, *labelled(failed)])
