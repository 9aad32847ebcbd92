"""What an expression reads, under which guard and of what type: its text goes in, shape and flaws come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness_executor_workflow.compiling.guards import Fact, known_if, path_of
from harness_executor_workflow.compiling.judge import Flaw, Judge
from harness_executor_workflow.compiling.shapes import UNTYPED, kinds
from harness_executor_workflow.compiling.tree import Binary, Choice, Literal, Macro, Name, parse
from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.expression import MAX_CHARACTERS, MAX_TOKENS

TEXT = {"type": "string"}
ITEM = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "size": {"type": "integer"}}}
INPUT = {"type": "object", "required": ["title", "items", "count"], "properties": {
    "title": TEXT, "items": {"type": "array", "items": ITEM}, "count": {"type": "integer"}, "note": TEXT,
    "free": {"type": "object"}, "either": {"anyOf": [TEXT, ITEM]}}}  # fmt: skip


class Scene:
    """Two steps: ``sure`` is always set, ``other`` may not be; ``loose`` is JSON without a schema."""

    roots: Mapping[str, Any] = {"input": INPUT, "visit": {"type": "object", "properties": {"index": {}}}}

    def step(self, step: str) -> Flaw | None:
        return None if step in self.steps() else Flaw("ref.unknown_step", step)

    def steps(self) -> list[str]:
        return ["sure", "other", "loose"]

    def accessor(self, step: str, accessor: str) -> Any:
        if accessor != "output":
            return Flaw("ref.bad_accessor", accessor)
        return UNTYPED if step == "loose" else ITEM

    def unset(self, step: str, accessor: str, facts: tuple[Fact, ...]) -> Flaw | None:
        return Flaw("ref.maybe_unset", step) if step == "other" else None


def judged(text: str) -> tuple[Any, list[str]]:
    judge = Judge(Scene())
    shape = judge.shape(parse(text))
    return shape, [flaw.code + ("?" if flaw.is_warning else "") for flaw in judge.flaws]


def kinds_of(text: str) -> set[str]:
    return set(kinds(judged(text)[0]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input.title", {"string"}),
        ("input.items", {"array"}),
        ("input.items[0].name", {"string"}),
        ("input['title']", {"string"}),
        ("input.count + 1", {"integer"}),
        ("input.count / 2.5", {"integer", "number"}),
        ("input.title + 'x'", {"string"}),
        ("input.items + input.items", {"array"}),
        ("size(input.items) > 0", {"boolean"}),
        ("input.title in ['a']", {"boolean"}),
        ("!true", {"boolean"}),
        ("-input.count", {"integer"}),
        ("true ? 1 : 'a'", {"integer", "string"}),
        ("has(input.note)", {"boolean"}),
        ("input.items.exists(i, i.name == '')", {"boolean"}),
        ("input.items.map(i, i.size)", {"array"}),
        ("input.items.map(i, i.name)[0]", {"string"}),
        ("input.items.filter(i, i.size > 1)[0].name", {"string"}),
        ("string(input.count)", {"string"}),
        ("input.title.startsWith('a')", {"boolean"}),
        ("[1, 2]", {"array"}),
        ("{'a': 1}", {"object"}),
        ("{'a': 1}.a", {"integer"}),
        ("null", {"null"}),
        ("steps.sure.output.size", {"integer"}),
        ("steps['sure'].output.name", {"string"}),
        ("input.either.name", {"string"}),
    ],
)
def test_the_type_of_an_expression_is_known(text: str, expected: set[str]) -> None:
    assert kinds_of(text) == expected


@pytest.mark.parametrize("text", ["input.free.x", "steps.loose.output", "type(1)", "input.free.x + 1"])
def test_what_only_a_run_can_tell_may_be_of_any_type(text: str) -> None:
    assert {"string", "object", "boolean"} <= kinds_of(text)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("steps.other.output", ["ref.maybe_unset"]),
        ("has(steps.other.output) ? steps.other.output.name : ''", []),
        ("!has(steps.other.output) ? '' : steps.other.output.name", []),
        ("has(steps.other.output) && steps.other.output.size > 1", ["ref.maybe_unset?"]),
        ("!has(steps.other.output) || steps.other.output.name == ''", []),
        ("has(steps.other.output) || steps.other.output.name == ''", ["ref.maybe_unset"]),
        ("has(steps.other.output) && input.count > 1 ? steps.other.output.name : ''", []),
        ("has(steps.other.output) || input.count > 1 ? steps.other.output.name : ''", ["ref.maybe_unset"]),
        ("!(!has(steps.other.output) || input.count > 1) ? steps.other.output.name : ''", []),
        ("has(steps.other.output) == true ? steps.other.output.name : ''", ["ref.maybe_unset"]),
        ("has(steps.other.output.name) ? 1 : 2", ["ref.maybe_unset"]),
        ("[1].exists(x, has(steps.other.output)) ? steps.other.output.name : ''", ["ref.maybe_unset"]),
        ("has(input.note) ? input.note : ''", []),
        ("input.note", ["ref.maybe_unset?"]),
        ("input.items.all(i, has(i.size) && i.size > 1)", []),
        ("input.items.all(i, i.size > 1)", ["ref.maybe_unset?"]),
        ("input.titel", ["ref.no_such_field"]),
        ("input.title.length", ["ref.no_such_field"]),
        ("input.items.all(i, i.nome == '')", ["ref.no_such_field"]),
        ("has(input.titel)", ["ref.no_such_field"]),
        ("steps.loose.output.name", ["ref.missing_schema"]),
        ("has(steps.loose.output.name)", ["ref.missing_schema"]),
        ("steps.nobody.output", ["ref.unknown_step"]),
        ("steps.sure.result", ["ref.bad_accessor"]),
        ("steps.sure", ["ref.bad_accessor"]),
        ("steps[input.title].output", ["ref.dynamic_step"]),
        ("steps", ["ref.dynamic_step"]),
        ("sure.output", ["expr.unknown_root"]),
        ("input.items[other].name", ["expr.unknown_root"]),
        ("input.items.map(steps, steps.name)", []),
        ("input.items.map(i, j)", ["expr.unknown_root"]),
        ("has(input)", ["expr.syntax"]),
    ],
)
def test_what_is_wrong_with_a_read_is_found(text: str, codes: list[str]) -> None:
    assert judged(text)[1] == codes


def test_a_variable_of_a_macro_hides_a_root_and_what_is_known_of_it() -> None:
    assert judged("has(input.note) && input.items.all(input, input.note == '')")[1] == ["ref.no_such_field"]


def test_operators_bind_as_in_cel() -> None:
    tree = parse("a || b && c == 1 + 2 * 3 ? d : e ? f : g")
    assert isinstance(tree, Choice) and isinstance(tree.no, Choice)
    assert isinstance(tree.when, Binary) and tree.when.sign == "||"
    both = tree.when.right
    assert isinstance(both, Binary) and both.sign == "&&"
    equal = both.right
    assert isinstance(equal, Binary) and equal.sign == "=="
    summed = equal.right
    assert isinstance(summed, Binary) and summed.sign == "+" and isinstance(summed.right, Binary)


def test_a_macro_is_told_from_a_function() -> None:
    tree = parse("a.map(x, x.y > 1, x)")
    assert isinstance(tree, Macro) and tree.variable == "x" and len(tree.body) == 2


@pytest.mark.parametrize(
    ("text", "value", "known"),
    [("'a'", "a", True), ('"""b"""', "b", True), (r"'a\n'", r"a\n", False), (r"r'a\d'", r"a\d", True),
     ("0x10", 16, True), ("2u", 2, True), ("1.5e3", 1500.0, True), ("true", True, True)],
)  # fmt: skip
def test_a_constant_has_its_value_where_it_is_plain(text: str, value: Any, known: bool) -> None:
    tree = parse(text)
    assert isinstance(tree, Literal)
    assert (tree.value, tree.known) == (value, known)


def test_a_path_is_a_root_with_constant_names() -> None:
    assert path_of(parse("steps['a'].output.b")) == ("steps", "a", "output", "b")
    assert path_of(parse("steps[x].output")) is None
    assert path_of(parse("f(x).y")) is None
    assert parse("x") == Name("x", 0)


def test_what_follows_from_a_condition_that_holds_or_not() -> None:
    tree = parse("has(a.b) && !(has(c.d) || e)")
    assert list(known_if(tree, True)) == [Fact(("a", "b"), True), Fact(("c", "d"), False)]
    assert list(known_if(tree, False)) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "expr.syntax"),
        ("a b", "expr.syntax"),
        ("a.", "expr.syntax"),
        ("a.(b)", "expr.syntax"),
        ("(a", "expr.syntax"),
        ("a)", "expr.syntax"),
        ("a = 1", "expr.syntax"),
        ("a & b", "expr.syntax"),
        ("a ? b", "expr.syntax"),
        ("'a", "expr.syntax"),
        ("b'a'", "expr.syntax"),
        ("Message{a: 1}", "expr.syntax"),
        ("a.map(1, 2)", "expr.syntax"),
        ("a.map(b)", "expr.syntax"),
        ("{'a' 1}", "expr.syntax"),
        ("x" * (MAX_CHARACTERS + 1), "expr.too_long"),
        ("+".join(["1"] * MAX_TOKENS), "expr.too_long"),
        ("(" * 17 + "1" + ")" * 17, "expr.too_complex"),
        ("----1", "expr.too_complex"),
        ("a.map(b, b.map(c, c.map(d, d)))", "expr.too_many_macros"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(text: str, code: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert caught.value.code == code


def test_a_refusal_points_at_the_place() -> None:
    with pytest.raises(RuleError) as caught:
        parse("visit.index = 2")
    assert str(caught.value).splitlines()[1:] == ["  visit.index = 2", "              ^"]
    assert caught.value.hint == "compare with =="
