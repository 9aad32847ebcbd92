"""``harness prompt``: exactly what a model saw at a call, proved by its hash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from harness_core.kernel.projections.naming import LAST
from harness_hookspecs.kit.render import escape_for_terminal, escape_line

from .hosting import open_host, usage_error
from .named import session_argument
from .numbers import Whole
from .output import emit, json_option

__all__ = ["prompt"]


@click.group()
def prompt() -> None:
    """Show exactly what a model saw."""


@prompt.command()
@session_argument(without=f"{LAST}, or with --role the configuration")
@click.option("--seq", type=Whole(min=1), metavar="N", help="The harness.model.called event.")
@click.option("--role", metavar="R", help="An executor role or a persona: its last question, or what it would be told.")
@json_option
@click.pass_context
def show(ctx: click.Context, session: str | None, seq: int | None, role: str | None) -> None:
    """Show one question to a model, message by message.

    Without --seq it is the session's last one.

    Without S, --role R shows the parts of the prompt that R has under the configuration as it is.
    """
    if seq is not None and role is not None:
        raise usage_error("--seq names a call of a session; --role does not go with it")
    with open_host(ctx) as host:
        if session is None and role is not None:
            emit(ctx, host.role_prompt(role), _role_shown)
        else:
            emit(ctx, host.prompt(session or LAST, seq, role=role), lambda one: "\n".join(_shown(one)))


def _role_shown(document: Mapping[str, Any]) -> str:
    who = f"{document['role']}{' as ' + document['persona'] if document['persona'] else ''}"
    head = f"{who}, by {document['plugin']} {document['plugin_version']}"
    return "\n".join([escape_line(head), *_parts(document["parts"])])


def _parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each part under its label, which is for people and was not sent."""
    for number, part in enumerate(parts, start=1):
        name = f" {part['id']}" if part["id"] else ""
        yield ""
        yield escape_line(f"({number}) {part['label']}{name}, sha256 {part['digest'][:12]}")
        yield escape_for_terminal(part["text"])


def _shown(document: Mapping[str, Any]) -> Iterator[str]:
    model = document["model"]
    yield escape_line(
        f"event {document['seq']}: {document['stage']}, attempt {document['attempt']}, turn {document['turn']}, "
        f"{document['role']} as {document['persona']}, asked {model['provider']}/{model['model_id']}"
    )
    yield escape_line(f"params {json.dumps(document['params'], ensure_ascii=False)}")
    tools = ", ".join(f"{tool['name']} ({tool['tier']})" for tool in document["tools"])
    yield escape_line(f"tools {tools or 'none'}")
    mark = "matches what is shown here" if document["equal"] else "does NOT match what is stored"
    yield f"promptHash {document['prompt_hash']} {mark}"
    messages = document["messages"]
    if document["parts"] is not None:
        yield ""
        yield "[system]"
        yield from _parts(document["parts"])
        messages = messages[1:]
    for entry in messages:
        yield ""
        yield from _message(entry)


def _message(entry: Mapping[str, Any]) -> Iterator[str]:
    message = entry["message"]
    if message is None:
        yield f"[content {entry['digest']} is missing]"
        return
    yield f"[{escape_line(message['role'])}]"
    for part in message["content"]:
        if "text" in part:
            kind = "" if part["type"] == "text" else f"({escape_line(part['type'])}) "
            yield f"{kind}{escape_for_terminal(part['text'])}"
        else:
            yield escape_for_terminal(json.dumps(part, ensure_ascii=False, indent=2))
