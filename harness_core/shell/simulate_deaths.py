"""What of a role call was lost or begun again in, where its process must have died for that out.

Nothing in a record says it, but much of it could not have been written otherwise: who makes a call that may not happen
twice lives until its end, and what became of a call that was lost asks somebody else than who made it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

__all__ = ["deaths"]


def deaths(spans: Iterable[tuple[int, int]], lives: Collection[tuple[int, int]]) -> frozenset[int]:
    """Say right behind which events a process died: as late as may be, and as seldom.

    Args:
        spans: A process died in each: not before the first seq had happened, and before the second.
        lives: None died in any of these: from the intent of a call to the end that the same process wrote.
    """
    found: set[int] = set()
    for first, before in sorted(spans, key=lambda span: span[1]):
        if any(first <= seq < before for seq in found):
            continue
        seq, inside = before, [before]
        while inside:
            seq = min(inside) - 1
            inside = [start for start, end in lives if start <= seq < end]
        if seq >= first:
            found.add(seq)
    return frozenset(found)
