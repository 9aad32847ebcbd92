"""Problems of a configuration in, each with its place, key and cure, one error that carries them all out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from harness_hookspecs.errors import ConfigError
from harness_hookspecs.kit.nearest import nearest as nearest_name

__all__ = ["Problem", "config_error", "nearest"]


@attrs.frozen
class Problem:
    """One thing that is wrong, or that deserves a warning.

    Attributes:
        code: Stable dotted code, ``config.unknown_key`` for example.
        message: What is wrong, one sentence without a full stop.
        path: The key, ``stages.plan.retry.max_attempts``; empty when the file as a whole is meant.
        where: The place, ``.harness/stages.yaml:4:5``, an environment variable or a flag.
        hint: What to do next.
    """

    code: str
    message: str
    path: str = ""
    where: str | None = None
    hint: str | None = None

    def text(self) -> str:
        """Give the problem as one line: place, key, what is wrong, what to do."""
        head = "  ".join(part for part in (self.where, self.path) if part)
        tail = f"; {self.hint}" if self.hint else ""
        return f"{head}  {self.message}{tail}" if head else f"{self.message}{tail}"

    def document(self) -> dict[str, Any]:
        """Give the problem as plain JSON."""
        return attrs.asdict(self)


def config_error(problems: Sequence[Problem]) -> ConfigError:
    """Make the one error that carries them all, in the order of their places.

    Args:
        problems: At least one problem.

    Returns:
        An error whose code, place and hint are the first problem's and whose fact ``problems`` holds each.
    """
    ordered = _in_order(problems)
    first = ordered[0]
    if len(ordered) == 1:
        message = f"{first.path}: {first.message}" if first.path else first.message
    else:
        lines = "\n".join(f"  {problem.text()}" for problem in ordered)
        message = f"{len(ordered)} problems in the configuration\n{lines}"
    documents = [problem.document() for problem in ordered]
    return ConfigError(message, code=first.code, where=first.where, hint=first.hint, problems=documents)


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by file and line as numbers, each problem once; what has no place comes last."""
    return sorted(dict.fromkeys(problems), key=_place)


def _place(problem: Problem) -> tuple[bool, str, int, int]:
    file, line, column = problem.where or "", 0, 0
    parts = file.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        file, line, column = parts[0], int(parts[1]), int(parts[2])
    return problem.where is None, file, line, column


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Give the hint that names the nearest known name, or None when nothing is near."""
    found = nearest_name(name, known)
    return f'did you mean "{found}"?' if found else None
