"""``harness db``: what the log holds, a proved copy of it, and its caches made again from the events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from .errors import exit_of_code
from .hosting import open_host
from .numbers import counted, sized
from .output import emit, fitted, json_option, labelled
from .session_text import short

__all__ = ["db"]

_DIVERGED: Final = 15
_STORE: Final = 6


@click.group()
def db() -> None:
    """Look after the store."""


@db.command()
@json_option
@click.pass_context
def stats(ctx: click.Context) -> None:
    """Show what the log holds and what room it takes.

    All projects have one log.
    """
    with open_host(ctx) as host:
        document = host.store_stats()
    emit(ctx, document, _counted)


def _counted(document: Mapping[str, Any]) -> str:
    persisted = document["persisted"]
    pairs = [("store", document["store"])]
    if document["file"] is not None:
        pairs += [
            ("file", document["file"]),
            ("format", str(document["format"])),
            ("size", f"{sized(document['size_bytes'])}, {sized(document['free_bytes'])} of it free"),
            ("write-ahead log", sized(document["wal_bytes"])),
        ]
    per_event = document["bytes_per_event"]
    whole = "" if per_event is None else f", with all that belongs to them {per_event:.0f} bytes each"
    contents = f"{sized(document['content_bytes'])}, kept in {sized(document['blob_bytes'])}"
    missing = document["sessions"] - persisted["projections"]
    removed = f", and {document['removed']} removed" if document["removed"] else ""
    hint = "; harness db rebuild makes those that are missing" if missing > 0 else ""
    pairs += [
        ("sessions", f"{document['sessions']}{removed}"),
        ("events", f"{persisted['events']} in {sized(document['event_bytes'])}{whole}"),
        ("contents", f"{document['blobs']} of {contents}"),
        *((name, f"{persisted[name]}") for name in ("artifacts", "approvals", "transitions", "summaries")),
        ("projections", f"{persisted['projections']}, and {document['snapshots']} snapshots{hint}"),
        ("commands", str(document["commands"])),
    ]
    return "\n".join(labelled(pairs))


@db.command()
@click.argument("file", metavar="FILE")
@json_option
@click.pass_context
def backup(ctx: click.Context, file: str) -> int:
    """Copy the log into a new file.

    Sessions may go on meanwhile. Each chain and each content of the copy is proved before it bears its name; what is
    there already is never replaced. Exit 15 when a log is shorter or another one than when its head was copied out.
    """
    with open_host(ctx) as host:
        document = host.back_up(file)
    emit(ctx, document, _copied)
    return 0 if document["equal"] else _DIVERGED


def _copied(document: Mapping[str, Any]) -> str:
    whole = (
        f"{document['file']}: {counted(document['sessions'], 'session')}, {counted(document['events'], 'event')}, "
        f"{counted(document['contents'], 'content')}, {sized(document['size_bytes'])}; all of it verifies"
    )
    return "\n".join(map(fitted, [whole, *_named(document["bad"])]))


def _named(bad: list[Mapping[str, Any]]) -> list[str]:
    return [f"session {short(one['session_id'])}: {one['message']}  {one['code']}" for one in bad]


@db.command()
@json_option
@click.pass_context
def rebuild(ctx: click.Context) -> int:
    """Make all caches again from the events.

    They are the documents that list sessions, and snapshots of long logs. Sessions may go on meanwhile.
    """
    with open_host(ctx) as host:
        document = host.rebuild()
    emit(ctx, document, _rebuilt)
    return exit_of_code(document["failed"][0]["code"]) or _STORE if document["failed"] else 0


def _rebuilt(document: Mapping[str, Any]) -> str:
    lines = [f"{counted(document['sessions'], 'session')}: {document['same']} listed as the events say"]
    other = [(short(one["session_id"]), ", ".join(one["keys"])) for one in document["changed"]]
    lines += [f"session {name} was listed with other {keys}" for name, keys in other]
    lines += [f"{stream} is no session and is listed no more" for stream in document["removed"]]
    lines += [f"session {short(one)} went on meanwhile and was left as it is" for one in document["busy"]]
    lines += _named(document["failed"])
    dropped, made = document["snapshots"]["dropped"], document["snapshots"]["made"]
    lines.append(f"snapshots: {dropped} dropped, {made} made")
    return "\n".join(map(fitted, lines))
