"""Pages of a stream's rows go in, its events come out one by one; one that is missing is an error.

For a store whose rows lie in a database, where they can be lost: from the middle, from the beginning, from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from harness_hookspecs.errors import StoreCorrupt

__all__ = ["in_order", "tail_missing"]

T = TypeVar("T")

_HINT: Final = "harness events verify tells what of it is whole; a copy that was made before may have the rest"


def in_order(
    stream: str,
    after: int,
    last: int,
    *,
    page: Callable[[int, int], tuple[Sequence[Any], bool]],
    ends: Callable[[], tuple[int, int | None]],
    event: Callable[[str, Any], T],
) -> Iterator[T]:
    """Read the events with ``after < seq <= last``, a page at a time.

    Others may append meanwhile, so what the head counts is looked for once more before it is said to be missing. A
    stream that is pruned meanwhile ends: its head counts nothing from then on.

    Args:
        stream: Its name, for errors.
        after: A seq, 0 or more.
        last: A seq, however great.
        page: Reads the rows of the next page, in order, their seq second; and whether more may follow.
        ends: Reads the seq of the head and the greatest seq of a row, ``None`` when there is none, both at once.
        event: Makes an event of the stream's name and a row.

    Raises:
        StoreCorrupt: ``store.gap``, ``store.tail_missing``: the first seq that is missing, after the events before.
    """
    head = 0
    while after < last:
        rows, more = page(after, last)
        for row in rows:
            after += 1
            if row[1] != after:
                raise _missing(stream, after, f"expected seq {after}, found {row[1]}", "store.gap")
            yield event(stream, row)
        if more:
            continue
        counted, (head, greatest) = head, ends()
        if after >= min(last, head):
            return
        if after < min(last, counted):  # it was counted before that page was read
            _raise_missing(stream, after, head, greatest or 0)


def _raise_missing(stream: str, after: int, head: int, greatest: int) -> None:
    if greatest > after:
        raise _missing(stream, after + 1, f"expected seq {after + 1}, found none", "store.gap")
    raise tail_missing(stream, after, head)


def tail_missing(stream: str, after: int, head: int) -> StoreCorrupt:
    """The error about a stream that has no event behind ``after``, though its head counts so many."""
    return _missing(stream, after + 1, f"the log ends at seq {after}, its head says {head}", "store.tail_missing")


def _missing(stream: str, seq: int, text: str, code: str) -> StoreCorrupt:
    return StoreCorrupt(text, code=code, hint=_HINT, where=stream, seq=seq)
