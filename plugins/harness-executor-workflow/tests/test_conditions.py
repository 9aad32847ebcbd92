"""Conditions on choices: two that mean the same are the same, and what is too much is given up."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.compiling.diagrams import ALWAYS, NEVER, Condition, Conditions, TooManyConditions

SIZES = (2, 3, 1, 2)
FORMULAS = st.recursive(
    st.tuples(st.just("is"), st.integers(0, 3), st.integers(0, 2)) | st.sampled_from([("always",), ("never",)]),
    lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner),
    max_leaves=12,
)


def built(conditions: Conditions, formula: Any) -> Condition:
    match formula:
        case ("is", choice, outcome):
            return conditions.chosen(choice + 1, SIZES[choice], frozenset({outcome}))
        case ("and", left, right):
            return conditions.both(built(conditions, left), built(conditions, right))
        case ("or", left, right):
            return conditions.any_of(built(conditions, left), built(conditions, right))
        case ("not", inner):
            return conditions.neither(built(conditions, inner))
    return ALWAYS if formula == ("always",) else NEVER


def truth(formula: Any, taken: tuple[int, ...]) -> bool:
    match formula:
        case ("is", choice, outcome):
            return bool(taken[choice] == outcome)
        case ("and", left, right):
            return truth(left, taken) and truth(right, taken)
        case ("or", left, right):
            return truth(left, taken) or truth(right, taken)
        case ("not", inner):
            return not truth(inner, taken)
    return bool(formula == ("always",))


@given(FORMULAS, FORMULAS)
def test_conditions_are_equal_exactly_if_they_mean_the_same(one: Any, other: Any) -> None:
    conditions = Conditions()
    left, right = built(conditions, one), built(conditions, other)
    cases = list(product(*map(range, SIZES)))
    table = [[truth(formula, taken) for taken in cases] for formula in (one, other)]
    assert (left == right) == (table[0] == table[1])
    assert conditions.implies(left, right) == all(not a or b for a, b in zip(*table))


def test_forks_in_a_row_cost_no_more_than_one() -> None:
    conditions = Conditions()
    found = ALWAYS
    for _ in range(200):
        choice = conditions.new_choice()
        sides = [conditions.chosen(choice, 2, frozenset({side})) for side in (0, 1)]
        found = conditions.both(found, conditions.any_of(*sides))
    assert found == ALWAYS


def one_of_many_pairs(count: int) -> Condition:
    """That one of so many pairs of choices holds, where all first ones are asked before all second ones."""
    conditions = Conditions()
    yes = [conditions.chosen(conditions.new_choice(), 2, frozenset({0})) for _ in range(2 * count)]
    found = NEVER
    for one, other in zip(yes[:count], yes[count:]):
        found = conditions.any_of(found, conditions.both(one, other))
    return found


def test_what_depends_on_too_much_is_given_up() -> None:
    assert one_of_many_pairs(8) != NEVER
    with pytest.raises(TooManyConditions):
        one_of_many_pairs(40)
