"""A key as the environment or a flag spells it in, the config path that it means out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from harness_core.settings.paths import ConfigPath, format_path
from harness_core.settings.problems import nearest
from harness_hookspecs.errors import ConfigError

from .shapes import Shape
from .typing import Typist

__all__ = ["locate"]

Known = Callable[[ConfigPath], Sequence[str]]
"""Gives the keys that other layers have at a path."""


def locate(
    segments: Sequence[str], tops: Mapping[str, Shape], typist: Typist, known: Known, *, folded: bool
) -> tuple[ConfigPath, Shape]:
    """Walk down the schemas by the parts of a key.

    Args:
        segments: The parts as they were written.
        tops: The shape of each top-level key.
        typist: Knows the keys of plugins.
        known: Knows the entries that exist, so that ``MODELS__QWEN_14B`` finds ``qwen-14b``.
        folded: Whether case and punctuation are lost, as in a variable's name.

    Returns:
        The path and what may stand there.

    Raises:
        ConfigError: There is no such key (code ``config.unknown_key``).
    """
    top = _match(segments[0], list(tops), folded)
    if top is None:
        raise ConfigError(
            f'unknown key "{segments[0]}"', code="config.unknown_key", hint=nearest(segments[0].lower(), tops)
        )
    path: ConfigPath = (top,)
    shape = tops[top]
    rest = list(segments[1:])
    while rest:
        names = [*typist.names(shape, path), *known(path)]
        key = _match(rest[0], names, folded)
        taken = 1
        if key is None and _holds_values(shape):
            # The keys of such a mapping may hold dots themselves: bind.worker.code-run.
            key = _match(".".join(rest), names, folded) or ".".join(rest)
            taken = len(rest)
        key = key if key is not None else rest[0].lower() if folded else rest[0]
        found = typist.child(shape, path, key)
        if found is None:
            at = format_path(path)
            raise ConfigError(f'unknown key "{key}" in {at}', code="config.unknown_key", hint=nearest(key, names))
        path, shape, rest = (*path, key), found, rest[taken:]
    return path, shape


def _match(written: str, names: Sequence[str], folded: bool) -> str | None:
    if written in names or not folded:
        return written if written in names else None
    wanted = _fold(written)
    found = list(dict.fromkeys(name for name in names if _fold(name) == wanted))
    return found[0] if len(found) == 1 else None


def _fold(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", text.lower())


def _holds_values(shape: Shape) -> bool:
    """Whether this is a mapping from free names to plain values."""
    free = shape.free()
    if free is None or any("properties" in one.schema for one in shape.alternatives()):
        return False
    return all(one.kinds() and "object" not in one.kinds() for one in free.alternatives())
