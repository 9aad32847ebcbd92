"""``harness sessions deliver``: what a step of a session's plan waits for, from whoever knows that it has happened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.render import escape_line

from .hosting import open_host, usage_error
from .named import session_argument
from .output import emit, json_option
from .plan_file import read_plan
from .session_text import short

__all__ = ["deliver"]

_READ_BYTES: Final = 1_048_576
"""Of a file no more is read: what is delivered has at most a quarter of it, and the host says so of what is longer."""


@click.command()
@session_argument(without=None)
@click.argument("event", metavar="EVENT")
@click.option("--data", metavar="JSON", help="What it brings; null where nothing is given.")
@click.option(
    "--input", "file", metavar="FILE|-", type=click.Path(path_type=Path), help="What it brings, from a file or stdin."
)
@click.option("--id", "delivery_id", metavar="ID", help="Its own id: what is delivered again under it counts once.")
@json_option
@click.pass_context
def deliver(ctx: click.Context, /, session: str, event: str, **given: Any) -> None:
    """Deliver an event that a plan waits for.

    EVENT is its name in the plan; what it brings is the output of the step that waits. It may come before the step
    does, and is then kept for it. A session that runs takes it at once, whoever runs it; one that is parked when it is
    gone on with.

    Exits: 1 the session has ended, or the id brought something else before; 4 no step waits for that; 14 nothing that
    the step could take.
    """
    payload = _payload(given["data"], given["file"])
    with open_host(ctx) as host:
        document = host.deliver_event(session, event, payload, delivery_id=given["delivery_id"])
        name = short(document["session_id"])
        parked = host.session(document["session_id"])["waiting"]
    emit(ctx, document, lambda one: _text(one, name, waits=bool(parked)))


def _payload(data: str | None, file: Path | None) -> Any:
    if data is not None and file is not None:
        raise usage_error("what it brings is given by --data or by --input, not by both")
    if file is None and data is None:
        return None
    said: str | bytes = read_plan(file, _READ_BYTES + 1) if file is not None else data or ""
    where = escape_line(str(file)) if file is not None else "--data"
    if len(said) > _READ_BYTES:
        raise usage_error(f"what {where} holds is over {_READ_BYTES} bytes")
    try:
        return loads(said)
    except CodecError as error:
        hint = "; a text stands in double quotes" if file is None else ""
        raise usage_error(f"what {where} holds is no JSON document: {error.message}{hint}") from error


def _text(document: Mapping[str, Any], name: str, *, waits: bool) -> str:
    event = escape_line(document["name"])
    if document["repeated"]:
        return f"{event} was delivered to {name} before, under the id {escape_line(document['delivery_id'])}"
    taken = f"delivered {event} to {name}" if document["waited_for"] else f"kept {event} for a later step of {name}"
    return f"{taken}\nnext: harness resume {name}    # unless somebody runs it" if waits else taken
