"""``harness transitions``: the rules a session took with their values, and every retry and skip with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from harness_hookspecs.kit.render import clip_line, escape_line

from .hosting import open_host
from .named import session_argument
from .output import emit, fitted, json_option

__all__ = ["transitions"]

_COLUMNS = 200


@click.command()
@session_argument()
@json_option
@click.pass_context
def transitions(ctx: click.Context, session: str) -> None:
    """Show which rules a session took.

    Also why attempts were repeated.
    """
    with open_host(ctx) as host:
        document = host.transitions(session)
    emit(ctx, document, _shown)


def _shown(document: Mapping[str, Any]) -> str:
    lines = [line for item in document["items"] for line in _item(item)]
    return "\n".join(lines) or f"session {document['session_id'][-8:]} has taken no transition yet"


def _item(item: Mapping[str, Any]) -> list[str]:
    if item["kind"] == "transition":
        values = json.dumps(item["values"], ensure_ascii=False)
        return [
            _line(f"{item['seq']:>5}  {item['from']} -> {item['to']}"),
            _line(f"       rule {item['rule_index'] + 1}: {item['rule']}"),
            _line(f"       with {values}"),
        ]
    if item["kind"] == "retry":
        attempt = f"attempt {item['attempt']} of {item['max_attempts']}, {item['strategy']}"
        return [
            _line(f"{item['seq']:>5}  {item['from']}: {attempt}"),
            _line(f"       because {item['code']}: {item['reason']}"),
        ]
    return [_line(f"{item['seq']:>5}  {item['from']} skipped: {item['reason']}")]


def _line(text: str) -> str:
    return fitted(clip_line(escape_line(text), _COLUMNS))
