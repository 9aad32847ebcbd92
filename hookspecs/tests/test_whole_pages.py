"""A stream that lost events is never a shorter one: pages in, events or an error out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.kit.whole_pages import in_order

PAGE = 3
ROWS = list(range(1, 11))


class _Log:
    """Rows of a database that somebody else may change after a page was read."""

    def __init__(self, seqs: Sequence[int], head: int) -> None:
        self.seqs, self.head = list(seqs), head
        self.appended: list[int] = []
        self.pruned_at_page = 0

    def read(self, after: int = 0, last: int = 2**63 - 1) -> list[int]:
        return list(in_order("s", after, last, page=self._page, ends=self._ends, event=lambda _, row: int(row[1])))

    def _page(self, after: int, last: int) -> tuple[list[tuple[None, int]], bool]:
        self.pruned_at_page -= 1
        if self.pruned_at_page == 0:
            self.seqs, self.head = [], 0
        rows = [(None, seq) for seq in self.seqs if after < seq <= last][:PAGE]
        if self.appended and len(rows) < PAGE:
            self.seqs.append(self.appended.pop(0))
            self.head = self.seqs[-1]
        return rows, len(rows) == PAGE

    def _ends(self) -> tuple[int, int | None]:
        return self.head, max(self.seqs, default=None)


@pytest.mark.parametrize("after", [0, 4, 10, 12])
@pytest.mark.parametrize("last", [0, 5, 10, 2**63 - 1])
def test_a_whole_stream_is_read_between_any_two_places(after: int, last: int) -> None:
    assert _Log(ROWS, 10).read(after, last) == [seq for seq in ROWS if after < seq <= last]


@pytest.mark.inv("I-3", "I-14")
@pytest.mark.parametrize(
    ("seqs", "after", "last", "code", "seq"),
    [
        (ROWS[1:], 0, 99, "store.gap", 1),
        (ROWS[:4] + ROWS[5:], 0, 99, "store.gap", 5),
        (ROWS[:4] + ROWS[7:], 4, 6, "store.gap", 5),
        (ROWS[:7], 0, 99, "store.tail_missing", 8),
        (ROWS[:7], 7, 9, "store.tail_missing", 8),
        (ROWS[:6], 0, 99, "store.tail_missing", 7),
        ([*ROWS[:7], 1008, 1009, 1010], 0, 99, "store.gap", 8),
        ([], 0, 99, "store.tail_missing", 1),
        ([], 4, 6, "store.tail_missing", 5),
    ],
)
def test_the_first_event_that_is_missing_is_named(seqs: list[int], after: int, last: int, code: str, seq: int) -> None:
    with pytest.raises(StoreCorrupt) as caught:
        _Log(seqs, 10).read(after, last)
    assert (caught.value.code, caught.value.facts["seq"], caught.value.where) == (code, seq, "s")


def test_what_is_not_asked_for_may_be_missing() -> None:
    assert _Log(ROWS[:4] + ROWS[7:], 10).read(last=4) == ROWS[:4]
    assert _Log(ROWS[:4] + ROWS[7:], 10).read(after=7) == ROWS[7:]


def test_what_is_appended_meanwhile_is_not_missing() -> None:
    log = _Log(ROWS, 10)
    log.appended = [11, 12, 13]
    assert log.read() == [*ROWS, 11, 12, 13]


def test_a_stream_that_was_pruned_has_no_event() -> None:
    assert _Log([], 0).read() == []


@pytest.mark.parametrize("page", [1, 2, 4])
def test_a_stream_that_is_pruned_while_it_is_read_ends(page: int) -> None:
    log = _Log(ROWS, 10)
    log.pruned_at_page = page
    assert log.read() == ROWS[: PAGE * (page - 1)]
