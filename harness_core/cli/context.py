"""``harness context``: what the model of a stage visit was given and where from, what was left out and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.render import clip_line, clip_lines, escape_for_terminal, escape_line

from .hosting import open_host, usage_error
from .named import session_argument
from .output import emit, json_option

__all__ = ["context"]

_SHOWN_LINES = 12


@click.group()
def context() -> None:
    """Show what a stage's model was given."""


@context.command()
@session_argument()
@click.argument("visit", metavar="VISIT", required=False)
@click.option("--full", is_flag=True, help="Whole texts instead of their first lines.")
@json_option
@click.pass_context
def show(ctx: click.Context, session: str, visit: str | None, full: bool) -> None:
    """Show the context of a stage visit.

    VISIT is its id, STAGE for the last visit of a stage, or STAGE#N (the first is 0); it can be left out where there is
    only one.
    """
    with open_host(ctx) as host:
        try:
            document = host.context(session, visit or "")
        except NotFound as error:
            if visit is None and error.facts.get("visits"):
                raise usage_error(f"Missing argument 'VISIT'; {error.hint}") from error
            raise
    emit(ctx, document, lambda one: "\n".join(_shown(one, None if full else _SHOWN_LINES)))


def _shown(document: Mapping[str, Any], lines: int | None) -> Iterator[str]:
    yield escape_line(f"{document['stage']}#{document['visit']}  visit {document['visit_id']}")
    if not document["attempts"]:
        yield "no context was assembled yet"
    for attempt in document["attempts"]:
        yield ""
        if attempt["error"] is not None:
            yield escape_line(f"attempt {attempt['attempt']}: no context: {attempt['error'].get('message', '')}")
            continue
        yield from _attempt(attempt, lines)


def _attempt(attempt: Mapping[str, Any], lines: int | None) -> Iterator[str]:
    used = f"{attempt['tokens']} of {attempt['budget_tokens']} tokens ({attempt['counted_by']})"
    yield escape_line(f"attempt {attempt['attempt']}, event {attempt['seq']}: {used}")
    yield from _text("task", attempt["task"], lines)
    if attempt["feedback"] is not None:
        yield from _text("why the last attempt failed", attempt["feedback"], lines)
    for item in attempt["items"]:
        title = f"{item['kind']} {item['title']}".strip()
        yield from _text(f"L{item['layer']} {title}, {item['tokens']} tokens, {_source(item)}", item, lines)
    for item in attempt["left_out"]:
        title = f"{item['kind']} {item['title']}".strip()
        said = f"left out: L{item['layer']} {title}, {item['tokens']} tokens, {_source(item)}: {item['reason']}"
        yield f"  {clip_line(escape_line(said), 200)}"


def _source(item: Mapping[str, Any]) -> str:
    return f"from {json.dumps(item['source'], ensure_ascii=False)}"


def _text(title: str, item: Mapping[str, Any], lines: int | None) -> Iterator[str]:
    events = ", ".join(item["source_events"])
    yield f"  {clip_line(escape_line(title), 200)}"
    yield f"    events {escape_line(events)}"
    text, cut = escape_for_terminal(item["text"]), 0
    if lines is not None:
        text, cut = clip_lines(text, lines)
    yield from (f"    | {line}" for line in text.split("\n"))
    if cut:
        yield f"    ({cut} more lines; --full)"
