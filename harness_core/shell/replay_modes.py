"""What is asked of a replay in, its mode out, or what does not go with it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from harness_hookspecs.errors import ConfigError

__all__ = ["MODES", "chosen_mode"]

MODES: Final[dict[str, tuple[str, ...]]] = {
    "full": (),
    "partial": ("until", "category"),
    "cursor": ("first", "until"),
    "skip-inference": ("against",),
    "simulate": (),
}
"""The modes there are, each with the options that go with it."""

_NEEDED: Final[dict[str, tuple[str, ...]]] = {"partial": ("until", "category"), "cursor": ("first",)}
"""Options of which a mode needs one: without it, it would be another mode."""


def chosen_mode(mode: str | None, given: Collection[str], written: Callable[[str], str] = str) -> str:
    """The mode that is asked for, or without one the first that takes all that is given.

    Args:
        mode: A mode's name or ``None``.
        given: Names of the options that have a value.
        written: How an option is written where it was given; only errors tell.

    Raises:
        ConfigError: ``replay.mode``: there is no such mode, an option does not go with it, or one is missing.
    """
    if mode is not None and mode not in MODES:
        raise _error(f"there is no replay mode {mode!r}; modes: {', '.join(MODES)}")
    fitting = [name for name, takes in MODES.items() if set(given) <= set(takes)]
    if mode is None and not fitting:
        raise _error(f"no replay mode takes {_listed(given, written, ' together with ')}")
    chosen = fitting[0] if mode is None else mode
    stray = [name for name in given if name not in MODES[chosen]]
    if stray:
        modes = ", ".join(name for name, takes in MODES.items() if stray[0] in takes)
        raise _error(f"{written(stray[0])} does not go with the mode {chosen}, but with {modes}")
    needed = _NEEDED.get(chosen, ())
    if needed and not set(needed) & set(given):
        raise _error(f"the mode {chosen} needs {_listed(needed, written, ' or ')}")
    return chosen


def _listed(names: Collection[str], written: Callable[[str], str], between: str) -> str:
    return between.join(map(written, names))


def _error(message: str) -> ConfigError:
    return ConfigError(message, code="replay.mode")
