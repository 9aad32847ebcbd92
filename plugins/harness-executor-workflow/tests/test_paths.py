"""Step paths: what is written is read back, and no two ways share a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.plan.paths import MAX_KEY_BYTES, Segment, format_path, parse_path
from harness_hookspecs.errors import ValidationFailed

IDS = st.one_of(st.just("visit"), st.from_regex(r"\A[a-z][a-z0-9_]{0,5}\Z"))
KEYS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=6), st.from_regex(r"\A\d+\Z"))
WAYS = st.lists(st.builds(Segment, IDS, KEYS, st.one_of(st.none(), st.integers(0, 200))), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ([Segment("fetch")], "fetch"),
        ([Segment("audit", "pkg_a"), Segment("scan")], "audit[pkg_a].scan"),
        ([Segment("draft", None, 1)], "draft.visit[1]"),
        ([Segment("audit", "a/b ü", 0), Segment("scan", None, 2)], "audit[a%2Fb%20%C3%BC].visit[0].scan.visit[2]"),
        ([Segment("audit", "")], "audit[]"),
        ([Segment("a"), Segment("visit", "0")], "a.visit[%30]"),
    ],
)
def test_a_way_is_written_and_read(way: list[Segment], text: str) -> None:
    assert format_path(way) == text
    assert parse_path(text) == tuple(way)


@given(WAYS)
def test_any_way_comes_back(way: list[Segment]) -> None:
    assert parse_path(format_path(way)) == tuple(way)


@given(WAYS, WAYS)
def test_different_ways_have_different_texts(one: list[Segment], other: list[Segment]) -> None:
    assert (format_path(one) == format_path(other)) == (one == other)


def test_a_key_has_a_length_that_every_event_of_its_branch_can_bear() -> None:
    longest = "\u00fc" * (MAX_KEY_BYTES // 2)
    assert parse_path(format_path([Segment("a", longest)])) == (Segment("a", longest),)
    for refused in (lambda: format_path([Segment("a", f"{longest}x")]), lambda: parse_path(f"a[{'x' * 257}]")):
        with pytest.raises(ValidationFailed) as caught:
            refused()
        assert caught.value.code == "path.key_too_long" and len(caught.value.message) < 200


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", ".a", "A", "a b", "a[", "a[x", "a[%2f]", "a[%41]", "a[%FF]", "a.visit[01]", "a..b",
     "a[x][y]", "a.visit[0].visit[1]x", "a[\u00fc]", "9a", "a\n"],
)  # fmt: skip
def test_what_nobody_writes_is_not_read(text: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse_path(text)
    assert caught.value.code == "path.syntax"
