"""``harness run``, ``resume``, ``pause`` and ``cancel``: a text or a session in, its document and an exit code out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from .errors import INTERRUPTED
from .hosting import budget_of, model_overrides, open_host, recorded_flags, settings_of, terminal, usage_error
from .named import session_argument
from .numbers import Whole
from .output import complain, emit, json_option, wants_json, write_document

if TYPE_CHECKING:
    from harness_core.shell.host import Host

    from .progress import Progress

__all__ = [
    "budget_option",
    "cancel",
    "follow",
    "on_ask_option",
    "pause",
    "resume",
    "run",
    "set_option",
    "yolo_of",
    "yolo_options",
]

_MAX_TEXT_BYTES = 16 * 1024 * 1024
_AUTO = "auto"
_YOLO = {
    "on": "approvals of this session are answered with yes, but for destructive tools (T4)",
    "destructive": "approvals of this session are answered with yes, destructive tools (T4) included",
}


def on_ask_option(otherwise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--on-ask``: without a value a person is asked on a terminal, else denied; not given, ``otherwise`` holds."""
    return click.option(
        "--on-ask",
        is_flag=False,
        flag_value=_AUTO,
        default=None,
        type=click.Choice(["ask", "suspend", "deny", _AUTO]),
        metavar="[ask|suspend|deny]",
        help=f"What an approval does that no policy answers; else {otherwise}.",
    )


def budget_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--budget tokens=N,seconds=N,calls=N``."""
    return click.option("--budget", metavar="tokens=N,seconds=N,calls=N", help="Limits; reaching one is exit 12.")(
        command
    )


def set_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--set KEY=VALUE``, as often as needed."""
    said = "Set a key of the configuration."
    return click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help=said)(command)


