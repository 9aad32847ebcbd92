"""Every code: a sample plan with one change goes in, and is refused with the code that is meant, at its place."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_executor_workflow.compiling.findings import CODES
from harness_hookspecs.errors import RuleError
from harness_hookspecs.workflow import Limits, Permissions
from harness_rules_cel.rules import CelRules
from tests.compiling.there import PLANS, changed, definition, surroundings

DEEP_BRACKETS = "{{ " + "(" * 17 + "1" + ")" * 17 + " }}"
MACROS = "{{ [1].all(a, a == 1) && [1].all(b, b == 1) && [1].all(c, c == 1) }}"
LONG = "{{ " + " + ".join(["1"] * 400) + " }}"
WORDS = "{{ " + "+".join(["1"] * 70) + " }}"
JSON = {"mode": "json"}
ANSWER = {"mode": "text"}
PROMPT = {"model": "small", "prompt": "Say it."}
INNER = {"id": "inner", "uses": "ai.generate", "with": PROMPT, "output": ANSWER}
MAIN = "async def main(input, tools):\n    return "


def parallel(name: str, *steps: Any) -> dict[str, Any]:
    settings = {"items": "{{ [1, 2] }}", "itemKey": "{{ item }}", "maxBranches": 2, "maxConcurrency": 1}
    return {"id": name, "uses": "parallel", "with": {**settings, "failureMode": "fail_fast"}, "steps": list(steps)}


def plan_of(**places: Any) -> Any:
    return changed(places.pop("plan"), **places)


class OddRules(CelRules):
    """An engine with an opinion of its own."""

    def compile(self, text: str, *, roots: Any) -> Any:
        if "ticket_id" in text:
            raise RuleError("No tickets here.", code="odd.refusal")
        return super().compile(text, roots=roots)


CEILING = {"permissions": Permissions(models=("judge",), tools=("files.write",), max_tier="T1")}
NARROW = {"limits": Limits(max_step_executions=10, max_tokens=5)}
FOR_ANOTHER = {"definition": definition(PLANS["1"])}

FEWER_MODELS = {"permissions": Permissions(models=("judge",), tools=("tickets.get",))}
CHOICE = {"id": "choice", "uses": "decision", "with": {"cases": [{"when": "true", "to": "end"}], "default": "end"}}

Variant = tuple[str, dict[str, Any], str]
VARIANTS: list[Variant] = [
    ("schema.invalid", {"plan": "1", "steps__0__with__surprise": 1}, "/steps/0/with/surprise"),
    ("schema.invalid", {"plan": "1", "apiVersion": ...}, "/apiVersion"),
    ("schema.invalid", {"plan": "1", "steps__0__max_visits": 2}, "/steps/0/max_visits"),
    ("schema.invalid", {"plan": "1", "steps__0__retry__jitter": 0.5}, "/steps/0/retry"),
    ("schema.invalid", {"plan": "1", "steps__0__retry__delayMs": 0}, "/steps/0/retry/delayMs"),
    ("schema.invalid", {"plan": "1", "steps__1": {"id": "w", "uses": "wait", "with": {}}}, "/steps/1/with"),
    ("schema.invalid", {"plan": "1", "steps__0__output__schema__properties__body__type": "text"},
     "/steps/0/output/schema/properties/body/type"),
    ("schema.unsupported_key", {"plan": "1", "steps__0__output__schema__properties__body__format": "date"},
     "/steps/0/output/schema/properties/body/format"),
    ("schema.unsupported_key", {"plan": "2", "output__schema__items__$ref": "#"}, "/output/schema/items/$ref"),
    ("step.duplicate_id", {"plan": "1", "steps__1__id": "fetch"}, "/steps/1/id"),
    ("step.duplicate_id", {"plan": "4", "steps__0__steps__0__id": "quick"}, "/steps/3/id"),
    ("step.missing_dependency", {"plan": "1", "steps__1__needs": ["fetsh"]}, "/steps/1/needs/0"),
    ("step.missing_dependency", {"plan": "4", "steps__4__needs": ["deep", "scan"]}, "/steps/4/needs/1"),
    ("decision.target_not_in_scope", {"plan": "3", "steps__2__with__default": "drafft"}, "/steps/2/with/default"),
    ("decision.target_not_in_scope", {"plan": "4", "steps__1__with__cases__0__to": "scan"},
     "/steps/1/with/cases/0/to"),
    ("decision.target_not_in_scope", {"plan": "1", "steps__0__onFailure": {"to": "nobody"}}, "/steps/0/onFailure/to"),
    ("lwir.cycle_without_decision", {"plan": "1", "steps__0__needs": ["summarise"]}, "/steps/0"),
    ("lwir.cycle_without_decision", {"plan": "3", "steps__0__needs": ["review"]}, "/steps/0"),
    ("lwir.cycle_without_decision", {"plan": "1", "steps__1__onFailure": {"to": "fetch"}}, "/steps/0"),
    ("lwir.cycle_without_decision", {"plan": "4", "steps__0__needs": ["triage"]}, "/steps/0"),
    ("lwir.cycle_step_single_visit", {"plan": "3", "steps__1__maxVisits": 1}, "/steps/1"),
    ("finally.unknown_step", {"plan": "1", "finally": "summarize"}, "/finally"),
    ("finally.unknown_step", {"plan": "4", "finally": "scan"}, "/finally"),
    ("finally.not_apart", {"plan": "1", "finally": "summarise"}, "/steps/1/needs/0"),
    ("finally.not_apart", {"plan": "4", "finally": "quick"}, "/steps/1/with/default"),
    ("finally.decision", {"plan": "4", "finally": "triage"}, "/steps/1/uses"),
    ("finally.decision", {"plan": "1", "steps__more": CHOICE, "finally": "choice"}, "/steps/2/uses"),
    ("step.unreachable", {"plan": "4", "steps__3__needs": ["deep"]}, "/steps/3"),
    ("step.unreachable", {"plan": "4", "steps__3__needs": ["deep"], "steps__4": INNER, "output__value": "done"},
     "/steps/3"),
    ("output.maybe_unset", {"plan": "4", "output__value": "{{ steps.deep.output }}"}, "/output/value"),
    ("output.maybe_unset", {"plan": "1", "steps__1__onFailure": {"to": "end"}}, "/output/value/summary"),
    ("output.maybe_unset", {"plan": "1", "steps__more": INNER, "finally": "inner", "output__value":
     {"summary": "{{ steps.inner.output }}", "severity": "low"}}, "/output/value/summary"),
    ("expr.syntax", {"plan": "3", "steps__2__with__cases__0__when": "visit.index = 2"}, "/steps/2/with/cases/0/when"),
    ("expr.syntax", {"plan": "3", "steps__2__with__cases__0__when": "{{ visit.index == 2 }}"},
     "/steps/2/with/cases/0/when"),
    ("expr.syntax", {"plan": "1", "steps__1__with__prompt": "Say {{ input.ticket_id"}, "/steps/1/with/prompt"),
    ("expr.syntax", {"plan": "1", "steps__1__with__prompt": "Say {{ nobody(1) }}"}, "/steps/1/with/prompt"),
    ("expr.syntax", {"plan": "1", "steps__1__with__prompt": "{{ has(input) ? 1 : 2 }}"}, "/steps/1/with/prompt"),
    ("expr.too_long", {"plan": "1", "steps__1__with__prompt": LONG}, "/steps/1/with/prompt"),
    ("expr.too_long", {"plan": "1", "steps__1__with__system": WORDS}, "/steps/1/with/system"),
    ("expr.too_complex", {"plan": "1", "steps__1__with__prompt": DEEP_BRACKETS}, "/steps/1/with/prompt"),
    ("expr.too_complex", {"plan": "1", "steps__1__with__prompt": "{{ !!!!true }}"}, "/steps/1/with/prompt"),
    ("expr.too_many_macros", {"plan": "1", "steps__1__with__prompt": MACROS}, "/steps/1/with/prompt"),
    ("expr.unknown_root", {"plan": "1", "steps__0__with__args__id": "{{ inputs.ticket_id }}"},
     "/steps/0/with/args/id"),
    ("expr.unknown_root", {"plan": "1", "steps__1__with__prompt": "{{ item }}"}, "/steps/1/with/prompt"),
    ("expr.unknown_root", {"plan": "1", "output__value__summary": "{{ visit.index }}"}, "/output/value/summary"),
    ("expr.not_boolean", {"plan": "3", "steps__2__with__cases__1__when": "visit.index"}, "/steps/2/with/cases/1/when"),
    ("expr.not_boolean", {"plan": "3", "steps__2__with__cases__0__when": "steps.review.last.feedback"},
     "/steps/2/with/cases/0/when"),
    ("ref.dynamic_step", {"plan": "1", "steps__1__with__prompt": "{{ steps[input.ticket_id].output }}"},
     "/steps/1/with/prompt"),
    ("ref.dynamic_step", {"plan": "1", "steps__1__with__prompt": "{{ size(steps) }}"}, "/steps/1/with/prompt"),
    ("ref.unknown_step", {"plan": "1", "steps__1__with__prompt": "{{ steps.fetsh.output }}"}, "/steps/1/with/prompt"),
    ("ref.unknown_step", {"plan": "4", "steps__4__with__prompt": "{{ steps.scan.output }}"}, "/steps/4/with/prompt"),
    ("ref.bad_accessor", {"plan": "1", "steps__1__with__prompt": "{{ steps.fetch.result }}"}, "/steps/1/with/prompt"),
    ("ref.bad_accessor", {"plan": "1", "steps__1__with__prompt": "{{ steps.fetch.last }}"}, "/steps/1/with/prompt"),
    ("ref.bad_accessor", {"plan": "1", "steps__1__with__prompt": "{{ has(steps.fetch.error) ? 1 : 2 }}"},
     "/steps/1/with/prompt"),
    ("ref.bad_accessor", {"plan": "1", "steps__1__with__prompt": "{{ steps.fetch }}"}, "/steps/1/with/prompt"),
    ("ref.ambiguous_multi_visit", {"plan": "3", "steps__3__with__args__text": "{{ steps.draft.output }}"},
     "/steps/3/with/args/text"),
    ("ref.undeclared_dependency", {"plan": "1", "steps__1__needs": ...}, "/steps/1/with/prompt"),
    ("ref.undeclared_dependency", {"plan": "1", "steps__1__with__prompt": "{{ steps.summarise.output }}"},
     "/steps/1/with/prompt"),
    ("ref.undeclared_dependency", {"plan": "4", "steps__0__steps__1__with__prompt": "{{ steps.audit.output }}"},
     "/steps/0/steps/1/with/prompt"),
    ("ref.no_such_field", {"plan": "1", "steps__1__with__prompt": "{{ steps.fetch.output.text }}"},
     "/steps/1/with/prompt"),
    ("ref.no_such_field", {"plan": "1", "steps__1__with__prompt": "{{ input.ticket }}"}, "/steps/1/with/prompt"),
    ("ref.no_such_field", {"plan": "3", "steps__2__with__cases__1__when": "visit.number >= 2"},
     "/steps/2/with/cases/1/when"),
    ("ref.no_such_field", {"plan": "4", "steps__1__with__cases__0__when": "steps.audit.output.all(b, b.state == '')"},
     "/steps/1/with/cases/0/when"),
    ("ref.no_such_field", {"plan": "4", "steps__0__with__itemKey": "{{ item.title }}"}, "/steps/0/with/itemKey"),
    ("ref.missing_schema", {"plan": "1", "steps__0__output": JSON}, "/steps/1/with/prompt"),
    ("ref.maybe_unset", {"plan": "4", "steps__4__with__prompt": "{{ steps.deep.output }}"}, "/steps/4/with/prompt"),
    ("ref.maybe_unset", {"plan": "3", "steps__0__with__prompt": "{{ steps.review.last.feedback }}"},
     "/steps/0/with/prompt"),
    ("ref.decision_has_no_output", {"plan": "4", "steps__4__with__prompt": "{{ steps.triage.output }}"},
     "/steps/4/with/prompt"),
    ("bind.unknown_model", {"plan": "1", "steps__1__with__model": "smal"}, "/steps/1/with/model"),
    ("bind.unknown_model", {"plan": "1", "steps__1__with__model": "coder"}, "/steps/1/with/model"),
    ("bind.unknown_model", {"plan": "2", "steps__0__onFailure__fixer__model": "nobody"},
     "/steps/0/onFailure/fixer/model"),
    ("bind.tool_not_permitted", {"plan": "1", "permissions__tools": []}, "/steps/0/with/tool"),
    ("bind.tool_not_permitted", {"plan": "1", "steps__1__with__tools": ["repo.scan"]}, "/steps/1/with/tools/0"),
    ("bind.tool_missing", {"plan": "1", "steps__0__with__tool": "ticket.get"}, "/steps/0/with/tool"),
    ("bind.tool_missing", {"plan": "1", "permissions__tools": ["tickets.get", "nothing"]}, "/permissions/tools/1"),
    ("bind.tier_exceeded", {"plan": "3", "permissions__maxTier": "T1"}, "/steps/3/with/tool"),
    ("bind.missing_arg", {"plan": "1", "steps__0__with__args": ...}, "/steps/0/with/args"),
    ("bind.unknown_arg", {"plan": "1", "steps__0__with__args__ticket": "x"}, "/steps/0/with/args/ticket"),
    ("bind.arg_type", {"plan": "1", "steps__0__with__args__id": 5}, "/steps/0/with/args/id"),
    ("bind.arg_type", {"plan": "1", "steps__0__with__args__maybe_limit": 0}, "/steps/0/with/args/maybe_limit"),
    ("bind.arg_type", {"plan": "1", "steps__0__with__args__maybe_limit": "{{ input.ticket_id }}"},
     "/steps/0/with/args/maybe_limit"),
    ("bind.arg_type", {"plan": "4", "steps__0__steps__0__with__args__name": "{{ item }}"},
     "/steps/0/steps/0/with/args/name"),
    ("bind.arg_type", {"plan": "3", "steps__3__with__args__text": ["{{ steps.draft.last }}"]},
     "/steps/3/with/args/text"),
    ("output.type", {"plan": "1", "output__value": "x"}, "/output/value"),
    ("output.type", {"plan": "1", "output__value": "{{ input.ticket_id }}"}, "/output/value"),
    ("output.type", {"plan": "1", "output__value": {"summary": "{{ input.ticket_id }}"}}, "/output/value"),
    ("output.type", {"plan": "1", "output__value__severity": 5}, "/output/value/severity"),
    ("output.type", {"plan": "1", "output__value__severity": "{{ 5 }}"}, "/output/value/severity"),
    ("output.type", {"plan": "1", "output__value": ["{{ input.ticket_id }}"]}, "/output/value"),
    ("output.type", {"plan": "1", "steps__0__output__schema": {"type": "array"},
     "steps__1__with__prompt": "Say it."}, "/steps/0/output/schema"),
    ("output.type", {"plan": "1", "steps__0__output": {"mode": "text"}, "steps__1__with__prompt": "Say it."},
     "/steps/0/output/mode"),
    ("bind.unknown_engine", {"plan": "2", "steps__0__with__engine": "pythn"}, "/steps/0/with/engine"),
    ("code.syntax", {"plan": "2", "steps__0__with__source": "async def main(input, tools)\n"}, "/steps/0/with/source"),
    ("code.syntax", {"plan": "2", "steps__0__with__source": f"{MAIN}{'-' * 5000}1\n"}, "/steps/0/with/source"),
    ("code.bad_entry", {"plan": "2", "steps__0__with__source": "def main(input, tools):\n    return []\n"},
     "/steps/0/with/source"),
    ("code.bad_entry", {"plan": "2", "steps__0__with__source": "async def main(input):\n    return []\n"},
     "/steps/0/with/source"),
    ("code.bad_entry", {"plan": "2", "steps__0__with__source": "x = 1\n"}, "/steps/0/with/source"),
    ("code.tool_not_declared", {"plan": "2", "steps__0__with__source": f"{MAIN}await tools.ats_delete(id=1)\n"},
     "/steps/0/with/source"),
    ("code.tool_collision", {"plan": "2", "steps__0__with__tools": ["ats.candidates", "ats_candidates"],
     "permissions__tools": ["ats.candidates", "ats_candidates"]}, "/steps/0/with/tools"),
    ("parallel.concurrency_exceeds_branches", {"plan": "4", "steps__0__with__maxConcurrency": 26},
     "/steps/0/with/maxConcurrency"),
    ("parallel.nested_too_deep", {"plan": "1", "steps__more": parallel("a", parallel("b", parallel("c", INNER)))},
     "/steps/2/steps/0/steps/0"),
    ("parallel.bad_output_step", {"plan": "4", "steps__0__with__fanIn__outputStep": "juge"},
     "/steps/0/with/fanIn/outputStep"),
    ("parallel.bad_output_step", {"plan": "4", "steps__0__with__fanIn__outputStep": "sort", "steps__0__steps__more":
     {"id": "sort", "uses": "decision", "with": {"cases": [{"when": "true", "to": "end"}], "default": "end"}}},
     "/steps/0/with/fanIn/outputStep"),
    ("parallel.items_not_array", {"plan": "1", "steps__more": parallel("a", INNER),
     "steps__2__with__items": "{{ input.ticket_id }}"}, "/steps/2/with/items"),
    ("parallel.items_not_array", {"plan": "1", "steps__more": parallel("a", INNER), "steps__2__with__items": "[1]"},
     "/steps/2/with/items"),
    ("parallel.too_many_items", {"plan": "4", "steps__0__with__items": "{{ [{'name': 'a'}, {'name': 'b'}] }}",
     "steps__0__with__maxBranches": 1, "steps__0__with__maxConcurrency": 1}, "/steps/0/with/items"),
    ("parallel.item_key_type", {"plan": "4", "steps__0__with__itemKey": "{{ item }}"}, "/steps/0/with/itemKey"),
    ("parallel.item_key_type", {"plan": "4", "steps__0__with__itemKey": "key"}, "/steps/0/with/itemKey"),
    ("step.sensitive", {"plan": "4", "steps__0__steps__0__sensitive": True}, "/steps/0/steps/0/sensitive"),
    ("fixer.only_code_run", {"plan": "1", "steps__1__onFailure": {"fixer": {"model": "small", "maxAttempts": 1}}},
     "/steps/1/onFailure/fixer"),
    ("limits.too_many_executions", {"plan": "3", "limits__maxStepExecutions": 9}, "/limits"),
    ("limits.too_many_executions", {"plan": "4", "steps__0__with__maxBranches": 10_000, "steps__0__maxVisits": 100,
     "steps__1__with__cases__0__when": "size(steps.audit.last) == 0",
     "steps__2__with__prompt": "Explain", "steps__3__with__prompt": "Say"}, ""),
]  # fmt: skip

ELSEWHERE: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("expr.refused", {"plan": "1"}, {"rules": OddRules()}, "/steps/0/with/args/id"),
    ("bind.unknown_engine", {"plan": "2"}, {"engine": None}, "/steps/0/with"),
    ("bind.unknown_engine", {"plan": "2"}, {"engine": None, "engines": {}}, "/steps/0/with"),
    ("bind.unknown_engine", {"plan": "2"}, {"engine": "boxed", "engines_out": {"boxed": "no box"}}, "/steps/0/with"),
    ("bind.unknown_engine", {"plan": "2", "steps__0__with__engine": "boxed"},
     {"engines_out": {"boxed": "no box"}}, "/steps/0/with/engine"),
    ("bind.permission_exceeded", {"plan": "1"}, CEILING, "/permissions/models/0"),
    ("bind.permission_exceeded", {"plan": "1"}, FEWER_MODELS, "/permissions/models/0"),
    ("bind.tool_not_permitted", {"plan": "1"}, CEILING, "/permissions/tools/0"),
    ("bind.tier_exceeded", {"plan": "3"}, CEILING, "/permissions/maxTier"),
    ("limits.too_many_executions", {"plan": "4"}, NARROW, ""),
    ("limits.exceeded", {"plan": "3"}, NARROW, "/limits/maxStepExecutions"),
    ("limits.exceeded", {"plan": "3", "steps__0__with__maxTurns": 4}, {"max_turns": 3}, "/steps/0/with/maxTurns"),
    ("binding.name_mismatch", {"plan": "1", "metadata__name": "other"}, FOR_ANOTHER, "/metadata/name"),
    ("binding.input_schema_mismatch", {"plan": "1", "input__schema__description": "x"}, FOR_ANOTHER, "/input/schema"),
    ("binding.output_schema_mismatch", {"plan": "1", "output__schema__description": "x"}, FOR_ANOTHER,
     "/output/schema"),
]  # fmt: skip

LETTERS: list[tuple[str, Any]] = [
    ("lwir.non_hashable", b"I would plan it like this:"),
    ("lwir.non_hashable", b""),
    ("lwir.non_hashable", b'{"kind": "Workflow", "kind": "Workflow"}'),
    ("lwir.non_hashable", b'{"kind": NaN}'),
    ("lwir.non_hashable", b'{"kind": "\\ud800"}'),
    ("lwir.non_hashable", b'\xef\xbb\xbf{"kind": "Workflow"}'),
    ("lwir.non_hashable", b'{"kind": "\xff"}'),
    ("lwir.non_hashable", '{"kind": "\ud800"}'),
    ("lwir.non_hashable", {"kind": float("nan")}),
    ("lwir.non_hashable", {"kind": {1, 2}}),
    ("lwir.non_hashable", {1: "kind"}),
    ("lwir.non_hashable", {"kind": 2**60}),
    ("lwir.too_large", b'"' + b"x" * 1024 * 1024 + b'"'),
    ("lwir.too_large", "[" * 33 + "]" * 33),
    ("lwir.too_large", "[" * 500_000),
    ("lwir.too_large", {"kind": "x" * 1024 * 1024}),
    ("schema.invalid", b"null"),
    ("schema.invalid", [PLANS["1"]]),
]

COMPILER = WorkflowCompiler()


def ids(variants: list[Any]) -> list[str]:
    return [f"{one[0]}-{number}" for number, one in enumerate(variants)]


@pytest.mark.parametrize(("code", "change", "path"), VARIANTS, ids=ids(VARIANTS))
def test_a_plan_with_one_thing_wrong_is_refused_with_its_code(code: str, change: dict[str, Any], path: str) -> None:
    found = COMPILER.compile(plan_of(**copy.deepcopy(change)), surroundings())
    assert not found.ok
    assert found.lock is None and found.workflow_version_id is None
    errors = [one for one in found.findings if one.severity == "error"]
    assert (code, path) in [(one.code, one.path) for one in errors], [one.to_wire() for one in errors]
    assert len({one.code for one in errors}) <= 2


@pytest.mark.parametrize(("code", "change", "more", "path"), ELSEWHERE, ids=ids(ELSEWHERE))
def test_a_plan_that_does_not_fit_in_is_refused_with_its_code(
    code: str, change: dict[str, Any], more: dict[str, Any], path: str
) -> None:
    found = COMPILER.compile(plan_of(**copy.deepcopy(change)), surroundings(**more))
    assert (code, path) in [(one.code, one.path) for one in found.findings]
    assert not found.ok


@pytest.mark.parametrize(("code", "source"), LETTERS, ids=ids(LETTERS))
def test_what_is_no_plan_at_all_is_a_finding_and_nothing_else(code: str, source: Any) -> None:
    found = COMPILER.compile(source, surroundings())
    assert [one.code for one in found.findings] == [code]
    assert found.plan is None and found.workflow_version_id is None


def test_for_every_code_there_is_a_plan_that_has_nothing_else_wrong() -> None:
    plans = [(plan_of(**copy.deepcopy(change)), surroundings()) for _, change, _ in VARIANTS]
    plans += [(plan_of(**copy.deepcopy(change)), surroundings(**more)) for _, change, more, _ in ELSEWHERE]
    found = [COMPILER.compile(*one) for one in [*plans, *((source, surroundings()) for _, source in LETTERS)]]
    found.append(COMPILER.expand({"steps": []}, surroundings()))
    errors = [[one.code for one in each.findings if one.severity == "error"] for each in found]
    assert {codes[0] for codes in errors if len(codes) == 1} == set(CODES)


MANY = range(40_000)
FLOODS: dict[str, dict[str, Any]] = {
    "keywords": {"input__schema": {f"k{number}": 1 for number in MANY}},
    "keywords below a long name": {"input__schema": {"properties": {"x" * 500_000: {f"k{n}": 1 for n in range(999)}}}},
    "needs": {"steps__1__needs": [f"n{number}" for number in MANY]},
    "permissions": {"permissions__tools": [f"t{number}" for number in MANY]},
    "reads": {"steps__1__with__prompt": "{{ steps.a.output + steps.b.output + steps.c.output }}" * 4_000},
}


@pytest.mark.parametrize("name", FLOODS)
def test_of_very_much_that_is_wrong_no_more_is_looked_for_than_can_be_told(name: str) -> None:
    plan = changed("1", **FLOODS[name])
    plan["steps"] += [{**INNER, "id": f"s{number}"} for number in range(150)]
    started = time.process_time()
    found = COMPILER.compile(plan, surroundings())
    assert time.process_time() - started < 5
    assert not found.ok and len(found.findings) <= 500
    assert len(found.to_json_bytes()) < 2_000_000


def test_a_finding_names_the_step_and_says_what_to_do() -> None:
    [one] = COMPILER.compile(changed("1", steps__0__with__tool="ticket.get"), surroundings()).findings
    assert (one.step, one.severity) == ("fetch", "error")
    assert one.hint == "did you mean tickets.get?"


def test_all_findings_of_a_phase_come_together_and_none_of_a_later_one() -> None:
    wrong = changed("1", steps__0__with__args__id="{{ nobody }}", steps__1__with__prompt="{{ noone }}",
                    steps__1__with__model="nomodel")  # fmt: skip
    found = COMPILER.compile(wrong, surroundings()).findings
    assert [one.code for one in found] == ["expr.unknown_root", "expr.unknown_root"]
    assert [one.path for one in found] == ["/steps/0/with/args/id", "/steps/1/with/prompt"]
