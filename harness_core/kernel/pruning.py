"""Why sessions stay, and which of them name each other, in; which go together and which stay for another's sake out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

__all__ = ["RELATED", "families", "named_in", "stay"]

RELATED: Final = "related"
"""Why a session stays that could go alone: one that it names, or that names it, stays."""

_IDS: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def named_in(payload: bytes) -> frozenset[str]:
    """Every id in a payload; those of the first events of a log name the sessions that it comes from."""
    return frozenset(found.decode() for found in _IDS.findall(payload))


def families(names: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """Sessions that name each other, directly or through others, in the order of the first of each family.

    Args:
        names: Of each session those that it names; one that is not there any more is nobody's relative.
    """
    near: dict[str, set[str]] = {one: set() for one in names}
    for one, others in names.items():
        for other in others:
            if other in near:
                near[one].add(other)
                near[other].add(one)
    waiting = dict.fromkeys(names)
    while waiting:
        family = {next(iter(waiting))}
        reached = set(family)
        while reached:
            reached = {other for one in reached for other in near[one]} - family
            family |= reached
        yield tuple(one for one in names if one in family)
        waiting = dict.fromkeys(one for one in waiting if one not in family)


def stay(family: Collection[str], reasons: Mapping[str, str]) -> dict[str, str]:
    """Why each of a family stays; empty when all of it may go: a part of it alone would name what is not there.

    Args:
        family: Sessions that name each other.
        reasons: Why a session stays, of each that does so by itself.
    """
    own = {one: reasons[one] for one in family if one in reasons}
    return {one: own.get(one, RELATED) for one in family} if own else {}
