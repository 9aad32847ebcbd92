"""Which reads are safe: small plans go in, each about one rule; whether every run has what is read comes out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_executor_workflow.compiling.phases import compile_plan
from tests.compiling.there import changed, surroundings

WHOLE = {"type": "integer"}


def say(name: str, *needs: str, read: str = "'x'", **more: Any) -> dict[str, Any]:
    """A step that gives text, and reads something."""
    settings = {"model": "small", "prompt": f"Say {{{{ {read} }}}}"}
    return {"id": name, "uses": "ai.generate", "needs": [*needs], "with": settings, "output": {"mode": "text"}, **more}


def choose(name: str, *needs: str, when: str = "input.ticket_id == 'a'", to: str, default: str, **more: Any) -> Any:
    cases = [{"when": one, "to": to} for one in when.split(" | ")]
    return {"id": name, "uses": "decision", "needs": [*needs], "with": {"cases": cases, "default": default}, **more}


def fan(name: str, *steps: Any, needs: Any = (), **more: Any) -> Any:
    settings = {"items": "{{ [1, 2] }}", "itemKey": "{{ item }}", "maxBranches": 2, "maxConcurrency": 1,
                "failureMode": "all_settled", **more}  # fmt: skip
    return {"id": name, "uses": "parallel", "needs": [*needs], "with": settings, "steps": list(steps)}


def wait(name: str, *needs: str, **settings: Any) -> Any:
    more = {key: settings.pop(key) for key in ("output", "onFailure") if key in settings}
    return {"id": name, "uses": "wait", "needs": [*needs], "with": settings, **more}


RISKY = say("risky", onFailure={"to": "fallback"})
EITHER = "has(steps.risky.output) ? steps.risky.output : steps.fallback.output"
LOOP = [
    say("draft", read="has(steps.judge.last) ? steps.judge.last : ''", maxVisits=3),
    say("judge", "draft", read="steps.draft.last", maxVisits=3),
    choose("route", "judge", when="steps.judge.last == 'ok'", to="done", default="draft", maxVisits=3),
]

SAFE: dict[str, list[Any]] = {
    "a step that is needed": [say("a"), say("b", "a", read="steps.a.output")],
    "a step further up": [say("a"), say("b", "a"), say("c", "b", read="steps.a.output")],
    "the step before a fork, behind the join": [
        say("a"), choose("d", "a", to="l", default="r"), say("l"), say("r"), say("j", "l", "r", read="steps.a.output")],
    "what led to a decision, in its target": [
        say("a"), choose("d", "a", to="l", default="end"), say("l", read="steps.a.output")],
    "the other side behind the colon": [
        choose("d", to="l", default="r"), say("l"), say("r"),
        say("j", "l", "r", read="has(steps.l.output) ? steps.l.output : steps.r.output")],
    "one of three sides": [
        choose("d", to="l", default="e"), choose("e", to="m", default="r", when="input.ticket_id == 'b'"),
        say("l"), say("m"), say("r"), say("j", "l", "m", "r", read=(
            "has(steps.l.output) ? steps.l.output : has(steps.m.output) ? steps.m.output : steps.r.output"))],
    "both sides of one choice in the same target": [
        choose("d", to="l", default="l"), say("l"), say("j", "l", read="steps.l.output")],
    "a join whose one need is never skipped": [
        say("a"), choose("d", to="l", default="end"), say("l"), say("j", "a", "l", read="steps.a.output")],
    "a failure's other way": [RISKY, say("fallback"), say("j", "risky", "fallback", read=EITHER)],
    "the error in the step that it leads to": [
        RISKY, say("fallback", read="steps.risky.error.code"), say("j", "risky", "fallback", read=EITHER)],
    "a failure that ends the run": [say("a", onFailure={"to": "fail"}), say("b", "a", read="steps.a.output")],
    "a step that needs what it is led to by": [
        RISKY, say("fallback", "risky", read="steps.risky.error.message"),
        say("j", "risky", "fallback", read=EITHER)],
    "a loop's step behind the loop": [*LOOP, say("done", read="steps.draft.last + string(size(steps.judge.all))")],
    "the cases before that did not hold": [
        choose("d", to="l", default="end"), say("l"), say("k"),
        choose("e", "l", "k", when="!has(steps.l.output) | steps.l.output == 'a'", to="m", default="end"), say("m")],
    "a step outside of the branches": [say("a"), fan("p", say("i", read="steps.a.output + string(item)"), needs=["a"])],
    "the outputs of branches": [fan("p", say("i")), say("b", "p", read="steps.p.output[0].itemKey")],
    "the output of a branch, which may be null": [
        fan("p", say("i")), choose("d", "p", when="steps.p.output.all(b, b.output == 'x')", to="e", default="end"),
        say("e")],
    "branches in branches": [fan("p", fan("q", say("i", read="item + 1"), items="{{ [item, 2] }}"))],
    "what an event brought": [
        wait("w", event="paid", output={"mode": "object", "schema": {"type": "object", "required": ["sum"],
                                                                     "properties": {"sum": WHOLE}}}),
        say("a", "w", read="steps.w.output.sum")],
    "an event that did not come": [
        wait("w", event="paid", limitMs=5, onFailure={"to": "remind"}), say("remind", read="steps.w.error.code")],
    "a wait in the way": [say("a"), wait("w", "a", durationMs=5), say("b", "w", read="steps.a.output")],
}  # fmt: skip

UNSAFE: dict[str, tuple[str, list[Any]]] = {
    "one side of a choice": ("ref.maybe_unset", [
        choose("d", to="l", default="r"), say("l"), say("r"), say("j", "l", "r", read="steps.l.output")]),
    "a target that may end instead": ("ref.maybe_unset", [
        say("a"), choose("d", to="l", default="end"), say("l"), say("j", "a", "l", read="steps.l.output")]),
    "the wrong side behind the colon": ("ref.maybe_unset", [
        choose("d", to="l", default="r"), say("l"), say("r"),
        say("j", "l", "r", read="has(steps.l.output) ? steps.r.output : steps.l.output")]),
    "the sides of another choice": ("ref.maybe_unset", [
        choose("d", to="l", default="r"), choose("e", to="m", default="n"), say("l"), say("r"), say("m"), say("n"),
        say("j", "l", "r", "m", "n", read="has(steps.l.output) ? 'x' : steps.m.output")]),
    "a step whose failure leads elsewhere": ("ref.maybe_unset", [
        RISKY, say("fallback"), say("j", "risky", "fallback", read="steps.risky.output")]),
    "an error that may not have been": ("ref.maybe_unset", [
        RISKY, say("fallback"), say("j", "risky", "fallback", read="steps.risky.error.code")]),
    "a later step of a loop": ("ref.maybe_unset", [
        say("draft", read="steps.judge.last", maxVisits=3), *LOOP[1:], say("done")]),
    "what an event brought, unlike its promise": ("ref.missing_schema", [
        wait("w", event="paid"), say("a", "w", read="steps.w.output.sum")]),
    "what a pause gives": ("ref.no_such_field", [wait("w", durationMs=5), say("a", "w", read="steps.w.output.sum")]),
    "a step beside": ("ref.undeclared_dependency", [say("a"), say("b", read="steps.a.output")]),
    "a step beside, with a guard": ("ref.undeclared_dependency", [
        say("a"), say("b", read="has(steps.a.output) ? steps.a.output : ''")]),
    "a step behind": ("ref.undeclared_dependency", [say("a", read="steps.b.output"), say("b", "a")]),
    "a step that the branches do not come after": ("ref.undeclared_dependency", [
        say("a"), fan("p", say("i", read="steps.a.output"))]),
    "a branch from outside": ("ref.unknown_step", [fan("p", say("i")), say("b", "p", read="steps.i.output")]),
    "another body": ("ref.unknown_step", [
        fan("p", say("i")), fan("q", say("k", read="steps.i.output"), needs=["p"])]),
    "a side within a branch": ("ref.maybe_unset", [
        fan("p", choose("d", to="l", default="r"), say("l"), say("r"), say("j", "l", "r", read="steps.l.output"))]),
}  # fmt: skip


def codes(steps: list[Any], **more: Any) -> list[str]:
    plan = changed("1", steps=steps, output__value={"summary": "x", "severity": "low"}, **more)
    return [one.code for one in compile_plan(plan, surroundings()).findings]


@pytest.mark.parametrize("steps", SAFE.values(), ids=SAFE)
def test_a_read_that_every_run_has_is_accepted(steps: list[Any]) -> None:
    assert codes(steps) == []


@pytest.mark.parametrize(("code", "steps"), UNSAFE.values(), ids=UNSAFE)
def test_a_read_that_some_run_lacks_is_refused(code: str, steps: list[Any]) -> None:
    assert set(codes(steps)) == {code}


def test_the_last_step_may_read_all_and_must_ask_before() -> None:
    asks = "has(steps.a.output) ? steps.a.output : ''"
    assert codes([say("a"), say("tidy", read=asks)], **{"finally": "tidy"}) == []
    assert codes([say("a"), say("tidy", read="steps.a.output")], **{"finally": "tidy"}) == ["ref.maybe_unset"]
    assert codes([say("a", read="steps.tidy.output"), say("tidy")], **{"finally": "tidy"}) == [
        "ref.undeclared_dependency"
    ]


def test_a_field_that_may_be_absent_is_a_warning_and_no_refusal() -> None:
    plan = changed("2", steps__0__input__threshold="{{ input.threshold }}")
    found = compile_plan(plan, surroundings())
    assert found.ok
    assert [(one.severity, one.code, one.path) for one in found.findings] == [
        ("warning", "ref.maybe_unset", "/steps/0/input/threshold")
    ]


def test_a_target_that_two_choices_lead_to_has_what_both_had_before() -> None:
    steps = [say("a"), choose("d", "a", to="t", default="end"),
             choose("e", "a", to="t", default="end", when="input.ticket_id == 'b'"),
             say("t", read="steps.a.output")]  # fmt: skip
    assert codes(steps) == []
