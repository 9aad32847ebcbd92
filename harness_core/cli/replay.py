"""``harness replay``: a session in, whether it comes out the same without any call, or where it differs, out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from .hosting import open_host, usage_error
from .named import session_argument
from .output import emit, fitted, json_option

__all__ = ["MODES", "replay"]

MODES: Final = ("full", "skip-inference")
"""The modes there are: fold the log again, or take every decision and enter every role again."""

_DIVERGED = 15


@click.command()
@session_argument()
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="full folds the log; skip-inference also takes every decision again, answers coming from the log.",
)
@click.option(
    "--against", metavar="DIR", help="Decide by the configuration of this folder instead of the recorded one."
)
@json_option
@click.pass_context
def replay(ctx: click.Context, session: str, mode: str | None, against: str | None) -> int:
    """Replay a session without any call.

    No model, tool or network is used; exit 15 names the first event that differs.
    """
    if against is not None and mode == "full":
        raise usage_error("--against decides again, so it goes with --mode skip-inference")
    chosen = mode or ("full" if against is None else "skip-inference")
    with open_host(ctx) as host:
        document = host.replay(session, chosen, against)
    emit(ctx, document, lambda one: "\n".join(map(fitted, _replayed(one))))
    return 0 if document["equal"] else _DIVERGED


def _replayed(document: Mapping[str, Any]) -> list[str]:
    calls = f"{document['model_calls']} model and {document['tool_calls']} tool calls were made"
    if document["equal"]:
        roles = f", {document['roles_entered']} role calls entered again" if document["roles_entered"] else ""
        end = f"state hash {document['state_hash'][:12]} matches"
        return [f"replayed {document['events']} events{roles}; {calls}; {end}"]
    difference = document["diverged"]
    if difference is None:
        return [f"the state after {document['events']} events is not the recorded one: {document['state_hash']}"]
    from .difference import difference_lines

    return [*difference_lines(difference), calls]
