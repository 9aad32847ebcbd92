"""Gathered items and a budget in, what a model gets and what was left out and why out."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.kernel.context import Item, assemble
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.canonical import canonical


def item(name: str, *, layer: int = 1, tokens: int = 10, pinned: bool = False, text: str | None = None) -> Item:
    said = f"text of {name}" if text is None else text
    return Item(name, "file", name, said, tokens, layer, pinned, {"file": name})


def names(items: Any) -> list[str]:
    return [one.item_id for one in items]


@pytest.mark.req("B-103")
def test_what_does_not_fit_is_dropped_from_the_highest_layer_first_and_says_why() -> None:
    items = [item("archive", layer=4), item("project", layer=3), item("stage", layer=1), item("memory", layer=2)]
    for budget, kept in ((40, 4), (39, 3), (20, 2), (10, 1), (9, 0)):
        pack = assemble(items, budget)
        by_layer = sorted(items, key=lambda one: one.layer)
        assert set(names(pack.included)) == set(names(by_layer[:kept]))
        assert {one.item_id for one, reason in pack.left_out if reason.startswith("budget: 10 tokens")} == set(
            names(by_layer[kept:])
        )
        assert canonical([one.facts() for one in pack.included])  # what the log keeps of it is plain JSON


def test_the_given_order_holds_in_the_text_and_within_a_layer() -> None:
    items = [item("b", layer=3), item("a", layer=1), item("d", layer=3), item("c", layer=1)]
    pack = assemble(items, 30)
    assert names(pack.included) == ["b", "a", "c"]
    assert pack.text == "b:\ntext of b\n\na:\ntext of a\n\nc:\ntext of c"
    assert pack.tokens == 30


def test_an_item_without_a_title_is_its_text_alone() -> None:
    untitled = Item("i", "text", "", "as it is", 1, 1, False, None)
    assert assemble([untitled], 1).text == "as it is"


def test_a_small_item_still_fits_after_a_large_one_did_not() -> None:
    pack = assemble([item("large", tokens=50), item("small", tokens=5)], 10)
    assert (names(pack.included), names(one for one, _ in pack.left_out)) == (["small"], ["large"])


def test_equal_texts_go_in_once_and_empty_ones_not_at_all() -> None:
    items = [item("far", layer=3, text="same"), item("near", layer=1, text="same"), item("none", text="")]
    pack = assemble(items, 100)
    assert names(pack.included) == ["near"]
    assert {one.item_id: reason for one, reason in pack.left_out} == {"far": "duplicate", "none": "empty"}


def test_what_is_pinned_goes_in_before_everything_else() -> None:
    items = [item("near", layer=0), item("pinned", layer=4, pinned=True)]
    assert names(assemble(items, 10).included) == ["pinned"]


def test_pinned_items_that_do_not_fit_are_a_named_error_and_equal_ones_count_once() -> None:
    pinned = [item("a", pinned=True), item("b", pinned=True)]
    with pytest.raises(HarnessError) as caught:
        assemble(pinned, 19)
    assert (caught.value.code, caught.value.facts) == ("context.overflow", {"tokens": 20, "limit": 19})
    twice = [item("a", pinned=True, text="same"), item("b", pinned=True, text="same"), item("c", pinned=True, text="")]
    assert names(assemble(twice, 10).included) == ["a"]


items_of_any_kind = st.lists(
    st.builds(
        lambda layer, tokens, pinned, text: (layer, tokens, pinned, text),
        st.integers(0, 4),
        st.integers(0, 30),
        st.booleans(),
        st.sampled_from(["", "a", "b", "c", "d"]),
    ),
    max_size=8,
)


@given(items_of_any_kind, st.integers(0, 120))
def test_whatever_is_gathered_the_budget_holds_and_nothing_disappears(drawn: list[Any], budget: int) -> None:
    items = [
        Item(f"i{number}", "text", "", text, tokens, layer, pinned, None)
        for number, (layer, tokens, pinned, text) in enumerate(drawn)
    ]
    # Equal texts that cost differently are no case: what a text costs depends on nothing else.
    costs = {one.text: one.tokens for one in items}
    items = [attrs.evolve(one, tokens=costs[one.text]) for one in items]
    if sum(costs[text] for text in {one.text for one in items if one.pinned and one.text}) > budget:
        with pytest.raises(HarnessError, match="must not be dropped"):
            assemble(items, budget)
        return
    pack = assemble(items, budget)
    assert pack.tokens == sum(one.tokens for one in pack.included) <= budget
    assert sorted([*names(pack.included), *names(one for one, _ in pack.left_out)]) == sorted(names(items))
    shown = {one.text for one in pack.included}
    assert all(one.text in shown for one in items if one.pinned and one.text)
    for left, reason in pack.left_out:
        assert reason.startswith("budget") or left.text in {"", *shown}
