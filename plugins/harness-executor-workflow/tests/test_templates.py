"""Templates: literal parts and expressions, and the value that comes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.plan.templates import Expression, filled, parse, rendered, templates_in
from harness_hookspecs.errors import RuleError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("{{ input.x }}", (Expression("input.x", 3),)),
        ("a {{x}} b {{ y }}", ("a ", Expression("x", 4), " b ", Expression("y", 13))),
        ("{{a}}{{b}}", (Expression("a", 2), Expression("b", 7))),
        ("{{ '}}' }}", (Expression("'}}'", 3),)),
        ('{{ "a\\"}}" }}', (Expression('"a\\"}}"', 3),)),
        ("{{ r'\\' }}x", (Expression("r'\\'", 3), "x")),
        ("{{ '''it's }}''' }}", (Expression("'''it's }}'''", 3),)),
        ("{{ {'a': {'b': 1}} }}", (Expression("{'a': {'b': 1}}", 3),)),
        ("{{ {'a': {'b': 1}}}}", (Expression("{'a': {'b': 1}}", 3),)),
        ("a } }} b { c", ("a } }} b { c",)),
    ],
)
def test_a_text_is_taken_apart(text: str, parts: tuple[Any, ...]) -> None:
    assert parse(text).parts == parts


@pytest.mark.parametrize(
    ("text", "at"), [("a {{ b", 2), ("{{ }}", 0), ("x{{}}", 1), ("{{ 'a }}", 3), ("{{ {'a': 1 }}", 0)]
)
def test_braces_that_are_wrong_are_told_with_their_place(text: str, at: int) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert caught.value.code == "expr.syntax"
    assert caught.value.facts["at"] == at


def test_one_expression_keeps_its_type_and_embedded_ones_become_text() -> None:
    values: dict[str, Any] = {"n": 1.0, "t": "x", "o": {"b": [True, None], "a": 2}, "z": None}
    assert rendered(parse("{{ o }}"), values.__getitem__) is values["o"]
    assert rendered(parse(" {{ n }}"), values.__getitem__) == " 1"
    assert rendered(parse("{{ t }}: {{ o }} {{ z }}"), values.__getitem__) == 'x: {"a":2,"b":[true,null]} null'


def test_every_text_of_a_value_but_no_key_is_filled() -> None:
    value = {"a": ["{{ n }}", "no", {"{{ n }}": "= {{ n }}"}], "b~/": "{{ n }}", "c": 3}
    assert filled(value, lambda _: 7) == {"a": [7, "no", {"{{ n }}": "= 7"}], "b~/": 7, "c": 3}
    assert list(templates_in(value)) == [
        ("/a/0", "{{ n }}"), ("/a/2/{{ n }}", "= {{ n }}"), ("/b~0~1", "{{ n }}"),
    ]  # fmt: skip


@given(st.lists(st.one_of(st.just("{{ x }}"), st.text("ab {'\"}", max_size=5)), max_size=6))
def test_nothing_of_a_text_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        template = parse(text)
    except RuleError:
        return
    if {expression.text for expression in template.expressions} <= {"x"}:
        assert rendered(template, lambda _: "{{ x }}") == text
    assert all(part for part in template.parts)
    assert (template.parts == (text,)) == ("{{" not in text and text != "")
