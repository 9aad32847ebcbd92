"""A group whose bare arguments mean one of its commands: ``harness events S`` beside ``harness events verify S``."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["NounGroup"]


class NounGroup(click.Group):
    """Runs the command ``default`` when the first word is no command of the group."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default's name in front; words that are commands and a request for help stay as they are."""
        words = [word for word in args if word != "--json"]
        first = words[0] if words else ""
        if first in self.commands:
            # --json may stand before the command as well.
            args = [*words, "--json"] if args[0] == "--json" else args
        elif first not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands but the default, which is called by the group's own name."""
        return [name for name in super().list_commands(ctx) if not self.commands[name].hidden]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show how the default is called before the commands."""
        default = self.commands[self.default]
        pieces = " ".join(default.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces)
        if self.list_commands(ctx):
            formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say what the group is for and then what the default does, its arguments included."""
        super().format_help_text(ctx, formatter)
        self.commands[self.default].format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the default and then the commands."""
        default = self.commands[self.default]
        options = [param for param in default.get_params(ctx) if not isinstance(param, click.Argument)]
        records = [record for param in options if (record := param.get_help_record(ctx)) is not None]
        with formatter.section("Options"):
            formatter.write_dl(records)
        self.format_commands(ctx, formatter)
