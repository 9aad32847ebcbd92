"""Version ranges: ``>=0.1,<0.2`` and a version go in, whether the version lies in the range comes out.

The clauses of PEP 440 with plain release numbers, joined by commas; what follows the release of a version
(``.dev1``, ``rc1``, ``+local``) is not looked at. Small, because it is needed before anything else is imported.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness_hookspecs.errors import PluginError

__all__ = ["is_range", "spec_allows"]

_CLAUSE = re.compile(r"\s*(~=|===|==|!=|<=|>=|<|>)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")
_ORDERS = {"==": (0,), "===": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


class _Clause(NamedTuple):
    operator: str
    release: tuple[int, ...]
    prefix: bool  # ends in .*


def is_range(text: str) -> bool:
    """Tell whether a text is a range that ``spec_allows`` understands."""
    return bool(_clauses(text))


def spec_allows(spec: str, version: str) -> bool:
    """Tell whether a version lies in a range.

    Raises:
        PluginError: One of them cannot be read (code ``HP010``).
    """
    clauses, release = _clauses(spec), re.match(r"\d+(?:\.\d+)*", version)
    if not clauses or release is None:
        raise PluginError(f"{spec!r} is not a version range for {version!r}", code="HP010")
    return all(_holds(_numbers(release[0]), clause) for clause in clauses)


def _clauses(text: str) -> list[_Clause]:
    """Read the clauses; empty when any of them is wrong."""
    found = [_CLAUSE.fullmatch(clause) for clause in text.split(",") if clause.strip()]
    clauses = [_Clause(match[1], _numbers(match[2]), bool(match[3])) for match in found if match]
    return clauses if len(clauses) == len(found) and all(map(_is_lawful, clauses)) else []


def _is_lawful(clause: _Clause) -> bool:
    if clause.prefix:
        return clause.operator in {"==", "!="}
    return clause.operator != "~=" or len(clause.release) > 1


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _holds(release: tuple[int, ...], clause: _Clause) -> bool:
    width = max(len(release), len(clause.release))
    left, right = _padded(release, width), _padded(clause.release, width)
    if clause.prefix:
        return (left[: len(clause.release)] == clause.release) is (clause.operator == "==")
    if clause.operator == "~=":
        return left >= right and left[: len(clause.release) - 1] == clause.release[:-1]
    return (left > right) - (left < right) in _ORDERS[clause.operator]


def _padded(release: tuple[int, ...], width: int) -> tuple[int, ...]:
    return release + (0,) * (width - len(release))
