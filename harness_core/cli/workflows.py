"""``harness workflows``: a plan in a file in, what is wrong with it or its id out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from harness_hookspecs.kit.render import escape_line

from .errors import exit_of_code
from .hosting import open_host, usage_error
from .output import emit, fitted, json_option

__all__ = ["workflows"]

_READ_BYTES: Final = 2 * 1024 * 1024
"""Of a file no more is read: a plan has at most half of it, and the check says so of what is longer."""


@click.group()
def workflows() -> None:
    """Check plans of workflows.

    A plan is a document of steps that a model or a person wrote; a stage whose executor is workflow runs one.
    """


@workflows.command()
@click.argument("file", metavar="FILE|-", type=click.Path(path_type=Path))
@click.option("--sketch", is_flag=True, help="It is the short form for small models: make a plan of it and check that.")
@click.option("--stage", metavar="NAME", help="Where it is to run; else the first stage that runs plans, or the first.")
@json_option
@click.pass_context
def check(ctx: click.Context, file: Path, *, sketch: bool, stage: str | None) -> None:
    """Check a plan (LWIR) for a stage of this project.

    It is held to the project's models and rules and to the tools of the stage. Nothing is run, written or registered.
    With - the plan is read from stdin. All that is wrong of one kind is named at once, with the place in the plan; exit
    14 when there is anything.
    """
    source = _read(file)
    with open_host(ctx) as host:
        document = host.check_plan(source, stage=stage, sketch=sketch)
    emit(ctx, document, _checked)
    ctx.exit(0 if document["ok"] else exit_of_code("validation") or 1)


def _read(file: Path) -> bytes:
    """What the file holds, or as much of it as shows that it is no plan."""
    if str(file) == "-":
        return sys.stdin.buffer.read(_READ_BYTES) if sys.stdin else b""
    try:
        with file.open("rb") as opened:
            return opened.read(_READ_BYTES)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise usage_error(f"{escape_line(str(file))} cannot be read: {said}") from error


def _checked(document: Mapping[str, Any]) -> str:
    return "\n".join(_lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    findings = document["findings"]
    for one in findings:
        step = f" (step {one['step']})" if one["step"] else ""
        yield escape_line(f"{one['severity']}  {one['code']}  {one['path'] or '/'}{step}")
        yield escape_line(f"    {one['message']}")
        if one["hint"]:
            yield escape_line(f"    {one['hint']}")
    errors = sum(one["severity"] == "error" for one in findings)
    if not document["ok"]:
        yield f"refused: {errors} error{'' if errors == 1 else 's'}; nothing was registered"
        return
    most = document["max_step_executions"]
    yield fitted(escape_line(f"{document['plan']['metadata']['name']} is sound: {document['workflow_version_id']}"))
    yield escape_line(f"at most {most} step{'' if most == 1 else 's'} would run in stage {document['stage']}")
