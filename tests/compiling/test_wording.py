"""What is told of a plan or a sketch that has not its form: plain English with a place, whatever was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_executor_workflow.compiling.wording import KINDS, SENTENCES
from tests.compiling.there import PLANS, changed, surroundings

COMPILER = WorkflowCompiler()
JARGON = ("Input should", "Field required", "Extra inputs", "Unable to", "valid ", "validation", "discriminator")
SAY = {"id": "say", "uses": "ai.generate", "prompt": "Say it."}

TOLD: list[tuple[dict[str, Any], str, str]] = [
    ({"metadata__name": "Xy"}, "/metadata/name",
     "name should be a lower-case letter, then lower-case letters, digits, dots, underscores and hyphens."),
    ({"metadata__name": ...}, "/metadata/name", "name is missing."),
    ({"surprise": 1}, "/surprise", "surprise does not belong here."),
    ({"kind": "Plan"}, "/kind", "kind should be Workflow."),
    ({"input__schema": 5}, "/input/schema", "schema should be true or false or an object."),
    ({"limits": {"maxStepExecutions": 0}}, "/limits/maxStepExecutions", "maxStepExecutions should be at least 1."),
    ({"limits": {"maxStepExecutions": 10**7}}, "/limits/maxStepExecutions",
     "maxStepExecutions should be at most 1000000."),
    ({"limits": {"maxTokens": 1.5}}, "/limits/maxTokens", "maxTokens should be a whole number."),
    ({"permissions__models": "small"}, "/permissions/models", "models should be a list."),
    ({"permissions__models": [5]}, "/permissions/models/0", "Item 0 should be text."),
    ({"permissions__models": ["small", "small"]}, "/permissions/models",
     "The entries should be different from each other."),
    ({"steps": []}, "/steps", "steps should not be empty."),
    ({"steps__0__uses": "tool"}, "/steps/0",
     "uses should be one of ai.generate, code.run, tool.call, decision, parallel, wait."),
    ({"steps__0__uses": ...}, "/steps/0", "uses is missing; it says which kind of step this is."),
    ({"steps__0__sensitive": "yes"}, "/steps/0/sensitive", "sensitive should be true or false."),
    ({"steps__0__id": "a-b"}, "/steps/0/id",
     "id should be a lower-case letter, then lower-case letters, digits and underscores, at most 64."),
    ({"steps__0__retry": {"maxAttempts": 2, "delayMs": 1, "jitter": "x"}}, "/steps/0/retry/jitter",
     "jitter should be a number."),
    ({"steps__1__output": {"mode": "choice", "values": ["a"]}}, "/steps/1/output/values",
     "values should have at least 2 items."),
]  # fmt: skip


@pytest.mark.parametrize(("change", "path", "message"), TOLD)
def test_a_flaw_of_the_form_is_told_in_plain_words_at_its_place(
    change: dict[str, Any], path: str, message: str
) -> None:
    found = COMPILER.compile(changed("1", **change), surroundings()).findings
    assert [(one.code, one.path, one.message) for one in found] == [("schema.invalid", path, message)]


def test_a_sketch_is_spoken_of_in_the_same_way() -> None:
    [one, other] = COMPILER.expand({"steps": [{**SAY, "prompt": ""}, {**SAY, "more": 1}]}, surroundings()).findings
    assert (one.code, one.path, one.message) == ("sketch.invalid", "/steps/0/prompt", "prompt should not be empty.")
    assert (other.path, other.message, other.hint) == ("/steps/1/more", "more does not belong here.", "leave it out")
    [whole] = COMPILER.expand([], surroundings()).findings
    assert (whole.path, whole.message) == ("", "The sketch should be an object.")


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(inner for key, item in items for inner in places(item, (*at, key)))]


def with_another(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    if not at:
        return other
    made: Any = value.copy()
    made[at[0]] = with_another(value[at[0]], at[1:], other)
    return made


OTHERS = st.sampled_from([None, True, -1, 0, 2**53, 1.5, "", "x", "X" * 3000, [], ["a", "a"], [None], {}, {"x": 1}])


@given(st.sampled_from(sorted(PLANS)), st.data())
def test_whatever_is_put_in_any_place_of_a_plan_is_told_without_jargon(name: str, data: st.DataObject) -> None:
    plan = PLANS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        plan = with_another(plan, data.draw(st.sampled_from(places(plan))), data.draw(OTHERS))
    for one in COMPILER.compile(plan, surroundings()).findings:
        if one.code == "schema.invalid":
            assert not one.message.startswith(JARGON) and "{" not in one.message, one.message
            assert one.message.endswith(".") and "  " not in one.message


def test_every_flaw_has_one_way_to_be_told() -> None:
    assert not KINDS.keys() & SENTENCES.keys()
