"""The sketch form, and what a model is held to while it writes: whatever fits the schema of sketches compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_executor_workflow.compiling.sketch import Sketch
from harness_hookspecs.compiler import Compilation
from harness_hookspecs.kit.json_schema import compiled_schema
from harness_hookspecs.workflow import Permissions
from tests.compiling.there import PLANS, changed, definition, surroundings, tool

COMPILER = WorkflowCompiler()
TICKET = surroundings(definition=definition(PLANS["1"]))
FETCH = {"id": "fetch", "uses": "tool.call", "tool": "tickets.get", "inputs": {"id": "input.ticket_id"}}
SAY = {"id": "say", "uses": "ai.generate", "prompt": "Summarise it.", "inputs": ["previous"]}


def plan_of(sketch: Any, where: Any = TICKET) -> Any:
    found = COMPILER.expand(sketch, where)
    assert found.ok, [one.to_wire() for one in found.findings]
    assert found.plan is not None
    return found.plan.to_wire()


def codes(found: Compilation) -> list[str]:
    return [one.code for one in found.findings]


def test_a_sketch_becomes_a_whole_plan() -> None:
    plan = plan_of({"steps": [FETCH, SAY]})
    assert plan["metadata"]["name"] == "support.summarise_ticket"
    assert plan["permissions"] == {"models": ["small"], "tools": ["tickets.get"], "maxTier": "T1"}
    fetch, say = plan["steps"]
    assert fetch["with"]["args"] == {"id": "{{ input.ticket_id }}"}
    assert fetch["output"]["schema"]["required"] == ["body"]  # the tool's own
    assert say["needs"] == ["fetch"]
    assert "{{ steps.fetch.output }}" in say["with"]["prompt"]
    assert say["output"] == {"mode": "object", "schema": PLANS["1"]["output"]["schema"]}
    assert plan["output"]["value"] == "{{ steps.say.output }}"


def test_the_sketch_of_the_readme_becomes_a_plan() -> None:
    page = Path(__file__).parents[2] / "plugins/harness-executor-workflow/README.md"
    section = page.read_text(encoding="utf-8").partition("## Sketches")[2]
    block = "".join(line for line in section.splitlines() if line.startswith("    "))
    plan = plan_of(block)
    assert "{{ steps.fetch.output.body }}" in plan["steps"][1]["with"]["prompt"]


def test_a_sketch_gives_the_same_plan_each_time() -> None:
    one, other = (COMPILER.expand({"steps": [FETCH, SAY]}, TICKET) for _ in range(2))
    assert one == other and one.workflow_version_id is not None


def test_steps_are_read_by_their_ids_and_fields() -> None:
    say = {**SAY, "inputs": ["fetch.body", "input"], "fields": ["summary", "severity"]}
    plan = plan_of({"steps": [FETCH, say], "output": {"summary": "say.summary", "severity": "low"}})
    assert "{{ steps.fetch.output.body }}" in plan["steps"][1]["with"]["prompt"]
    assert plan["output"]["value"] == {"summary": "{{ steps.say.output.summary }}", "severity": "low"}


def test_a_template_in_a_sketch_is_the_template_that_it_is_in_a_plan() -> None:
    plan = plan_of({"steps": [FETCH, {**SAY, "prompt": "Say {{ steps.fetch.output.body }}", "inputs": []}]})
    assert plan["steps"][1]["needs"] == ["fetch"]


def test_ids_that_are_doubled_or_reserved_get_an_ending() -> None:
    steps = [{**SAY, "id": "end"}, {**SAY, "id": "say"}, {**SAY, "id": "say"}, {**SAY, "inputs": ["say", "end"]}]
    plan = plan_of({"steps": steps})
    assert [step["id"] for step in plan["steps"]] == ["end_2", "say", "say_2", "say_3"]
    assert plan["steps"][3]["needs"] == ["end_2", "say_2"]  # an id means the last step that has it


def test_what_is_no_text_becomes_text_where_a_tool_wants_text() -> None:
    write = {"id": "write", "uses": "tool.call", "tool": "files.write",
             "inputs": {"path": "a.txt", "text": "previous"}}  # fmt: skip
    where = surroundings()
    plan = plan_of({"steps": [{**FETCH, "inputs": {"id": "7"}}, write]}, where)
    assert plan["steps"][1]["with"]["args"] == {"path": "a.txt", "text": "{{ steps.fetch.output }}\n"}


def test_a_choice_is_one_of_its_values() -> None:
    plan = plan_of({"steps": [{**SAY, "choices": ["low", "high"]}]}, surroundings())
    assert plan["steps"][0]["output"] == {"mode": "choice", "values": ["low", "high"]}
    assert plan["output"]["schema"] == {"type": "string"}


def test_an_input_that_may_be_absent_is_asked_for_first() -> None:
    plan = changed("1", input__schema__properties__note={"type": "string"})
    where = surroundings(definition=definition(plan))
    found = COMPILER.expand({"steps": [{**SAY, "inputs": ["input.note"]}]}, where)
    assert found.ok and found.findings == ()


def test_a_workflow_that_gives_text_gives_what_its_last_tool_gave_as_text() -> None:
    wanted = {"type": "string"}
    where = surroundings(definition=definition(changed("1", output={"schema": wanted, "value": "x"})))
    assert plan_of({"steps": [FETCH]}, where)["output"] == {"schema": wanted, "value": "{{ steps.fetch.output }}\n"}


@pytest.mark.parametrize(
    ("sketch", "code", "path"),
    [
        ({"steps": []}, "sketch.invalid", "/steps"),
        ({"steps": [{**SAY, "uses": "code.run"}]}, "sketch.invalid", "/steps/0"),
        ({"steps": [{**SAY, "surprise": 1}]}, "sketch.invalid", "/steps/0/surprise"),
        ({"steps": [{**FETCH, "tool": "ticket.get"}]}, "bind.tool_missing", "/permissions/tools/0"),
        ({"steps": [{**FETCH, "inputs": {}}]}, "bind.missing_arg", "/steps/0/with/args"),
        ({"steps": [{**SAY, "prompt": "Say {{"}]}, "expr.syntax", "/steps/0/with/prompt"),
        ({"steps": [{**SAY, "inputs": ["input.nothing"]}]}, "ref.no_such_field", "/steps/0/with/prompt"),
        (b"no json", "lwir.non_hashable", ""),
    ],
)
def test_a_sketch_that_is_wrong_has_findings(sketch: Any, code: str, path: str) -> None:
    found = COMPILER.expand(sketch, TICKET)
    assert (code, path) in [(one.code, one.path) for one in found.findings]
    assert not found.ok


def test_without_a_model_there_is_no_sketch_with_a_prompt() -> None:
    assert codes(COMPILER.expand({"steps": [SAY]}, surroundings(models={}))) == ["bind.unknown_model"]


# ------------------------------------------------------------------------------------------------- schemas


SIMPLE: Mapping[str, Callable[[Any], st.SearchStrategy[Any]]] = {
    "integer": lambda schema: st.integers(schema["minimum"], schema["maximum"]),
    "number": lambda schema: st.floats(schema["minimum"], schema["maximum"]),
    "boolean": lambda schema: st.booleans(),
    "string": lambda schema: st.from_regex(schema["pattern"], fullmatch=True),
}


def written(schema: Any) -> st.SearchStrategy[Any]:
    """Whatever fits a schema of the kind that sketches have."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([written(one) for one in schema["anyOf"]])
    if schema["type"] == "array":
        return st.lists(written(schema["items"]), min_size=schema["minItems"], max_size=schema["maxItems"])
    if schema["type"] == "object":
        parts = {name: written(one) for name, one in schema["properties"].items()}
        required = {name: one for name, one in parts.items() if name in schema["required"]}
        return st.fixed_dictionaries(required, optional={name: parts[name] for name in parts.keys() - required.keys()})
    return SIMPLE[schema["type"]](schema)


