"""Whatever is written, compiling it ends: random values, random changes to plans, random expressions and sources."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_executor_workflow.compiling.findings import CODES, place_of
from harness_executor_workflow.compiling.judge import Flaw, Judge
from harness_executor_workflow.compiling.shapes import kinds, kinds_of_value
from harness_executor_workflow.compiling.sources import examine
from harness_executor_workflow.compiling.tree import parse
from harness_hookspecs.compiler import Compilation
from harness_hookspecs.errors import RuleError
from harness_hookspecs.workflow import Workflow
from tests.compiling.there import PLANS, rules, surroundings

COMPILER = WorkflowCompiler()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ODD: list[Any] = [
    ..., None, True, 0, 1, 3, 2.0, 10**7, "", "x", "end", "fail", "fetch", "draft", "T1", [], ["fetch"], ["a", "b"], {},
    {"type": "string"}, {"anyOf": []}, {"type": []}, {"enum": []}, {"properties": {"a": False}}, "{{", "{{ }}",
    "{{ steps.fetch.output }}", "{{ item }}", "{{ input }}", "steps.review.last", "{{ steps.audit.output[0].output }}",
    "visit.index == 0", "{{ has(steps.fetch.error) ? 1 : steps['fetch'].output }}", "scan", "audit",
]  # fmt: skip


def judged(source: Any) -> Compilation:
    """Compile, and hold the answer to what it promises."""
    found = COMPILER.compile(source, surroundings())
    errors = [one for one in found.findings if one.severity == "error"]
    assert found.ok == (not errors)
    assert (found.lock is None) == (found.workflow_version_id is None) == bool(errors)
    assert {one.code for one in found.findings} <= set(CODES)
    assert Compilation.from_json_bytes(found.to_json_bytes()) == found
    return found


def places(value: Any, pointer: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, item in items for place in places(item, (*pointer, key))]
    return [pointer, *inner] if pointer else inner


@given(st.binary(max_size=60) | st.text(max_size=60) | VALUES)
def test_whatever_comes_is_judged(source: Any) -> None:
    assert not judged(source).ok


PIECES = ["[", '{"a":', '[{"steps":[', "]", "\\", '"', "\x00", "{{", "9", "-", "\ud800", "\ufeff"]


@given(st.sampled_from(PIECES), st.integers(1, 300_000))
def test_a_text_of_any_depth_and_length_is_judged(piece: str, count: int) -> None:
    assert not judged(piece * count).ok


def nested(depth: int, name: str | None) -> Any:
    """Lists within lists, or objects within objects."""
    found: Any = None
    for _ in range(depth):
        found = [found] if name is None else {name: found}
    return found


@given(st.integers(1, 20_000), st.sampled_from([None, "steps", "with", "schema", "properties"]), st.data())
def test_a_value_of_any_depth_is_judged_wherever_it_stands(depth: int, name: str | None, data: st.DataObject) -> None:
    plan = copy.deepcopy(PLANS[data.draw(st.sampled_from(sorted(PLANS)))])
    *path, last = data.draw(st.sampled_from(places(plan)))
    place = plan
    for part in path:
        place = place[part]
    place[last] = nested(depth, name)
    judged(plan)
    judged(nested(depth, name))
    COMPILER.expand(nested(depth, name), surroundings())


@given(st.data())
def test_a_plan_with_a_few_places_changed_is_judged(data: st.DataObject) -> None:
    plan = copy.deepcopy(PLANS[data.draw(st.sampled_from(sorted(PLANS)))])
    for _ in range(data.draw(st.integers(1, 4))):
        *path, last = data.draw(st.sampled_from(places(plan)))
        place = plan
        for part in path:
            place = place[part]
        value = data.draw(st.sampled_from(ODD) | VALUES)
        if value is ...:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    found = judged(plan)
    for one in found.findings:
        place = plan
        for part in place_of(one.path)[:-1]:  # the last one may be what is missing
            place = place[part]
    if found.ok:
        assert found.plan == Workflow.from_wire(json.loads(json.dumps(plan)))


ATOMS = st.sampled_from(
    ["input", "input.ticket_id", "steps.fetch.output.body", "1", "2.5", "'a'", "true", "null", "visit.index", "[1, 2]",
     "{'a': 1}", "has(input.a)", "size(input)", "input.list.exists(x, x.y == 1)", "x", "input['a']", "r'\\d'", "0x1F"]
)  # fmt: skip
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda left, sign, right: f"{left} {sign} {right}", inner,
                  st.sampled_from("&& || == != < >= + - * / % in".split()), inner),
        st.builds(lambda a, b, c: f"{a} ? {b} : {c}", inner, inner, inner),
        inner.map(lambda one: f"({one})"), inner.map(lambda one: f"!{one}"), inner.map(lambda one: f"-{one}"),
        inner.map(lambda one: f"({one}).a"), inner.map(lambda one: f"({one})[0]"),
        inner.map(lambda one: f"string({one})"), inner.map(lambda one: f"[1].map(y, {one})"),
    ),
    max_leaves=6,
)  # fmt: skip


@given(EXPRESSIONS)
def test_what_the_engine_can_read_the_compiler_can_read_too(text: str) -> None:
    try:
        rules().compile(text, roots=("input", "steps", "visit", "x"))
    except RuleError:
        return
    parse(text)


ITEMS = [{"name": "b", "size": 2}, {"name": "c"}]
GIVEN: dict[str, Any] = {"title": "a", "items": ITEMS, "count": 3, "share": 0.5, "on": True}
GIVEN_SCHEMA = {"type": "object", "required": list(GIVEN), "properties": {
    "title": {"type": "string"}, "count": {"type": "integer"}, "share": {"type": "number"}, "on": {"type": "boolean"},
    "items": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "size": {"type": "integer"}}}}}}  # fmt: skip
TYPED = st.recursive(
    st.sampled_from(
        ["input.title", "input.count", "input.share", "input.on", "input.items", "input.items[0]",
         "input.items[1].size", "input.items[0].name", "1", "2.0", "'a'", "true", "null", "[1, 2.5]",
         "{'a': input.count}", "has(input.items)"]
    ),
    lambda inner: st.one_of(
        st.builds(lambda left, sign, right: f"({left}) {sign} ({right})", inner,
                  st.sampled_from("&& || == != < >= + - * / % in".split()), inner),
        st.builds(lambda a, b, c: f"({a}) ? ({b}) : ({c})", inner, inner, inner),
        st.builds(lambda of, macro, body: f"({of}).{macro}(x, {body})", inner,
                  st.sampled_from("all exists exists_one filter map".split()),
                  st.sampled_from(["x", "true", "x.name", "x.size > 1", "input.title", "x == 1"])),
        st.builds(lambda call, of: f"{call}({of})", st.sampled_from("! - size string int double bool".split()), inner),
        inner.map(lambda one: f"({one})[0]"), inner.map(lambda one: f"({one}).name"), inner.map(lambda one: f"[{one}]"),
        inner.map(lambda one: f"({one}).startsWith('a')"),
    ),
    max_leaves=6,
)  # fmt: skip


class Given:
    """The scene of a plan without steps."""

    roots: Mapping[str, Any] = {"input": GIVEN_SCHEMA}

    def step(self, step: str) -> Flaw | None:
        return Flaw("ref.unknown_step", step)

    def steps(self) -> list[str]:
        return []

    def accessor(self, step: str, accessor: str) -> Any:
        raise NotImplementedError

    def unset(self, step: str, accessor: str, facts: Any) -> Flaw | None:
        raise NotImplementedError


@given(TYPED)
def test_a_value_is_of_the_type_that_was_known_before(text: str) -> None:
    try:
        value = rules().compile(text, roots=("input",)).evaluate({"input": GIVEN})
    except RuleError:
        return
    judge = Judge(Given())
    shape = judge.shape(parse(text))
    assert kinds_of_value(value) <= kinds(shape), (value, shape)
    if not any(sign in text for sign in ("?", "&&", "||")):  # a part that was not come to may be wrong all the same
        assert all(one.is_warning for one in judge.flaws), judge.flaws


@given(EXPRESSIONS.flatmap(lambda text: st.permutations(list(text)).map("".join)) | st.text(max_size=40))
def test_an_expression_is_read_or_refused(text: str) -> None:
    refused = None
    try:
        parse(text)
    except RuleError as error:
        refused = error.code
    assert refused is None or refused in CODES


@given(st.text(max_size=80) | st.text("()[]{}:,.\n\t '\"abcif el=+-*~lambda#\\", max_size=120))
def test_a_source_is_read_or_refused(source: str) -> None:
    assert all(one["code"] in CODES for one in examine(source, ["a.b"]))
