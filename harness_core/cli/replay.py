"""``harness replay``: a session in, whether it comes out the same without any call, or where it differs, out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from harness_core.shell.replay_modes import MODES, chosen_mode
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.events import CATEGORIES

from .hosting import open_host, usage_error
from .named import session_argument
from .output import emit, fitted, json_option

__all__ = ["replay"]

_WRITTEN: Final = {"first": "--from", "until": "--until", "category": "--category", "against": "--against"}
_DIVERGED = 15


@click.command()
@session_argument()
@click.option(
    "--mode",
    type=click.Choice([*MODES]),
    help="full folds the log; partial and cursor fold a part of it; skip-inference also takes every decision again, "
    "answers coming from the log; simulate runs everything again on recorded answers and compares the whole log. "
    "Without it: the first of them that takes the other options.",
)
@click.option("--from", "first", type=click.IntRange(min=1), metavar="SEQ", help="cursor: from this event on.")
@click.option("--until", type=click.IntRange(min=1), metavar="SEQ", help="partial, cursor: up to this event.")
@click.option(
    "--category",
    type=click.Choice(CATEGORIES),
    help="partial: count the events of this category and hash what they write of the state, which is folded from all.",
)
@click.option(
    "--against",
    metavar="DIR",
    help="skip-inference: decide by the configuration of this folder instead of the recorded one.",
)
@json_option
@click.pass_context
def replay(ctx: click.Context, /, session: str, mode: str | None, **options: Any) -> int:
    """Replay a session without any call.

    No model, tool or network is used; exit 15 names the first event that differs.
    """
    _check(mode, options)
    with open_host(ctx) as host:
        document = host.replay(session, mode, **options)
    emit(ctx, document, lambda one: "\n".join(map(fitted, _replayed(one))))
    return _DIVERGED if document["equal"] is False else 0


def _check(mode: str | None, options: Mapping[str, Any]) -> None:
    try:
        chosen_mode(mode, [name for name in _WRITTEN if options[name] is not None], _WRITTEN.__getitem__)
    except ConfigError as error:
        raise usage_error(error.message) from error
    first, until = options["first"] or 1, options["until"]
    if until is not None and until < first:
        raise usage_error(f"--until {until} is before --from {first}")


def _replayed(document: Mapping[str, Any]) -> list[str]:
    calls = f"{document['model_calls']} model and {document['tool_calls']} tool calls were made"
    if document["equal"] is not False:
        roles = f", {document['roles_entered']} role calls entered again" if document["roles_entered"] else ""
        end = f"state hash {document['state_hash'][:12]} {'matches' if document['equal'] else 'not compared'}"
        return [f"replayed {document['events']} events{roles}; {calls}; {end}"]
    difference = document["diverged"]
    if difference is None:
        return [f"the state after {document['events']} events is not the recorded one: {document['state_hash']}"]
    from .difference import difference_lines

    return [*difference_lines(difference), calls]
