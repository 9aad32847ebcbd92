"""The keys that somebody has set in, a warning for each that nothing in this version acts on out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .lint import Finding
from .paths import ConfigPath
from .problems import Problem

__all__ = ["UNUSED", "unused"]

UNUSED: Final = frozenset(
    {
        "project",
        "routes",
        "models.*.gpu.residency",
        "workflows.*.bash.languages",
        "workflows.*.bash.timeout_ms",
        "workflows.*.bash.network.allow",
        "workflows.*.bash.network.methods",
        "workflows.*.bash.network.deny_private_ranges",
        "workflows.*.memory.*.path",
        "workflows.*.memory.*.mode",
        "workflows.*.memory.*.purpose",
        "workflows.*.memory.*.store_id",
    }
)
"""Settings whose subject comes later: leased tasks, unloading models, bash and memory in the runs of workflows.
``*`` is any name or index.

Whoever makes one of them count takes it out here; what is neither here nor read fails a test.
"""


def unused(paths: Iterable[ConfigPath]) -> list[Finding]:
    """Warn of what is set and does nothing: a setting that is accepted in silence is taken for one that counts."""
    patterns = [tuple(pattern.split(".")) for pattern in UNUSED]
    return [
        (path, Problem("config.not_used", "set, but not used by this version"))
        for path in paths
        if any(_fits(pattern, path) for pattern in patterns)
    ]


def _fits(pattern: tuple[str, ...], path: ConfigPath) -> bool:
    return len(path) >= len(pattern) and all(
        wanted in ("*", part) for wanted, part in zip(pattern, path, strict=False)
    )
