"""The arguments as typed in, the options that every command shares and the arguments without them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["GlobalOptions", "UsageError", "is_json", "split_globals"]

_SWITCHES: Final = {"--no-plugins": "no_plugins", "--plain": "plain", "--debug": "debug"}
_VALUED: Final = {"--project": "project", "--no-plugin": "no_plugin"}
_VARIABLE: Final = "HARNESS_DISABLE_PLUGINS"


class UsageError(Exception):
    """The arguments cannot be understood; becomes exit 2."""


class GlobalOptions(NamedTuple):  # no attrs: half of what `plugins list` may take would go into its import
    """What is said for the whole program, before or after the command.

    Attributes:
        project: The folder that holds ``.harness``; None looks for it from the working folder upwards.
        disabled: Plugins left out, each with who says so: ``--no-plugin`` or the environment variable.
        no_plugins: No plugin at all takes part.
        plain: No colour, no redrawing, no boxes.
        debug: Tracebacks are shown.
        own_process: The command is all that the process is for: its standard output is for the result alone.
    """

    project: str | None = None
    disabled: tuple[tuple[str, str], ...] = ()
    no_plugins: bool = False
    plain: bool = False
    debug: bool = False
    own_process: bool = False


def is_json(argv: Sequence[str]) -> bool:
    """Whether a document is wanted; known before the arguments are understood, for the errors in them."""
    return "--json" in _before_dashes(argv)


def _before_dashes(argv: Sequence[str]) -> Sequence[str]:
    return argv[: argv.index("--")] if "--" in argv else argv


def split_globals(argv: Sequence[str], env: Mapping[str, str]) -> tuple[GlobalOptions, list[str]]:
    """Take the shared options out, wherever they stand before a ``--``.

    Raises:
        UsageError: An option lacks its value.
    """
    head = list(_before_dashes(argv))
    rest: list[str] = []
    found: dict[str, object] = {"plain": _is_plain(env)}
    disabled = [(name.strip(), _VARIABLE) for name in env.get(_VARIABLE, "").split(",") if name.strip()]
    while head:
        word = head.pop(0)
        flag, equals, value = word.partition("=")
        if word in _SWITCHES:
            found[_SWITCHES[word]] = True
        elif flag in _VALUED:
            text = value if equals else _next(head, flag)
            if flag == "--no-plugin":
                disabled.append((text, flag))
            else:
                found["project"] = text
        else:
            rest.append(word)
    options = GlobalOptions(disabled=tuple(disabled), **found)  # type: ignore[arg-type]
    return options, [*rest, *argv[len(_before_dashes(argv)) :]]


def _next(head: list[str], flag: str) -> str:
    if not head:
        raise UsageError(f"{flag} needs a value")
    return head.pop(0)


def _is_plain(env: Mapping[str, str]) -> bool:
    return bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
