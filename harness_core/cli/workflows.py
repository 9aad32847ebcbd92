"""``harness workflows``: a workflow, a version or a plan in a file in, a session of it or what it is out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.kit.render import escape_line

from .errors import exit_of_code
from .hosting import budget_of, open_host, settings_of, usage_error, warn_of_config
from .noun import NounGroup
from .numbers import Whole, minute
from .output import emit, fitted, json_option, tabled, wants_json
from .plan_file import read_plan
from .run import budget_option, follow, on_ask_option, set_option, yolo_of, yolo_options
from .session_text import short

if TYPE_CHECKING:
    from harness_core.shell.host import Host

    from .progress import Progress

__all__ = ["workflows"]

_INPUT_BYTES: Final = 16 * 1024 * 1024
_SHOWN_SESSIONS: Final = 20
"""Of the sessions that a version ran in so many are shown; its document has all."""


@click.group(cls=NounGroup, default="list")
def workflows() -> None:
    """List, plan, check, run and show workflows.

    A workflow is defined in stages.yaml or by a plugin; a plan is a document of steps that a model or a person wrote
    for it. One that was checked and registered is a version, and runs as often as you like.
    """


@workflows.command("list")
@json_option
@click.pass_context
def list_workflows(ctx: click.Context) -> None:
    """List the workflows of this project and their versions."""
    with open_host(ctx) as host:
        warn_of_config(host.config)
        document = host.workflows()
    emit(ctx, document, _listed)


def _listed(document: Mapping[str, Any]) -> str:
    workflows = document["workflows"]
    defined = [(one["name"], one["source"], one["problem"] or one["description"] or "") for one in workflows]
    versions = [
        (one["workflow_version_id"], one["workflow"], str(one["steps"]), str(len(one["sessions"])))
        for one in document["versions"]
    ]
    parts = [tabled(("workflow", "source", "what it is for"), defined)] if defined else []
    parts += [tabled(("version", "workflow", "steps", "sessions"), versions)] if versions else []
    return "\n\n".join(parts) or "no workflows: stages.yaml defines them under workflows, and plugins may offer some"


@workflows.command()
@click.argument("version")
@click.option("--source", is_flag=True, help="Print the plan alone, in its canonical form.")
@json_option
@click.pass_context
def show(ctx: click.Context, version: str, *, source: bool) -> None:
    """Show a registered plan and where it ran.

    VERSION is its id or the beginning of it.
    """
    from harness_hookspecs.kit.canonical import canonical

    with open_host(ctx) as host:
        document = host.workflow_version(version)
    if source and not wants_json(ctx):
        click.echo(canonical(thaw(document["plan"])).decode())
        return
    emit(ctx, document, _shown)


def _shown(document: Mapping[str, Any]) -> str:
    plan = document["plan"]
    rows = [
        (step["id"], step["uses"], ", ".join(step.get("needs", ())) or "-", _what(step)) for step in plan["steps"]
    ]
    newest = document["sessions"][:_SHOWN_SESSIONS]
    sessions = [(short(one["id"]), minute(one["created_at"]), one["status"]) for one in newest]
    more = len(document["sessions"]) - len(newest)
    return "\n\n".join(
        [
            escape_line(f"{document['workflow']}  {document['workflow_version_id']}"),
            tabled(("step", "uses", "needs", "what"), rows),
            tabled(("session", "created (UTC)", "status"), sessions),
            *([f"and {more} older session{'' if more == 1 else 's'}"] if more else ()),
        ]
    )


def _what(step: Mapping[str, Any]) -> str:
    """In a few words what a step does."""
    said = step["with"]
    if step["uses"] == "decision":
        return f"{len(said['cases'])} cases, else {said['default']}"
    for key in ("tool", "prompt", "items", "event", "language"):
        if key in said:
            return str(said[key])
    return f"{said['durationMs']} ms" if "durationMs" in said else "-"


def _running(command: Callable[..., int]) -> Callable[..., int]:
    """The options of whoever begins a session."""
    given = click.option(
        "--input", "given", metavar="FILE|-", required=True, type=click.Path(path_type=Path), help="The input, as JSON."
    )
    seed = click.option("--seed", type=Whole(0, 2**32 - 1), metavar="N", help="Seed of the replies; else one is drawn.")
    asking = on_ask_option("what run.on_ask says")
    return given(set_option(asking(yolo_options(budget_option(seed(json_option(click.pass_context(command))))))))


@workflows.command()
@click.argument("name")
@_running
def plan(ctx: click.Context, /, name: str, **given: Any) -> int:
    """Plan a workflow for an input; nothing of it runs.

    The version that comes of it is the session's output.

    Exits: 0 registered, 1 not planned, else as for run.
    """
    return _begin(ctx, name, "plan", given)


@workflows.command()
@click.argument("name", metavar="[VERSION|NAME]", required=False)
@click.option("--plan", "file", metavar="FILE|-", type=click.Path(path_type=Path), help="Run a plan in a file.")
@click.option("--accept-drift", is_flag=True, help="Run the version with the tools, models and engines of now.")
@_running
def run(ctx: click.Context, /, name: str | None, file: Path | None, **given: Any) -> int:
    """Run a version, a workflow or a plan on an input.

    NAME is that of a workflow, for which a plan is written first. VERSION is its id or the beginning of it; one whose
    tools, models or engines have changed since is refused, with what has changed. A plan in a file is checked as by
    check, registered, and run. Exits as for run.
    """
    if (name is None) == (file is None):
        raise usage_error("say what runs: a version, the name of a workflow, or --plan FILE, and one of them")
    if name is not None:
        return _begin(ctx, name, "run", given)
    assert file is not None
    if given["accept_drift"]:
        raise usage_error("--accept-drift goes with a version; a plan in a file is checked against what there is")
    if str(file) == str(given["given"]) == "-":
        raise usage_error("stdin is either the plan or the input; put one of them into a file")
    return _begin_plan(ctx, read_plan(file), given)


def _begin_plan(ctx: click.Context, source: bytes, given: Mapping[str, Any]) -> int:
    """Run a plan; of one that is not sound say what is wrong as ``check`` does."""
    settings, value = settings_of(given["settings"]), _input(given["given"])
    with open_host(ctx, overrides=settings) as host:
        document = host.check_plan(source)
    if not document["ok"]:
        emit(ctx, document, _checked)
        return exit_of_code("validation") or 1

    def start(host: Host, _: Progress) -> str:
        return host.start_plan(source, value, on_ask=_on_ask(host, given), **_options(given))

    return follow(ctx, settings, start)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "budget": budget_of(given["budget"]),
        "yolo": yolo_of(yolo=given["yolo"], destructive=given["yolo_destructive"]),
        "seed": given["seed"],
    }


def _on_ask(host: Host, given: Mapping[str, Any]) -> str:
    return str(given["on_ask"] or host.config.harness.run.on_ask)


def _begin(ctx: click.Context, name: str, goal: str, given: Mapping[str, Any]) -> int:
    begin, value = _options(given), _input(given["given"])
    accepts = bool(given.get("accept_drift"))

    def start(host: Host, _: Progress) -> str:
        on_ask = _on_ask(host, given)
        return host.start_workflow(name, value, goal=goal, on_ask=on_ask, accept_drift=accepts, **begin)

    version = itemgetter("workflowVersionId") if goal == "plan" else None
    return follow(ctx, settings_of(given["settings"]), start, version=version)


def _input(file: Path) -> Any:
    said = read_plan(file, _INPUT_BYTES + 1)
    if len(said) > _INPUT_BYTES:
        raise usage_error(f"the input in {escape_line(str(file))} is over {_INPUT_BYTES} bytes")
    try:
        return loads(said)
    except CodecError as error:
        raise usage_error(f"the input in {escape_line(str(file))} is no JSON document: {error.message}") from error


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
    source = read_plan(file)
    with open_host(ctx) as host:
        warn_of_config(host.config)
        document = host.check_plan(source, stage=stage, sketch=sketch)
    emit(ctx, document, _checked)
    ctx.exit(0 if document["ok"] else exit_of_code("validation") or 1)


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
