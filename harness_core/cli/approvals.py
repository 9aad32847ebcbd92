"""``harness approvals``: what waits for a decision, what was decided and granted, and the answers people give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from harness_core.kernel.projections.approvals import grant_items
from harness_core.kernel.projections.artifacts import artifact_ref
from harness_core.kernel.projections.event import decoded
from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.render import clip_line, escape_for_terminal, escape_line, labels

from .hosting import open_host, usage_error
from .named import approval_argument, effect_argument, session_argument
from .noun import NounGroup
from .numbers import minute
from .output import columns, emit, json_option, tabled
from .session_text import content_lines, project_names, short
from .waiting import find_effect, find_item, waiting_items

__all__ = ["approvals"]

_WHAT_COLUMNS = 200
"""So much of what is asked for stands in a list; ``approvals show`` has all of it."""

_ASKED: Final = "asked (UTC)"
_HISTORY: Final[Sequence[str]] = ("id", "session", "tier", "status", "by", _ASKED, "digest", "what")
_HISTORY_FITTED: Final[Sequence[str]] = ("id", "session", "tier", "status", _ASKED, "what")


@click.group(cls=NounGroup, default="list")
def approvals() -> None:
    """Show and answer what waits for a decision.

    Effects of which nobody knows whether they happened are settled here as well.
    """


# -- looking ---


@approvals.command("list")
@json_option
@click.pass_context
def list_approvals(ctx: click.Context) -> None:
    """List what waits for a person, the longest waiting first.

    Of all projects, because an answer reaches any.
    """
    with open_host(ctx) as host:
        items = waiting_items(host)
    emit(ctx, {"schema": "harness.approvals/1", "items": items}, _listed)


def _listed(document: Mapping[str, Any]) -> str:
    projects = project_names(document["items"])
    several = len(projects) > 1
    rows = [
        (
            short(item["id"]),
            short(item["session_id"]),
            *([projects[item["project"]]] if several else []),
            item["stage"],
            item["tier"] or "-",
            minute(item["requested_at"]),
            _what(item),
        )
        for item in document["items"]
    ]
    if not rows:
        return "nothing waits for a decision"
    head = ("id", "session", *(["project"] if several else []), "stage", "tier", "since (UTC)", "what")
    return tabled(head, rows)


def _what(item: Mapping[str, Any]) -> str:
    arguments = escape_line(json.dumps(item["args"], ensure_ascii=False))
    said = clip_line(f"{item['name']} {arguments}", _WHAT_COLUMNS)
    return f"in doubt: {said}" if item["kind"] == "in_doubt" else said


@approvals.command()
@approval_argument
@json_option
@click.pass_context
def show(ctx: click.Context, approval: str) -> None:
    """Show one approval or effect in doubt.

    Its arguments, the rule that asks, and what an answer is bound to.
    """
    with open_host(ctx) as host:
        item = find_item(host, approval)
        preview = host.artifact(artifact_ref(item["preview_ref"])) if item.get("preview_ref") else None
    text = None if preview is None else preview.decode(errors="replace")
    emit(ctx, {"schema": "harness.approval/1", **item, "preview": text}, lambda one: _shown(one, preview))


def _shown(item: Mapping[str, Any], preview: bytes | None) -> str:
    pairs = [
        (item["kind"].replace("_", " "), item["id"]),
        ("status", item["status"]),
        ("session", item["session_id"]),
        ("project", item["project"]),
        ("stage", item["stage"]),
        ("what", f"{item['name']} ({item['tier'] or 'no tier'})"),
        ("arguments", json.dumps(item["args"], ensure_ascii=False, indent=2)),
        ("since", item["requested_at"]),
    ]
    if item["kind"] == "approval":
        pairs += [("why asked", item["rule"]), ("bound to", f"{item['name']}, sha256 {item['digest']}")]
    lines = labels(pairs)  # unbroken: what is approved is to be seen as it is
    if preview is not None:
        text = escape_for_terminal(item["preview"].rstrip("\n")).split("\n")
        artifact = item["subject"] == "artifact"
        lines += ["", *(content_lines(preview, indent=2) if artifact else (f"  {line}" for line in text))]
    return "\n".join([*lines, "", *_answered(item)])


def _answered(item: Mapping[str, Any]) -> list[str]:
    name = short(item["id"])
    if item["kind"] == "in_doubt":
        return [f"next  harness approvals settle {name} --happened | --never-happened"]
    if item["answer"] is not None:
        answer = item["answer"]
        why = "".join(f"; {text}" for text in (answer["say"], answer["reason"]) if text)
        at = f" at {answer['at']}" if answer["at"] else ""
        return [escape_line(f"{item['status']} by {answer['by']} ({answer['via']}){at}{why}")]
    if item["status"] == "pending":
        return [f"next  harness approvals answer {name} --approve | --deny | --auto-session"]
    return ["its session has ended; nothing can be answered any more"]


# -- answering ---


@approvals.command()
@approval_argument
@click.option("--approve", is_flag=True, help="Yes, this once.")
@click.option("--deny", is_flag=True, help="No.")
@click.option("--auto-session", is_flag=True, help="Yes, and to this tool for the session.")
@click.option("--say", metavar="TEXT", help="Tell the role something with it.")
@click.option("--digest", metavar="HEX", help="What you saw; an answer to anything else is refused.")
@json_option
@click.pass_context
def answer(ctx: click.Context, /, approval: str, **given: Any) -> int:
    """Answer an approval; the first answer stands.

    From wherever it came: a later one is exit 1.
    """
    decision = _one_of(given, "approve", "deny", "auto_session")
    from harness_core.shell.answering import Answered

    with open_host(ctx) as host:
        item = find_item(host, approval, in_doubt=False)
        result = host.answer(item["id"], decision, say=given["say"], digest=given["digest"] or item["digest"])
    stands = isinstance(result, Answered)
    document = {
        "schema": "harness.answer/1",
        "approval_id": item["id"],
        "session_id": item["session_id"],
        "decision": decision,
        "stands": stands,
        "by": result.by,
    }
    emit(ctx, document, _answer_text)
    return 0 if stands else 1


def _one_of(given: Mapping[str, Any], *choices: str) -> str:
    """The one flag that is given; several are no answer, whichever came last."""
    chosen = [name for name in choices if given[name]]
    if len(chosen) != 1:
        *others, last = [f"--{name.replace('_', '-')}" for name in choices]
        raise usage_error(f"one of {', '.join(others)} or {last} is needed{', and no more' if chosen else ''}")
    return chosen[0]


def _answer_text(document: Mapping[str, Any]) -> str:
    name, by = short(document["approval_id"]), escape_line(document["by"])
    if not document["stands"]:
        return f"approval {name} was answered already, by {by}; nothing was changed"
    said = {"approve": "approved", "deny": "denied", "auto_session": "approved for the session"}[document["decision"]]
    session = short(document["session_id"])
    return f"approval {name} {said} by {by}\nnext  harness resume {session}   (unless it is running)"


@approvals.command()
@effect_argument
@click.option("--happened", is_flag=True, help="It did; its value may be given.")
@click.option("--never-happened", is_flag=True, help="It did not; it may run now.")
@click.option("--value", metavar="JSON", help="With --happened: what it gave.")
@json_option
@click.pass_context
def settle(ctx: click.Context, /, effect: str, value: str | None, **given: Any) -> int:
    """Say whether an effect in doubt happened; the first word stands.

    Without one it is never run again by itself; a later one is exit 1.
    """
    outcome = _one_of(given, "happened", "never_happened")
    if value is not None and outcome != "happened":
        raise usage_error("--value only goes with --happened")
    result = _value(value)
    with open_host(ctx) as host:
        item = find_effect(host, effect)
        late = "outcome" in item
        settled = {**item, "stands": False} if late else host.settle(item["id"], outcome, value=result)
    document = {"schema": "harness.settled/1", "session_id": item["session_id"], **settled}
    emit(ctx, document, _settled)
    return 0 if document["stands"] else 1


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return loads(text)
    except CodecError as error:
        raise usage_error(f"--value is no JSON: {error.message}") from error


def _settled(document: Mapping[str, Any]) -> str:
    said = "happened" if document["outcome"] == "happened" else "never happened"
    name, by = short(document["effect_id"]), escape_line(document["by"])
    if not document["stands"]:
        return f"effect {name} was settled already, as {said}, by {by}; nothing was changed"
    return (
        f"effect {name}: {said}, says {by}\n"
        f"next  harness resume {short(document['session_id'])}   (unless it is running)"
    )


# -- history ---


@approvals.command()
@session_argument(without="all sessions of this project")
@json_option
@click.pass_context
def history(ctx: click.Context, session: str | None) -> None:
    """List every approval of this project's sessions, or of one.

    Who answered, how, and what the answer was bound to.
    """
    with open_host(ctx) as host:
        items = host.approvals(session, history=True, every_project=False)
    emit(ctx, {"schema": "harness.approvals/1", "items": items}, _history)


def _history(document: Mapping[str, Any]) -> str:
    items = document["items"]
    if not items:
        return "no approval was ever asked for"
    head, rows = _HISTORY, [_historic(item) for item in items]
    if columns():  # who answered, and to what, does not fit beside the rest: it stands in the column that is broken
        head, rows = _HISTORY_FITTED, [_historic_fitted(row) for row in rows]
    return tabled(head, [[row[name] for name in head] for row in rows])


def _historic(item: Mapping[str, Any]) -> dict[str, str]:
    return {
        "id": short(item["id"]),
        "session": short(item["session_id"]),
        "tier": item["tier"],
        "status": item["status"],
        "by": _by(item["answer"]) if item["answer"] else "-",
        _ASKED: minute(item["requested_at"]),
        "digest": item["digest"][:8],
        "what": _what(item),
    }


def _by(answer: Mapping[str, Any]) -> str:
    """Who answered, and by which way where that says more."""
    return str(answer["by"]) if answer["by"] == answer["via"] else f"{answer['by']} ({answer['via']})"


def _historic_fitted(row: Mapping[str, str]) -> dict[str, str]:
    what = f"{row['what']}; by {row['by']}; digest {row['digest']}"
    return {**row, "what": what}


@approvals.command()
@json_option
@click.pass_context
def grants(ctx: click.Context) -> None:
    """List the grants of this project's sessions.

    Each is for one tool at one tier and ends with its session.
    """
    with open_host(ctx) as host:
        items = [
            item for one in host.sessions() for item in grant_items(map(decoded, host.events(one["id"])), one["id"])
        ]
    emit(ctx, {"schema": "harness.grants/1", "items": items}, _granted)


def _granted(document: Mapping[str, Any]) -> str:
    rows: Sequence[Sequence[str]] = [
        (
            item["name"],
            item["tier"],
            "active" if item["active"] else "ended",
            short(item["session_id"]),
            item["by"],
            item["at"],
        )
        for item in document["items"]
    ]
    if not rows:
        return "no grant"
    return tabled(("tool", "tier", "state", "session", "by", "at (UTC)"), rows)
