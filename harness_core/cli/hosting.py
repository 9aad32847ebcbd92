"""The shared options and a command's flags in, an open ``Host`` out, and what else commands about sessions share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_core.shell.ports_streams import results
from harness_hookspecs.kit.render import escape_line

from .output import complain, options_of

if TYPE_CHECKING:
    from harness_core.shell.config.effective import EffectiveConfig
    from harness_core.shell.host import Host
    from harness_hookspecs.errors import ConfigError
    from harness_hookspecs.provider import Chunk
    from harness_hookspecs.store import StoredEvent

__all__ = [
    "budget_of",
    "model_overrides",
    "open_host",
    "recorded_flags",
    "settings_of",
    "terminal",
    "usage_error",
    "warn_of_config",
]


def open_host(
    ctx: click.Context,
    *,
    overrides: Mapping[str, Any] | None = None,
    terminal: tuple[int, int] | None = None,
    on_event: Callable[[StoredEvent], Any] | None = None,
    on_chunk: Callable[[str, Chunk], Any] | None = None,
) -> Host:
    """Open the host that the shared options ask for; to be used in ``with``.

    Raises:
        ConfigError: The configuration is wrong.
        PluginError: A required plugin does not take part.
        NotFound: The project that is named is no folder.
    """
    from harness_core.shell.host import Host

    options = options_of(ctx)
    return Host.open(
        options.project,
        overrides=overrides,
        options=options,
        terminal=terminal,
        on_event=on_event,
        on_chunk=on_chunk,
    )


def warn_of_config(found: EffectiveConfig) -> None:
    """Say on stderr what can hardly be meant in the configuration, and that what nobody trusts does not count.

    It is for commands whose answer rests on the configuration as it is now; what runs a session refuses instead.
    """
    for warning in found.warnings:
        complain(f"warning: {escape_line(warning.text())}")
    if not found.trusted:
        count = len(found.untrusted_leaves)
        state = "is not trusted" if found.trusted_earlier is None else "was trusted and has changed since"
        complain(f"warning: the project {state}, {count} of its settings do not count; see harness trust --dry-run")


def usage_error(message: str) -> click.UsageError:
    """Make the error of a wrong argument; it names the help of the command that runs."""
    return click.UsageError(message, click.get_current_context(silent=True))


def terminal() -> tuple[int, int] | None:
    """Where a person can be asked: file descriptors to read from and to write to; ``None`` without one.

    People's text goes to stderr, so that is where the question goes; stdout only where stderr leads elsewhere.
    """
    if not sys.stdin or not sys.stdin.isatty():
        return None
    for stream in (sys.stderr, results()):
        if stream and stream.isatty():
            return sys.stdin.fileno(), stream.fileno()
    return None


def settings_of(given: Iterable[str]) -> dict[str, str]:
    """The ``--set KEY=VALUE`` flags by key.

    Raises:
        click.UsageError: One has no ``=`` or no key, or a key stands twice.
    """
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise usage_error(f'--set takes KEY=VALUE, not "{text}"')
        if key in found:
            raise usage_error(f"--set {key} is given twice")
        found[key] = value
    return found


def budget_of(text: str | None) -> dict[str, float] | None:
    """The limits of ``--budget tokens=N,seconds=N,calls=N``.

    Raises:
        click.UsageError: A part is none of them, no number above 0, or stands twice.
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in ("tokens", "seconds", "calls") or name in found:
            raise usage_error(f'--budget takes tokens=N,seconds=N,calls=N, each once, not "{part.strip()}"')
        found[name] = _limit(name, value)
    return found


def _limit(name: str, text: str) -> float:
    try:
        number = float(text) if name == "seconds" else int(text)
    except ValueError:
        number = 0
    if not 0 < number < 2**53:
        kind = "a number" if name == "seconds" else "a whole number"
        raise usage_error(f'--budget {name} must be {kind} above 0, not "{text}"')
    return number


def model_overrides(ctx: click.Context, model: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """What ``--model M`` means: M answers in every stage, whatever stage or persona name otherwise.

    Args:
        ctx: The command.
        model: Its name, ``None`` without the flag.
        settings: The flags of ``--set``, which may name further models.

    Raises:
        ConfigError: The files are wrong, or there is no model of that name (``config.unknown_name``).
    """
    if model is None:
        return {}
    from .config import load

    config = load(ctx, flags=settings, quiet=True)  # the run itself warns
    if model not in config.models.models:
        raise _no_model(config, model)
    stages = config.stages
    named = [name for name, stage in stages.stages.items() if stage.model or _persona_names_one(stage.role, stages)]
    return {"default": model, **{f"stages.{name}.model": model for name in named}}


def _no_model(config: EffectiveConfig, model: str) -> ConfigError:
    from harness_core.settings.problems import Problem, config_error
    from harness_core.shell.model_entries import no_model

    known = ", ".join(sorted(config.models.models))
    hint = f"known: {known}" if known else "; ".join(no_model(config))
    said = f'there is no model "{model}"'
    return config_error([Problem("config.unknown_name", said, where="--model", hint=hint)])


def _persona_names_one(role: str, stages: Any) -> bool:
    from harness_core.settings.personas import persona_of

    return bool(persona_of(role, stages.roles).model)


def recorded_flags(host: Host, session_id: str) -> dict[str, Any]:
    """The flags a session was started with, as overrides: they are the session's own and hold when it is resumed.

    Only those whose key the log still knows; a flag that unset a key left nothing behind.
    """
    from harness_core.kernel.projections.artifacts import artifact_ref
    from harness_core.kernel.projections.event import payload_of
    from harness_core.settings.paths import parse_path
    from harness_core.shell.config.explain import dig
    from harness_hookspecs.kit.codec import loads_trusted

    loaded = list(host.events(session_id, types="config.*"))
    if not loaded:
        return {}
    content_ref = payload_of(loaded[-1])["content_ref"]
    document = loads_trusted(host.artifact(artifact_ref(content_ref)))
    flat = {key: value for file in document["settings"].values() for key, value in file.items()}
    keys = [path for path, origin in document["origins"].items() if origin["layer"] == "flag" and "[" not in path]
    ends = [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]
    return {key: dig(flat, parse_path(key)) for key in ends}
