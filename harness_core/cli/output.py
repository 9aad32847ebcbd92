"""A document and how people read it in, one JSON document or people's text on the right stream out."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import click

from harness_core.shell.ports_streams import keep_stdout_for_results, results

from .options import GlobalOptions

__all__ = [
    "columns",
    "complain",
    "echo",
    "emit",
    "fitted",
    "json_lines_option",
    "json_option",
    "labelled",
    "options_of",
    "say",
    "tabled",
    "wants_json",
    "write_document",
]

_KEY: Final = "harness_core.json"
_USUAL_COLUMNS: Final = 80  # of a terminal that does not say

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Give a command its ``--json``; the command itself need not know of it."""
    return _json_option("Print one JSON document.")(command)


def json_lines_option(command: F) -> F:
    """Give a command its ``--json`` where the result is a stream: a document a line."""
    return _json_option("Print JSON Lines, one document a line.")(command)


def _json_option(said: str) -> Callable[[F], F]:
    def note(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[_KEY] = bool(value) or ctx.meta.get(_KEY, False)

    option = click.option("--json", is_flag=True, expose_value=False, callback=note, help=said)
    return lambda command: option(_with_stdout_kept(command))


def _with_stdout_kept(command: F) -> F:
    """A command of ours prints its result through here; in our own process nothing else reaches stdout meanwhile.

    A help is printed by click instead, so nothing is kept before it is known that none was asked for.
    """

    @functools.wraps(command)
    def kept(*args: Any, **given: Any) -> Any:
        ctx = click.get_current_context()
        if options_of(ctx).own_process and ctx.invoked_subcommand is None:
            keep_stdout_for_results()
        return command(*args, **given)

    return kept  # type: ignore[return-value]


def wants_json(ctx: click.Context) -> bool:
    """Whether a document is wanted."""
    return bool(ctx.meta.get(_KEY, False))


def options_of(ctx: click.Context) -> GlobalOptions:
    """Give the options that hold for the whole program."""
    found = ctx.find_object(GlobalOptions)
    return found if found is not None else GlobalOptions()


def emit(ctx: click.Context, document: Mapping[str, Any], render: Callable[[Mapping[str, Any]], str]) -> None:
    """Print a command's result: once, on stdout.

    Args:
        ctx: The command's context.
        document: The result, with its ``schema``; plain JSON.
        render: Makes people's text of it; called without ``--json`` only.
    """
    if wants_json(ctx):
        write_document(document)
    else:
        text = render(document)
        if text:
            echo(text)


def echo(content: str | bytes, *, end_of_line: bool = True) -> None:
    """Print a result, or a part of one, as it is."""
    click.echo(content, file=results(), nl=end_of_line)


def write_document(document: Mapping[str, Any], *, on_one_line: bool = False) -> None:
    """Print a document in plain ASCII, which any terminal and any pipe can carry, and any strict parser reads.

    Words of the command line may hold bytes that are not UTF-8, and errors repeat them: they are shown escaped.
    """
    indent = None if on_one_line else 2
    text = json.dumps(document, indent=indent, allow_nan=False)
    if "\\ud" in text:  # half of a surrogate pair, or a whole one
        text = json.dumps(_readable(document), indent=indent, allow_nan=False)
    echo(text)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, (list, tuple)) else value


def columns() -> int:
    """Columns of the terminal that results are printed on; 0 when they go to a file or a program, unbroken then."""
    stream = results()
    if not stream or not stream.isatty():
        return 0
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    return _USUAL_COLUMNS


def tabled(head: Sequence[str], rows: Iterable[Sequence[str]], *, optional: Collection[str] = ()) -> str:
    """A table that fits the terminal; ``optional`` columns are left out there when they say nothing in any row."""
    from harness_hookspecs.kit.render import table

    return "\n".join(table(head, rows, columns=columns(), optional=optional))


def labelled(pairs: Iterable[tuple[str, str]], *, indent: int = 0) -> list[str]:
    """Labelled lines that fit the terminal."""
    from harness_hookspecs.kit.render import labels

    room = columns()
    return [" " * indent + line for line in labels(pairs, columns=max(room - indent, 1) if room else 0)]


def fitted(line: str) -> str:
    """One escaped line, broken to fit the terminal."""
    from harness_hookspecs.kit.render import wrap

    room = columns()
    return "\n".join(wrap(line, room)) if room else line


def say(ctx: click.Context, text: str) -> None:
    """Print text for people that is no result: stdout, but stderr when a document is wanted."""
    if wants_json(ctx):
        _to_people(text)
    else:
        echo(text)


def complain(text: str) -> None:
    """Print a warning or an error for people: always stderr; what a foreign file or answer in it could do is shown."""
    from harness_hookspecs.kit.render import escape_for_terminal

    _to_people(escape_for_terminal(text))


def _to_people(text: str) -> None:
    with suppress(OSError):  # a terminal that was closed, a full disk: nobody is left to be told, the work goes on
        click.echo(text, err=True)
