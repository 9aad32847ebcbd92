"""Names of plugins: what someone wrote goes in, its one normal form (PEP 503) or the nearest known name comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness_hookspecs.kit.nearest import nearest

__all__ = ["did_you_mean", "normalise", "plugin_id_of"]

_RUNS = re.compile(r"[-_.]+")
_OURS = "harness-"


def normalise(name: str) -> str:
    """Give the normal form in which ids, distributions and modules are compared."""
    return _RUNS.sub("-", name.strip()).lower()


def plugin_id_of(distribution: str) -> str:
    """Give the plugin id that a distribution's name calls for: without ``harness-``, where it begins so."""
    return normalise(distribution).removeprefix(_OURS)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Give a hint that names the nearest known name, ``None`` when nothing is near."""
    found = nearest(name, known)
    return f"did you mean {found}?" if found else None
