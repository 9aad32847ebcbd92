"""What the engine is asked and how its answers are read, without an engine."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from harness_hookspecs import Message, ModelRequest, ProviderError, ToolSchema
from harness_hookspecs.messages import (
    ErrorEnvelope,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from harness_provider_local.chat import engine_messages, question, response
from harness_provider_local.constrain import check_schema, grammar, loosened, violation
from harness_provider_local.endings import Death, died, grammar_fault
from harness_provider_local.envelope import schema as envelope_schema

NAMED = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}


def said(role: Any, *parts: Any) -> Message:
    return Message(role=role, content=tuple(TextPart(text=p) if isinstance(p, str) else p for p in parts))


def test_a_conversation_becomes_text_that_every_template_takes() -> None:
    call = ToolCallPart(call_id="c1", tool_name="files_read", args={"path": "a"})
    result = ToolResultPart(call_id="c1", tool_name="files_read", result={"text": "b"})
    failed = ToolResultPart(call_id="c2", tool_name="files_read", error=ErrorEnvelope(name="E", message="gone"))
    conversation = [
        said("system", "Be brief."),
        said("user", "Read a."),
        said("assistant", ReasoningPart(text="hm"), "I will.", call),
        said("tool", result),
        said("tool", failed),
        said("user", "Go on."),
    ]
    assert engine_messages(conversation, ()) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a."},
        {"role": "assistant", "content": 'I will.\n{"tool":"files_read","arguments":{"path":"a"}}'},
        {"role": "user", "content": 'Result of files_read:\n{"text":"b"}\n\nError of files_read: gone\n\nGo on.'},
    ]


def test_tools_are_told_of_in_the_system_message() -> None:
    tool = ToolSchema("files_read", "Reads a file.", NAMED)
    for start, count in (([said("system", "Be brief.")], 1), ([], 1)):
        shown = engine_messages([*start, said("user", "x")], [tool])
        assert [message["role"] for message in shown] == ["system", "user"]
        assert shown[0]["content"].count("files_read: Reads a file.") == count


def test_what_is_asked_is_what_the_engine_is_sent() -> None:
    params = {"temperature": 0, "top_p": 0.5, "repeat_penalty": 1.1, "seed": 2**32 - 1, "max_output_tokens": 7}
    asked = question(ModelRequest("m", [said("user", "x")], params=params), {"temperature": 1.0, "top_p": None})
    sent = {key: value for key, value in asked.body.items() if key != "messages"}
    assert sent == {"temperature": 0, "top_p": 0.5, "repeat_penalty": 1.1, "seed": 0, "max_tokens": 7}


def test_references_still_meet_inside_the_envelope() -> None:
    inner = {"$defs": {"p": {"const": "x"}}, "type": "object", "properties": {"p": {"$ref": "#/$defs/p"}}}
    tools = [ToolSchema("one", "", inner), ToolSchema("two", "", {**inner, "$defs": {"p": {"const": "y"}}})]
    made = envelope_schema(tools, None)
    check_schema(made)
    assert violation(made, '{"tool":"one","arguments":{"p":"x"}}') is None
    assert violation(made, '{"tool":"two","arguments":{"p":"y"}}') is None
    assert violation(made, '{"tool":"two","arguments":{"p":"x"}}') is not None
    assert violation(made, '{"final":"x"}') is None
    assert violation(made, '{"tool":"three","arguments":{}}') is not None


def done(text: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"event": "done", "text": text, "reasoning": "", "finish": finish, "usage": None, **more}


def test_usage_that_was_not_reported_is_unknown() -> None:
    asked = question(ModelRequest("m", [said("user", "x")]), {})
    assert response(asked, done("x")).usage.known is False
    usage = {"prompt_tokens": 5000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4900}}
    known = response(asked, done("x", usage=usage)).usage
    assert (known.input_tokens, known.cached_input_tokens, known.total_tokens, known.known) == (5000, 4900, 5010, True)


def test_what_the_model_thought_is_kept_apart() -> None:
    asked = question(ModelRequest("m", [said("user", "x")]), {})
    answer = response(asked, {**done("yes"), "reasoning": '{"verdict":"no"}'})
    assert [part.type for part in answer.content] == ["reasoning", "text"]
    assert answer.text == "yes"


BROKEN = {
    "prose": "Sure, here it is",
    "a fence": '```json\n{"a":1}\n```',
    "NaN": '{"a":NaN}',
    "twice": '{"a":1,"a":1}',
    "more behind": '{"a":1} and',
    "another value": '{"a":2}',
    "a lone surrogate": '{"a":"\\ud83d"}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_breaks_its_schema_is_never_passed_on(text: str) -> None:
    asked = question(ModelRequest("m", [said("user", "x")], response_schema=NAMED), {})
    with pytest.raises(ProviderError) as caught:
        response(asked, done(text), complaint="Unimplemented")
    assert caught.value.code == "provider.schema_violation"
    assert (caught.value.facts["reason"], caught.value.facts["text"]) == ("mismatch", text)
    assert "Unimplemented" in (caught.value.hint or "")


def test_json_that_is_whole_at_the_limit_is_an_answer() -> None:
    asked = question(ModelRequest("m", [said("user", "x")], response_schema=NAMED), {})
    assert response(asked, done('{"a":1}', "length")).finish_reason == "stop"


def test_only_what_the_engine_cannot_compile_is_taken_out() -> None:
    schema = {
        "title": "T",
        "properties": {
            "pattern": {"type": "string", "pattern": "^(?!a)b$", "maxLength": 3},
            "title": {"type": "string", "pattern": "^[a-z]+$", "default": "x"},
        },
        "patternProperties": {r"\bx": {"type": "null"}, "^y": {"type": "null"}},
        "items": [{"enum": ["(?=x)"]}],
        "anyOf": [{"description": "d", "required": ["title"]}],
    }
    assert loosened(schema) == {
        "properties": {
            "pattern": {"type": "string", "maxLength": 3},
            "title": {"type": "string", "pattern": "^[a-z]+$"},
        },
        "patternProperties": {"^y": {"type": "null"}},
        "items": [{"enum": ["(?=x)"]}],
        "anyOf": [{"required": ["title"]}],
    }
    assert '"whitespace_flexible":false' in grammar(schema)


def test_a_schema_that_points_nowhere_is_said_to() -> None:
    for reference in ("#/$defs/gone", "https://example.org/s.json", "file:///s.json"):
        check_schema({"$ref": reference})
        assert "not there" in (violation({"$ref": reference}, "1") or "")


def test_a_schema_that_is_none_is_refused_where_it_is_wrong() -> None:
    with pytest.raises(ProviderError) as caught:
        check_schema({"properties": {"a": {"pattern": "("}}})
    assert (caught.value.code, caught.value.where) == ("provider.schema_invalid", "/properties/a/pattern")
    assert "is no JSON Schema" in (violation({"type": "nope"}, "1") or "")  # a tool's, inside the envelope


def test_of_several_tools_the_one_that_was_meant_is_complained_about() -> None:
    tools = [ToolSchema(name, "It.", {"properties": {"p": {"const": name}}}) for name in ("one", "two")]
    said = violation(envelope_schema(tools, None), '{"tool":"two","arguments":{"p":"one"}}')
    assert said == '/arguments/p: "two" was expected'


ENDS = {
    -signal.SIGILL: "illegal_instruction",
    -signal.SIGKILL: "killed",
    -signal.SIGABRT: "crashed",
    -200: "crashed",
    1: "exited",
}


@pytest.mark.parametrize("returncode", ENDS)
def test_a_death_has_a_reason_and_a_next_step(returncode: int) -> None:
    error = died(Death(returncode, "x" * 5000 + "end"), model="m", loading=True)
    assert (error.code, error.facts["reason"]) == ("provider.worker_died", ENDS[returncode])
    assert error.hint
    assert error.facts["stderr"].endswith("end")
    assert len(error.facts["stderr"]) <= 2000


def test_the_engines_complaint_about_a_schema_is_found_in_its_log() -> None:
    log = "0.00 E llg error: at 2(8): first\n  1 | x\n0.01 E llg error: at 2(8): second\n"
    assert grammar_fault(log) == "at 2(8): second"
    assert grammar_fault("all is well") is None
