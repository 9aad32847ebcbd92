"""``harness events``: the log as JSON Lines or as lines to read, the chain of causes of an event, and its proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from harness_core.kernel.projections.artifacts import artifact_ref
from harness_core.kernel.projections.event import causes, decoded, event_documents, expanded_view, keeps, prove, proved
from harness_core.kernel.projections.naming import resolve_one
from harness_core.kernel.projections.timeline import Line, Timeline
from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.events import CATEGORIES
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.render import clip_line, escape_line, width, wrap
from harness_hookspecs.store import GENESIS_HASH, StoredEvent

from .errors import INTERRUPTED, error_document, exit_of
from .hosting import open_host, usage_error
from .named import session_argument
from .noun import NounGroup
from .numbers import Whole, counted
from .output import (
    columns,
    complain,
    echo,
    emit,
    fitted,
    json_lines_option,
    json_option,
    labelled,
    wants_json,
    write_document,
)

if TYPE_CHECKING:
    from harness_core.shell.host import Host

__all__ = ["events"]

_DIVERGED = 15
_SEQ_DIGITS = 19
# What is wrong is not at an event of this log.
_NO_EVENT = ("store.anchor_unreachable", "store.put_back", "store.removals")


@click.group(cls=NounGroup, default="show")
def events() -> None:
    """Read the event log."""


class _Wanted(NamedTuple):
    after: int
    until: int | None
    follow: bool
    passes: Callable[[Mapping[str, Any]], bool]
    timeline: Timeline | None  # follows every event, for the words of people's lines; programs need none


@events.command(hidden=True)
@session_argument()
@click.option("--type", "types", metavar="GLOB", default="*", help="Only types that fit, validation.* for example.")
@click.option("--category", type=click.Choice(CATEGORIES), help="Only this category.")
@click.option("--from", "first", type=Whole(min=1), metavar="SEQ", default=1, help="From this event on.")
@click.option("--until", type=Whole(min=1), metavar="SEQ", help="Up to this event.")
@click.option("--follow", is_flag=True, help="Go on until the session has ended.")
@click.option("--expand", is_flag=True, help="With messages and manifests in place of their digests.")
@json_lines_option
@click.pass_context
def show(ctx: click.Context, /, session: str, **given: Any) -> int:
    """Print a session's events in order; with --json one JSON document a line."""
    first, until = given["first"], given["until"]
    if until is not None and until < first:
        raise usage_error(f"--until {until} is before --from {first}")
    timeline = None if wants_json(ctx) else Timeline()
    wanted = _Wanted(first - 1, until, given["follow"], keeps(given["types"], given["category"]), timeline)
    try:
        shown = 0
        with open_host(ctx) as host:
            for stored, document, line in _documents(host, host.find(session), wanted):
                if not shown and not wants_json(ctx):
                    echo(_HEAD)
                _print(ctx, host, stored, document, line, expand=given["expand"])
                shown += 1
        if not shown:
            complain("no event of this session fits; harness events without a filter shows them all")
    except HarnessError as error:
        if not wants_json(ctx):
            raise
        write_document(error_document(error), on_one_line=True)  # like every other document of this command
        complain(f"harness: {error.message}")
        return exit_of(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _documents(
    host: Host, session_id: str, wanted: _Wanted
) -> Iterator[tuple[StoredEvent, dict[str, Any], Line | None]]:
    """Events with their documents and words; the one before the first is read for its hash.

    For words every event is read: what one is about may stand in an earlier one that is not shown. One that the chain
    does not prove is given as it stands there, and nothing after it.

    Raises:
        StoreCorrupt: ``store.changed``.
    """
    root = next(host.events(session_id), None)
    begin = wanted.after if wanted.timeline is None else 0
    stream = host.events(session_id, after=max(0, begin - 1), follow=wanted.follow)
    before = next(stream, None) if begin else None
    previous = before.hash if before is not None and before.seq == begin else GENESIS_HASH
    for stored, document in event_documents(stream, previous_hash=previous, root_id=root.id if root else None):
        if wanted.until is not None and stored.seq > wanted.until:
            return
        line = wanted.timeline.line(decoded(stored)) if wanted.timeline is not None else None
        if stored.seq > wanted.after and wanted.passes(document):
            yield stored, document, line
        prove(stored, previous)
        previous = stored.hash
        if stored.seq == wanted.until:
            return


def _print(
    ctx: click.Context, host: Host, stored: StoredEvent, document: dict[str, Any], line: Line | None, *, expand: bool
) -> None:
    if expand:
        view = expanded_view(decoded(stored), lambda digest: loads_trusted(host.artifact(artifact_ref(digest))))
        document = {**document, "payload": view["payload"]}
    if wants_json(ctx):
        write_document(document, on_one_line=True)
    else:
        echo(_text(stored, document, line, expand=expand))


_TYPE_AT = 17
_HEAD = f"{'seq':>5}  {'time UTC':<8}  {'type':<30}  what"
_WHAT_AT = _HEAD.index("what")
_NARROWEST = 20  # with less room than that a text is no longer readable in a column
_SAYS_NOTHING = ("id", "ref", "digest", "hash", "effect_class", "effectclass")


def _text(stored: StoredEvent, document: Mapping[str, Any], line: Line | None, *, expand: bool) -> str:
    text = line.text if line is not None else _scalars(document["payload"])
    lines = _placed(f"{stored.seq:>5}  {stored.timestamp[11:19]}  {stored.type:<30}  ", text)
    if expand:
        payload = json.dumps(document["payload"], indent=2)  # plain ASCII, so nothing in it can move the cursor
        lines += [f"       {one}" for one in payload.splitlines()]
    return "\n".join(lines)


def _placed(head: str, text: str) -> list[str]:
    """The text in its column and broken there; where a terminal has no room for that column, all texts stand below."""
    room = columns()
    if not room:
        return [f"{head}{text}".rstrip()]
    at = _WHAT_AT if room - _WHAT_AT >= _NARROWEST else _TYPE_AT
    parts = [" " * at + part for part in wrap(text, max(room - at, _TYPE_AT))]
    if at == _WHAT_AT and width(head) == at:
        parts[0] = f"{head}{parts[0][at:]}"
    else:  # a type that reaches into the column, or no column
        parts = [head, *(parts if text else [])]
    return [part.rstrip() for part in parts]


def _scalars(payload: Mapping[str, Any]) -> str:
    """What of a payload says something to people: short values that are no ids, no digests and not empty."""
    said = {
        name: value
        for name, value in payload.items()
        if isinstance(value, (str, int, float)) and value != "" and not name.lower().endswith(_SAYS_NOTHING)
    }
    return clip_line(escape_line("  ".join(f"{name}={value}" for name, value in said.items())), 100)


# -- trace ---


@events.command()
@click.argument("event", metavar="EVENT")
@json_option
@click.pass_context
def trace(ctx: click.Context, event: str) -> None:
    """Show what caused an event, back to the first command.

    EVENT is the id of an event, or S:SEQ.
    """
    with open_host(ctx) as host:
        session_id, event_id = _find(host, event)
        chain_of = causes((document for _, document in event_documents(proved(host.events(session_id)))), event_id)
        correlation = chain_of[0]["correlation_id"]
        document = {
            "schema": "harness.trace/1",
            "session_id": session_id,
            "event_id": event_id,
            "correlation_id": correlation,
            "items": list(chain_of),
        }
        emit(ctx, document, _traced)


def _find(host: Host, reference: str) -> tuple[str, str]:
    session, colon, seq = reference.rpartition(":")
    if colon and seq.isdecimal():
        session_id = host.find(session)
        number = int(seq) if len(seq) < _SEQ_DIGITS else 0  # no event has that many
        found = next(host.events(session_id, after=number - 1), None) if number else None
        if found is None:
            raise NotFound(f"session {session_id[-8:]} has no event {seq}", code="event.not_found")
        return session_id, found.id
    sessions = [document["id"] for document in host.sessions(every_project=True)]
    owners = {event.id: one for one in sessions for event in host.events(one)}
    hint = "harness events SESSION --json shows the ids; SESSION:SEQ is another way to name one"
    event_id = resolve_one(reference.lower(), list(owners), "event", hint=hint)
    return owners[event_id], event_id


def _traced(document: Mapping[str, Any]) -> str:
    lines = [
        f"{'' if first else 'caused by '}{item['type']}  seq {item['seq']}  {item['timestamp']}  {item['id']}"
        for first, item in zip(chain([True], [False] * len(document["items"])), document["items"], strict=False)
    ]
    return "\n".join(map(fitted, lines))


# -- verify ---


@events.command()
@session_argument()
@json_option
@click.pass_context
def verify(ctx: click.Context, session: str) -> int:
    """Prove a session's log: every event, its end and all content.

    Exit 15 when it does not verify.
    """
    with open_host(ctx) as host:
        document = host.verify(session)
    emit(ctx, document, _verified)
    return 0 if document["equal"] else _DIVERGED


def _verified(document: Mapping[str, Any]) -> str:
    if document["equal"]:
        copied = document["copied_head"]
        end = f"head copied out at seq {copied['seq']} agrees" if copied else "no head was copied out yet"
        unknown = document["unknown_seq"]
        rest = f"; from seq {unknown} on a newer version wrote it: what it says there is not judged" if unknown else ""
        return fitted(
            f"session {document['session_id'][-8:]} verifies: {counted(document['events'], 'event')}, "
            f"{counted(document['contents'], 'content')}, {counted(document['prompts'], 'prompt')}; "
            f"{end}{rest}{_of_anchor(document['anchor'])}"
        )
    broken = document["broken"]
    found = [(_where(one), f"{one['message']} ({one['code']}, {one['invariant']})") for one in broken]
    return "\n".join(["does NOT verify", *labelled([("verified", f"up to seq {broken[0]['seq'] - 1}"), *found])])


def _where(broken: Mapping[str, Any]) -> str:
    return "the store" if broken["code"] in _NO_EVENT else f"seq {broken['seq']}"


def _of_anchor(anchor: Mapping[str, Any] | None) -> str:
    if anchor is None:
        return ""
    head = anchor["head"]
    return "; the anchor has no head of it" if head is None else f"; the anchor's head at seq {head['seq']} agrees"