def yolo_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--yolo`` and ``--yolo-destructive``; see ``yolo_of``."""
    more = click.option("--yolo-destructive", is_flag=True, help="With --yolo: for destructive tools as well.")
    return click.option("--yolo", is_flag=True, help="Answer approvals with yes, but for destructive tools (T4).")(
        more(command)
    )


@click.command()
@click.argument("words", metavar="TEXT|-", nargs=-1, required=True)
@click.option("--model", metavar="M", help="The model that answers in every stage.")
@set_option
@on_ask_option("what run.on_ask says")
@yolo_options
@budget_option
@click.option("--seed", type=Whole(0, 2**32 - 1), metavar="N", help="Seed of the replies; else one is drawn.")
@json_option
@click.pass_context
def run(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> int:
    """Run one session to its end or to a pause.

    With - the text is read from stdin.

    Exits: 0 completed, 1 failed, 10 waits (resumable), 11 denied, 12 budget reached (resumable), 13 no provider,
    14 artifact invalid after retries.
    """
    text = _text(words)
    begin: dict[str, Any] = {
        "budget": budget_of(given["budget"]),
        "yolo": yolo_of(yolo=given["yolo"], destructive=given["yolo_destructive"]),
        "seed": given["seed"],
    }
    settings = settings_of(given["settings"])
    overrides = {**model_overrides(ctx, given["model"], settings), **settings}

    def start(host: Host, _: Progress) -> str:
        return host.start(text, on_ask=given["on_ask"] or host.config.harness.run.on_ask, **begin)

    return follow(ctx, overrides, start)


@click.command()
@session_argument()
@budget_option
@on_ask_option("what the session was started with")
@click.option("--accept-drift", is_flag=True, help="Go on under the configuration as it is now.")
@json_option
@click.pass_context
def resume(ctx: click.Context, /, session: str, **given: Any) -> int:
    """Go on with a session that stopped.

    Flags it was started with still hold; a limit of --budget is the new total, with what was used before.
    """
    from harness_core.kernel.state import FINAL

    budget = budget_of(given["budget"])
    with open_host(ctx) as host:
        found = host.root(session)  # of a child session the one that all began with
        flags = recorded_flags(host, found)

    def begin(host: Host, progress: Progress) -> str:
        progress.remember(host.events(found))
        if host.session(found)["status"] not in FINAL:  # else nothing goes on that could be told of
            progress.name(found)
        host.resume(found, budget=budget, on_ask=given["on_ask"], accept_drift=given["accept_drift"], wait=False)
        return found

    return follow(ctx, flags, begin)


@click.command()
@session_argument(without=None)
@json_option
@click.pass_context
def pause(ctx: click.Context, session: str) -> None:
    """Stop a session after what is in flight.

    Whichever process runs it is asked to.
    """
    with open_host(ctx) as host:
        found = host.find(session)
        host.pause(found)
        emit(ctx, host.session(found), lambda _: f"asked; whoever runs {found[-8:]} stops after what is in flight")


@click.command()
@session_argument(without=None)
@json_option
@click.pass_context
def cancel(ctx: click.Context, session: str) -> None:
    """End a session as cancelled.

    Whichever process runs it is asked to. One whose log is damaged can still be ended, where resume refuses it.
    """
    with open_host(ctx) as host:
        found = host.find(session)
        host.cancel(found)
        emit(ctx, host.session(found), lambda one: _cancelled(one, found))


def _cancelled(document: Mapping[str, Any], session_id: str) -> str:
    if document["status"] == "cancelled":
        return f"session {session_id[-8:]} is cancelled"
    return f"asked; whoever runs {session_id[-8:]} ends it within its grace"


# -- what was typed ---


def _text(given: tuple[str, ...]) -> str:
    if len(given) > 1:
        raise usage_error(f"the text is one argument, quote it: harness run {shlex.quote(' '.join(given))}")
    words = _stdin() if given[0] == "-" else given[0]
    if not words.strip():
        raise usage_error("there is nothing to do: the text is empty")
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise usage_error("the text is not UTF-8") from error
    return words


def _stdin() -> str:
    data = sys.stdin.buffer.read(_MAX_TEXT_BYTES + 1) if sys.stdin else b""
    if len(data) > _MAX_TEXT_BYTES:
        raise usage_error(f"the text on stdin is over {_MAX_TEXT_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise usage_error(f"the text on stdin is not UTF-8, first at byte {error.start}") from error


def yolo_of(*, yolo: bool, destructive: bool) -> str:
    """What the flags mean, for ``Host.run``; a person who gives them is told on stderr what that is."""
    if destructive and not yolo:
        raise usage_error("--yolo-destructive only goes with --yolo")
    found = "destructive" if destructive else "on" if yolo else "off"
    if found != "off":
        complain(f"YOLO: {_YOLO[found]}; each use is logged, validation and sandbox stay as they are")
    return found


# -- following a session ---


def follow(
    ctx: click.Context,
    overrides: Mapping[str, Any],
    begin: Callable[[Host, Progress], str],
    *,
    version: Callable[[Any], str] | None = None,
) -> int:
    """Begin, tell what happens, print the result once, and give the exit.

    Args:
        ctx: The command.
        overrides: What its flags set.
        begin: Begins the session, or goes on with it, and gives its id.
        version: Of a session that plans a workflow, reads the version out of what it came to.
    """
    from harness_core.kernel.state import FINAL
    from harness_core.shell.ports import make_ports

    from .interrupt import Beginning, interruptible
    from .progress import Progress
    from .session_text import exit_of_session

    progress = Progress(complain, make_ports("threads").clock)
    with open_host(
        ctx, overrides=overrides, terminal=terminal(), on_event=progress.event, on_chunk=progress.chunk
    ) as host:
        for warning in host.config.warnings:
            complain(f"warning: {warning.text()}")
        beginning = Beginning(host)
        document, number = interruptible(
            beginning,
            lambda: host.wait(beginning.begun(lambda: begin(host, progress))),
            lambda number: _forced(ctx, number),
        )
        try:
            emit(ctx, document, lambda one: _result(host, one, version))
        except BrokenPipeError:  # whoever stopped reading has the session's own exit, which says more
            if number is None:
                complain(f"nobody read the result; harness sessions show {document['id'][-8:]} shows it")
        except OSError:
            if number is None:
                raise  # else the terminal that was closed takes no text either; the signal says more
    code = exit_of_session(document)
    return code if number is None or document["status"] in FINAL else 128 + number


def _result(host: Host, document: Mapping[str, Any], version: Callable[[Any], str] | None) -> str:
    from harness_hookspecs.kit.codec import loads

    from .session_text import Beside, result_text, stage_with_context
    from .waiting import below, budget_reached

    items = host.artifacts(document["id"])[-1:] if document["status"] == "completed" else []
    context = stage_with_context(document, lambda: host.events(document["id"]))
    made = [(item, host.artifact(item["ref"])) for item in items]
    planned = version(loads(made[-1][1])) if version is not None and made else None
    beside = Beside(context, budget_reached(host, document), planned, below(host, document))
    return result_text(document, made, beside)


def _forced(ctx: click.Context, number: int) -> None:
    from harness_hookspecs.errors import Cancelled

    from .errors import error_document

    if wants_json(ctx):
        hint = "harness sessions lists it; harness resume goes on with it"
        code = "interrupted" if 128 + number == INTERRUPTED else "terminated"
        write_document(error_document(Cancelled("stopped at once by a second signal", code=code, hint=hint)))
