from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.expression import MAX_TOKENS
from harness_hookspecs.rules import Rules
from harness_rules_cel import harness_provide_rules
from harness_rules_cel.guard import tokens_of

ENGINE: Rules = harness_provide_rules()[0].build(None, None)
VALUES: dict[str, Any] = {"a": {"b": [1, 2], "s": "x", "t": True}, "n": 3}

WORDS = st.sampled_from(
    "a n b s t x in true false null has size map filter all exists exists_one . . . ( ) ( ) [ ] { } , ? : && || ! - + "
    "* / % == != < > <= >= 0 1 2.5 1u 'x' \"y\" r'\\' '''z''' 'a && b' // = & `".split(" ")
)
SOUP = st.lists(WORDS, max_size=40).map(" ".join)

TRUE, FALSE, ERROR = "n == 3", "n == 4", "a.missing == 1"
LEAVES = st.sampled_from([(TRUE, True), (FALSE, False), (ERROR, None)])
Case = tuple[str, bool | None]


def _both(left: Case, sign: str, right: Case) -> Case:
    value = left[1] if left[1] is None or left[1] is (sign == "||") else right[1]
    return f"({left[0]}) {sign} ({right[0]})", value


def _not(one: Case) -> Case:
    return f"!({one[0]})", None if one[1] is None else not one[1]


def _choice(condition: Case, yes: Case, no: Case) -> Case:
    value = None if condition[1] is None else yes[1] if condition[1] else no[1]
    return f"({condition[0]}) ? ({yes[0]}) : ({no[0]})", value


CASES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(_both, inner, st.sampled_from(["&&", "||"]), inner),
        st.builds(_not, inner),
        st.builds(_choice, inner, inner, inner),
    ),
    max_leaves=10,
)


@pytest.mark.inv("I-36")
@given(SOUP)
@example("a.b.exists(a, a == 1) && n == 3")
@example(".map(a, a)")
@example("a.map(a")
def test_any_words_end_as_a_value_or_as_a_rule_error(text: str) -> None:
    try:
        value = ENGINE.compile(text, roots=("a", "n")).evaluate(VALUES)
    except RuleError as error:
        value = error.code
    assert codec.loads(codec.dumps({"value": value})) == {"value": value}


@given(st.text(max_size=60))
def test_any_text_ends_as_a_value_or_as_a_rule_error(text: str) -> None:
    try:
        ENGINE.compile(text, roots=("a", "n")).evaluate(VALUES)
    except RuleError:
        return


@pytest.mark.req("B-118")
@given(CASES)
def test_evaluation_goes_from_left_to_right_and_keeps_every_error_it_meets(case: Case) -> None:
    text, expected = case
    try:
        program = ENGINE.compile(text, roots=("a", "n"))
    except RuleError as error:
        if error.code in {"expr.too_long", "expr.too_complex"}:
            return
        raise
    if expected is None:
        with pytest.raises(RuleError, match="missing"):
            ENGINE.condition(program, VALUES)
    else:
        assert ENGINE.condition(program, VALUES) is expected


@given(SOUP)
def test_tokens_cover_the_text_in_order(text: str) -> None:
    try:
        tokens = tokens_of(text)
    except RuleError:
        return
    assert len(tokens) <= MAX_TOKENS
    assert all(text[token.at : token.at + len(token.text)] == token.text for token in tokens)
    assert [token.at for token in tokens] == sorted({token.at for token in tokens})
