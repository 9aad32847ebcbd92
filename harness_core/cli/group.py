"""The name of a command in, the command out, its module imported only then; the list of commands imports none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

import click

from harness_core import __version__

from .named import SESSION_IS

__all__ = ["COMMANDS", "LazyGroup", "ReaderGone", "harness"]

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("harness_core.cli.demo:demo", "The main job with a scripted model: no key, no network."),
    "init": ("harness_core.cli.init:init", "Write ./.harness with six commented files."),
    "run": ("harness_core.cli.run:run", "Run one session to its end or to a pause."),
    "resume": ("harness_core.cli.run:resume", "Go on with a session that stopped."),
    "pause": ("harness_core.cli.run:pause", "Stop a session after what is in flight."),
    "cancel": ("harness_core.cli.run:cancel", "End a session as cancelled."),
    "sessions": ("harness_core.cli.sessions:sessions", "List, show, fork, compare and remove sessions."),
    "events": ("harness_core.cli.events:events", "Read the event log."),
    "replay": ("harness_core.cli.replay:replay", "Replay a session without any call."),
    "approvals": ("harness_core.cli.approvals:approvals", "Show and answer what waits for a decision."),
    "policy": ("harness_core.cli.policy:policy", "Try what the policies say."),
    "artifacts": ("harness_core.cli.artifacts:artifacts", "List and read what stages made."),
    "context": ("harness_core.cli.context:context", "Show what a stage's model was given."),
    "prompt": ("harness_core.cli.prompt:prompt", "Show exactly what a model saw."),
    "stages": ("harness_core.cli.stages:stages", "Explain the stages and their rules."),
    "graph": ("harness_core.cli.graph:graph", "Draw the stages, a plan, or what a session did."),
    "transitions": ("harness_core.cli.transitions:transitions", "Show which rules a session took."),
    "workflows": ("harness_core.cli.workflows:workflows", "List, plan, check, run and show workflows."),
    "report": ("harness_core.cli.report:report", "Tokens, time and cost of a session."),
    "config": ("harness_core.cli.config:config", "Check, show and explain the configuration."),
    "trust": ("harness_core.cli.config:trust", "Trust what a project's files set."),
    "plugins": ("harness_core.cli.plugins:plugins", "List, inspect and check plugins."),
    "models": ("harness_core.cli.models:models", "List and probe models."),
    "roles": ("harness_core.cli.roles:roles", "Personas and who answers for them."),
    "tasks": ("harness_core.cli.tasks:tasks", "Coding tasks for runners."),
    "export": ("harness_core.cli.export:export", "Export events, reports and training data."),
    "doctor": ("harness_core.cli.doctor:doctor", "Find out what is wrong with the installation."),
    "db": ("harness_core.cli.db:db", "Look after the store."),
    "completion": ("harness_core.cli.completion:completion", "Completion for a shell."),
}
"""Command to its place and its line of help; a command whose module is not there is not listed."""


class ReaderGone(Exception):
    """Nobody reads what is printed; click would make an exit 1 of a broken pipe, which says that a run failed."""


@contextmanager
def _past_click() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Read the arguments, which prints the help when it is asked for.

        Raises:
            ReaderGone: Nobody reads it.
        """
        with _past_click():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            ReaderGone: Nobody reads what it prints.
        """
        with _past_click():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands that are there, in the order of the table."""
        return [name for name, (place, _) in COMMANDS.items() if _is_there(place.partition(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        place = COMMANDS.get(cmd_name, ("", ""))[0]
        module, _, attribute = place.partition(":")
        if not module:
            return _of_a_surface(ctx, cmd_name)
        if not _is_there(module):
            return None
        found: click.Command = getattr(importlib.import_module(module), attribute)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the table, so that asking for help imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is not there is answered with the nearest name."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from .surfaces import no_command

            raise click.UsageError(no_command(ctx, name, self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)


def _of_a_surface(ctx: click.Context, word: str) -> click.Command | None:
    """The command of a plugin; looked for once a context, since it opens the project."""
    found: dict[str, click.Command | None] = ctx.meta.setdefault(__name__, {})
    if word not in found and not word.startswith("-"):
        from .surfaces import surface_command

        found[word] = surface_command(ctx, word)
    return found.get(word)


def _is_there(module: str) -> bool:
    return find_spec(module) is not None


_HELP: Final = f"""Harness: an orchestration kernel. These options may stand before or after a command.

Every command takes --json and then prints one JSON document; only events prints JSON Lines, one document a line.

{SESSION_IS}.
"""


@click.group(cls=LazyGroup, help=_HELP, context_settings={"help_option_names": ["--help", "-h"]})
@click.version_option(__version__, message="harness %(version)s")
@click.option("--project", metavar="DIR", help="The folder that holds .harness; default: the nearest one upwards.")
@click.option(
    "--no-plugin", metavar="ID", multiple=True, help="Leave a plugin out; also HARNESS_DISABLE_PLUGINS=ID,ID."
)
@click.option("--no-plugins", is_flag=True, help="Leave all plugins out.")
@click.option("--plain", is_flag=True, help="No colour and no redrawing, from plugins too; also NO_COLOR, TERM=dumb.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def harness(**options: Any) -> None:
    """Run one command of those in the table."""
