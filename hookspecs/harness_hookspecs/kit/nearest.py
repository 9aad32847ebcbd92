"""A name that nobody knows goes in beside those that are known, the one that was most likely meant comes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["nearest"]

_SHORT: Final = 5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that was most likely meant: first one that differs in capitals only, then the most similar.

    Returns:
        The name as it is known, the same for any order of ``known``; None when nothing is near.
    """
    from difflib import get_close_matches

    names = sorted(set(known))
    folded = {one.lower(): one for one in reversed(names)}
    if name.lower() in folded:
        return folded[name.lower()]
    cutoff = 0.6 if len(name) >= _SHORT else 0.75  # of a few letters two are easily shared by chance
    found = get_close_matches(name, names, n=1, cutoff=cutoff)
    return found[0] if found else None
