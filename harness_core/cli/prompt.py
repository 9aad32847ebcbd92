"""``harness prompt``: exactly what a model saw at a call, proved by its hash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from harness_hookspecs.kit.render import escape_for_terminal, escape_line

from .hosting import SESSION, open_host
from .options import UsageError
from .output import emit, json_option

__all__ = ["prompt"]


@click.group()
def prompt() -> None:
    """Show exactly what a model saw."""


@prompt.command()
@click.argument("session", metavar=SESSION)
@click.option("--seq", type=click.IntRange(min=1), metavar="N", help="The harness.model.called event.")
@click.option("--role", metavar="R", help="The last question of an executor role or a persona.")
@json_option
@click.pass_context
def show(ctx: click.Context, session: str, seq: int | None, role: str | None) -> None:
    """Show one question to a model, message by message; without --seq and --role the session's last one."""
    if seq is not None and role is not None:
        raise UsageError("--seq names the call already; --role does not go with it")
    with open_host(ctx) as host:
        document = host.prompt(session, seq, role=role)
    emit(ctx, document, lambda one: "\n".join(_shown(one)))


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
    for entry in document["messages"]:
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