ODD_ARGS: dict[str, dict[str, Any]] = {
    "numbers": {"n": {"type": "number"}, "i": {"type": "integer", "minimum": 3, "title": "I"}},
    "flags": {"b": {"type": "boolean"}},
    "choices": {"c": {"enum": [1, None, "x"]}, "d": {"const": {"a": 1}, "type": "object"}, "maybe_e": True},
    "anything": {"a": True, "b": {}, "c": {"description": "What?"}},
    "either": {"e": {"anyOf": [{"type": "array"}, {"type": "null"}]}, "maybe_f": {"type": ["string", "null"]}},
    "objects": {"maybe_o": {"type": "object"}, "maybe_r": {"$ref": "#/$defs/R"}},
    "too odd": {"o": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}}},
    "too even": {"n": {"type": "integer", "multipleOf": 2}},
}
ODD = {name: tool(name, args) for name, args in ODD_ARGS.items()}
WHERE = {
    "a ticket": TICKET,
    "code": surroundings(definition=definition(PLANS["2"])),
    "a draft": surroundings(definition=definition(PLANS["3"])),
    "packages": surroundings(definition=definition(PLANS["4"])),
    "nothing in particular": surroundings(),
    "odd tools": surroundings(
        definition=definition(changed("4", permissions__tools=[*ODD])),
        tools=ODD,
    ),
    "one model allowed": surroundings(permissions=Permissions(models=("writer",), tools=("tickets.get",))),
}


@pytest.mark.parametrize("name", WHERE)
def test_whatever_fits_the_schema_of_sketches_compiles(name: str) -> None:
    where = WHERE[name]
    schema = COMPILER.sketch_schema(where)

    @given(written(schema))
    def compiles(sketch: Any) -> None:
        jsonschema.Draft202012Validator(schema).validate(sketch)
        Sketch.from_wire(sketch)
        found = COMPILER.expand(sketch, where)
        assert found.ok, [one.to_wire() for one in found.findings]

    compiles()


def test_a_tool_that_requires_what_a_sketch_cannot_say_is_not_offered() -> None:
    steps = COMPILER.sketch_schema(WHERE["odd tools"])["properties"]["steps"]["items"]["anyOf"]
    parts = [one["properties"] for one in steps]
    calls = {one["tool"]["const"]: one["inputs"] for one in parts if "tool" in one}
    assert calls.keys() == {"numbers", "flags", "choices", "anything", "either", "objects"}
    assert calls["objects"]["properties"].keys() == {"maybe_r"}  # of what it is, its tool will say


def test_a_sketch_of_nothing_is_never_written() -> None:
    schema = COMPILER.sketch_schema(surroundings(models={}, tools={}))
    compiled_schema(schema)
    assert not jsonschema.Draft202012Validator(schema).is_valid({"steps": [SAY]})


def parts_of(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema within it, but for those that are data."""
    yield schema
    for word, inner in schema.items():
        below = inner.values() if word in ("properties", "$defs") else inner if isinstance(inner, list) else [inner]
        yield from (part for one in below if isinstance(one, Mapping) and word != "const" for part in parts_of(one))


def test_schemas_for_a_grammar_have_no_words_for_people_and_nothing_in_a_sketch_is_without_end() -> None:
    for part in parts_of(COMPILER.plan_schema(TICKET)):
        assert part.keys().isdisjoint({"title", "description", "default", "discriminator"})
        if "uses" in part.get("properties", {}):
            assert [*part["properties"]][:2] == part["required"][:2] == ["id", "uses"]
    for where in WHERE.values():
        schema = COMPILER.sketch_schema(where)
        assert len(str(schema)) < 1_500 * (1 + len(where.tools))
        for part in parts_of(schema):
            ends = {"array": "maxItems", "string": "pattern", "integer": "maximum", "number": "maximum"}
            assert part.get("type") not in ends or ends[part["type"]] in part
            assert part.get("additionalProperties", False) is False


@pytest.mark.parametrize("name", PLANS)
def test_the_schema_for_a_request_takes_the_plan_that_was_written_for_it(name: str) -> None:
    where = surroundings(definition=definition(PLANS[name]))
    schema = COMPILER.plan_schema(where)
    compiled_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(PLANS[name])


@pytest.mark.parametrize(
    "change",
    [
        {"steps__0__with__tool": "files.write"},
        {"steps__1__with__model": "writer"},
        {"permissions__tools": ["files.write"]},
        {"permissions__models": ["nobody"]},
        {"metadata__name": "other"},
        {"input__schema": True},
    ],
)
def test_the_schema_for_a_request_takes_no_names_that_are_not_there(change: dict[str, Any]) -> None:
    schema = COMPILER.plan_schema(TICKET)
    assert not jsonschema.Draft202012Validator(schema).is_valid(changed("1", **change))


def test_where_there_are_no_tools_no_step_calls_one() -> None:
    where = surroundings(permissions=Permissions(models=("small",), tools=()))
    validator = jsonschema.Draft202012Validator(COMPILER.plan_schema(where))
    assert not validator.is_valid(PLANS["1"])
    assert validator.is_valid(changed("1", permissions__tools=[], steps=[PLANS["1"]["steps"][1]]))
    steps = COMPILER.sketch_schema(where)["properties"]["steps"]["items"]["anyOf"]
    assert [step["properties"]["uses"]["const"] for step in steps] == ["ai.generate"]
