from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.provider import ProviderContract, ask
from harness_hookspecs.errors import Cancelled, ConfigError, ProviderError
from harness_hookspecs.messages import Message, OracleResponse, ToolResultPart, Usage
from harness_hookspecs.provider import CallContext, Chunk, ModelRequest, Routing, ToolSchema
from harness_provider_scripted import harness_provide_providers
from harness_provider_scripted.provider import ScriptedProvider, build
from harness_provider_scripted.settings import ScriptedSettings

SCRIPT = """
schema: harness.script/1
replies:
  - when: {contains: in JSON}
    json: {answer: true}
  - when: {contains: fail}
    error: {code: provider.context_overflow}
  - text: All is well.
    chunks: 3
"""


def provider(folder: Path, script: str) -> ScriptedProvider:
    host = FakeHost(folder)
    (host.project_dir / "script.yaml").write_text(script)
    return build(ScriptedSettings(script="script.yaml"), host)


@pytest.mark.req("B-08")
class TestScripted(ProviderContract):
    is_deterministic = True

    def subject(self) -> ScriptedProvider:
        (self.host.project_dir / "script.yaml").write_text(SCRIPT)
        return build(ScriptedSettings(script="script.yaml"), self.host)

    def schema_question(self) -> ModelRequest:
        return ask("Answer in JSON.")

    def failing_question(self) -> ModelRequest:
        return ask("Please fail.")


class Model:
    """A scripted model and what it said on the way."""

    def __init__(self, folder: Path, *replies: Mapping[str, Any]) -> None:
        self.host = FakeHost(folder)
        document = {"schema": "harness.script/1", "replies": replies}
        (self.host.project_dir / "script.yaml").write_text(json.dumps(document))  # JSON is YAML
        self.provider = build(ScriptedSettings(script="script.yaml"), self.host)
        self.token = self.host.ports.wait.token()
        self.chunks: list[str] = []

    def ask(self, text: str = "Go.", *routing: Any, deadline: float | None = None, **rest: Any) -> OracleResponse:
        where = Routing(*routing) if routing else Routing("coder", "build", 1, 1)
        call = CallContext(self.token, lambda chunk: self.chunks.append(chunk.text), deadline)
        return self.provider.complete(ask(text, routing=where, **rest), call)


def test_the_offer_builds_the_provider_and_the_manifest_has_its_settings(tmp_path: Path) -> None:
    [offer] = harness_provide_providers()
    assert (offer.kind, offer.name) == ("provider", "scripted")
    assert offer.settings is not None
    written = resources.files("harness_provider_scripted").joinpath("settings.json").read_text()
    assert json.loads(written) == offer.settings().model_json_schema()
    with pytest.raises(ConfigError, match="cannot be read"):
        offer.build(offer.settings()(script="absent.yaml"), FakeHost(tmp_path))


def test_a_look_says_what_the_script_has_or_what_building_it_would(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    (host.project_dir / "script.yaml").write_text(SCRIPT)
    [offer] = harness_provide_providers()
    assert offer.look is not None
    assert offer.look(ScriptedSettings(script="script.yaml"), host) == "script.yaml has 3 replies"
    with pytest.raises(ConfigError, match="cannot be read"):
        offer.look(ScriptedSettings(script="absent.yaml"), host)


# -------------------------------------------------------------------------------------- which reply answers


def test_the_nth_reply_answers_turn_n_whatever_was_asked_before(tmp_path: Path) -> None:
    model = Model(tmp_path, {"text": "one"}, {"text": "two"})
    turns = [model.ask("Go.", "coder", "build", 1, turn).text for turn in (2, 1, 2, 1)]
    assert turns == ["two", "one", "two", "one"]
    resumed = build(ScriptedSettings(script="script.yaml"), model.host)
    assert (
        resumed.complete(
            ask("Go.", routing=Routing("coder", "build", 1, 2)), CallContext(model.token, lambda _: None)
        ).text
        == "two"
    )


WHEN: dict[str, tuple[dict[str, Any], str, tuple[Any, ...]]] = {
    "persona": ({"persona": "planner"}, "Go.", ("planner", "build", 1, 1)),
    "stage": ({"stage": "review"}, "Go.", ("coder", "review", 1, 1)),
    "turn": ({"turn": 3}, "Go.", ("coder", "build", 1, 3)),
    "attempt": ({"attempt": 2}, "Go.", ("coder", "build", 2, 1)),
    "contains": ({"contains": "over\nhere"}, "look over\nhere now", ("coder", "build", 1, 1)),
    "several": ({"persona": "planner", "turn": 2, "contains": "x"}, "x", ("planner", "build", 1, 2)),
    "none": ({}, "Go.", ("anyone", "anywhere", 9, 9)),
}  # fmt: skip


@pytest.mark.parametrize(("when", "text", "routing"), WHEN.values(), ids=WHEN)
def test_a_reply_answers_when_all_its_conditions_hold(
    tmp_path: Path, when: dict[str, Any], text: str, routing: tuple[Any, ...]
) -> None:
    model = Model(tmp_path, {"text": "in order"}, {"when": when, "text": "met"})
    assert model.ask(text, *routing).text == "met"
    other = Model(tmp_path, {"text": "in order"}, {"when": {**when, "persona": "nobody"}, "text": "met"})
    assert other.ask(text, *routing[:3], 1).text == "in order"


def test_conditions_come_first_and_the_first_of_them_wins(tmp_path: Path) -> None:
    model = Model(
        tmp_path,
        {"text": "first in order"},
        {"when": {"stage": "plan"}, "text": "a"},
        {"text": "second in order"},
        {"when": {"persona": "planner"}, "text": "b"},
    )
    assert model.ask("Go.", "planner", "plan", 1, 1).text == "a"
    assert model.ask("Go.", "planner", "build", 1, 1).text == "b"
    assert model.ask("Go.", "coder", "build", 1, 2).text == "second in order"


def test_what_a_tool_said_can_be_a_condition(tmp_path: Path) -> None:
    model = Model(tmp_path, {"when": {"contains": '"lines":7'}, "text": "seven"})
    result = ToolResultPart(call_id="c", tool_name="t", result={"lines": 7})
    message = Message(role="tool", content=(result,), call_id="c")
    assert model.ask("Go.", messages=(message,)).text == "seven"


def test_a_script_with_no_reply_left_names_the_request(tmp_path: Path) -> None:
    model = Model(tmp_path, {"text": "one"})
    with pytest.raises(ProviderError) as caught:
        model.ask("Go.", "coder", "build", 2, 3)
    assert caught.value.code == "script.exhausted"
    assert caught.value.message == ("The script has no reply for persona 'coder', stage 'build', attempt 2, turn 3.")
    assert caught.value.facts == {"persona": "coder", "stage": "build", "attempt": 2, "turn": 3}


# -------------------------------------------------------------------------------------------- what it says


def test_tool_calls_have_ids_made_of_turn_and_place(tmp_path: Path) -> None:
    calls = [{"name": "filesystem_read", "args": {"path": "a"}}, {"name": "x", "id": "own"}, {"name": "y"}]
    model = Model(tmp_path, {"text": "Let me look.", "tool_calls": calls})
    answer = model.ask()
    assert answer.finish_reason == "tool_calls"
    assert [(call.call_id, call.tool_name) for call in answer.tool_calls or ()] == [
        ("call-1-1", "filesystem_read"),
        ("own", "x"),
        ("call-1-3", "y"),
    ]
    assert (answer.tool_calls or ())[0].args == {"path": "a"}
    assert answer.text == "Let me look."


def test_arguments_that_are_none_arrive_as_they_are(tmp_path: Path) -> None:
    call = {"name": "filesystem_write", "args": '{"path": "notes.md", "content": "first half of the'}
    answer = Model(tmp_path, {"tool_calls": [call], "finish": "length"}).ask()
    assert (answer.finish_reason, (answer.tool_calls or ())[0].args) == ("length", call["args"])


def test_a_json_reply_is_written_compactly(tmp_path: Path) -> None:
    assert Model(tmp_path, {"json": {"b": [1, 2.5, None], "a": "ü"}}).ask().text == '{"b":[1,2.5,null],"a":"ü"}'
    assert Model(tmp_path, {"json": None}).ask().text == "null"


def test_usage_is_as_written_and_otherwise_unknown(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 4}
    assert Model(tmp_path, {"text": "x", "usage": usage}).ask().usage == Usage(**usage)
    assert Model(tmp_path, {"text": "x"}).ask().usage == Usage.unknown()


@pytest.mark.parametrize(
    ("reply", "chunks"),
    [
        ({"text": "abcdefg"}, ["abcdefg"]),
        ({"text": "abcdefg", "chunks": 3}, ["ab", "cd", "efg"]),
        ({"text": "ab", "chunks": 9}, ["a", "b"]),
        ({"chunks": ["a", "", "b c"]}, ["a", "", "b c"]),
        ({"text": "ab", "chunks": ["a", "b"]}, ["a", "b"]),
        ({"text": ""}, []),
        ({"json": [1], "chunks": 2}, ["[", "1]"]),
    ],
)
def test_text_arrives_in_the_chunks_that_were_written(tmp_path: Path, reply: dict[str, Any], chunks: list[str]) -> None:
    model = Model(tmp_path, reply)
    answer = model.ask()
    assert (model.chunks, answer.text) == (chunks, "".join(chunks))


@pytest.mark.parametrize(
    ("reply", "chunks"),
    [
        ({"error": {"code": "provider.timeout"}}, []),
        ({"error": {"code": "provider.timeout", "after_chunks": 2}}, [".", "."]),
        ({"error": {"code": "provider.timeout", "after_chunks": 2}, "text": "abc", "chunks": 3}, ["a", "b"]),
        ({"error": {"code": "provider.timeout"}, "text": "never said"}, []),
    ],
)
def test_an_error_comes_after_its_chunks(tmp_path: Path, reply: dict[str, Any], chunks: list[str]) -> None:
    model = Model(tmp_path, reply)
    with pytest.raises(ProviderError) as caught:
        model.ask()
    assert (caught.value.code, model.chunks) == ("provider.timeout", chunks)


# ------------------------------------------------------------------------------------------ time and cancel


def test_a_delay_takes_time_of_the_port_and_ends_at_the_deadline(tmp_path: Path) -> None:
    model = Model(tmp_path, {"text": "late", "delay_ms": 1500})
    assert model.ask(deadline=2.0).text == "late"
    assert model.host.ports.clock.monotonic() == 1.5
    with pytest.raises(ProviderError) as caught:
        model.ask(deadline=1.0)
    assert caught.value.code == "provider.timeout"
    assert model.host.ports.clock.monotonic() == 2.5


def test_a_cancel_during_the_chunks_stops_them(tmp_path: Path) -> None:
    model = Model(tmp_path, {"text": "abc", "chunks": 3})

    def hear(chunk: Chunk) -> None:
        model.chunks.append(chunk.text)
        model.token.cancel("stop")

    call = CallContext(model.token, hear)
    with pytest.raises(Cancelled):
        model.provider.complete(ask("Go.", routing=Routing("", "", 1, 1)), call)
    assert model.chunks == ["a"]


def test_tokens_are_counted_by_the_byte(tmp_path: Path) -> None:
    model = Model(tmp_path, {"text": "x"}).provider
    [message] = ask("ü" * 100).messages
    plain = model.count_tokens([message])
    assert plain == -(-len(message.to_json_bytes()) // 4)
    assert model.count_tokens([message], [ToolSchema("a", "b", {"type": "object"})]) > plain


# ---------------------------------------------------------------------------------------- what is no script


BROKEN = {
    "no reply list": ("schema: harness.script/1", "replies: Field required.", 1),
    "another schema": ("schema: harness.script/2\nreplies: []", "schema: Input should be 'harness.script/1'.", 1),
    "an empty file": ("", "Input should be", 1),
    "a misspelt key": ("{h}\n- txt: x", "replies[0].txt: Extra inputs are not permitted.", 3),
    "a misspelt condition": ("{h}\n- text: a\n- when:\n    stag: x\n  text: b", "replies[1].when.stag: Extra", 5),
    "nothing to say": ("{h}\n- delay_ms: 1", "replies[0]: A reply has one of", 3),
    "two answers": ("{h}\n- text: a\n  json: 1", "replies[0]: A reply has one of", 3),
    "calls and JSON": ("{h}\n- json: a\n  tool_calls: [{name: x}]", "replies[0]: A reply has one of", 3),
    "calls and an error": ("{h}\n- error: {code: x}\n  tool_calls: [{name: x}]", "replies[0]: A reply has one of", 3),
    "no calls": ("{h}\n- tool_calls: []", "replies[0].tool_calls: ", 3),
    "chunks that are not the text": ("{h}\n- text: ab\n  chunks: [a, c]", "replies[0]: The chunks", 3),
    "a turn of zero": ("{h}\n- when: {turn: 0}\n  text: x", "replies[0].when.turn: ", 3),
    "a number for a text": ("{h}\n- text: 42", "replies[0].text: Input should be a valid string.", 3),
    "more cached than read": (
        "{h}\n- text: a\n  usage: {input_tokens: 1, cached_input_tokens: 2}", "replies[0].usage: cached", 4
    ),
    "a price": ("{h}\n- text: a\n  usage: {cost_usd: 1}", "replies[0].usage: Usage is tokens only", 4),
    "an error code that is none": ("{h}\n- error: {code: Not A Code}", "replies[0].error.code: ", 3),
    "a doubled key": ("{h}\n- text: a\n  text: b", "the key 'text' stands twice", "4:3"),
    "an alias": ("{h}\n- &a {text: a}\n- *a", "aliases are not allowed", "4:3"),
    "a merge of an alias": ("{h}\n- &a {text: a}\n- <<: *a", "aliases are not allowed", "4:7"),
    "a Python object": ("{h}\n- !!python/object/apply:os.system [id]", "could not determine a constructor", "3:3"),
    "broken YAML": ("{h}\n- text: [", "YAML", "3:10"),
    "a key that is no text": ("{h}\n- 1: a", "the key 1 is not text", "3:3"),
    "deep nesting": ("{h}\n- json: " + "[" * 60 + "]" * 60, "nested too deep", "3:54"),
    "an integer too large": ("{h}\n- json: 9007199254740993", "replies[0].json: The integer", 3),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message", "line"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_script_is_named_by_file_line_and_reply(
    tmp_path: Path, text: str, message: str, line: int | str
) -> None:
    with pytest.raises(ConfigError) as caught:
        provider(tmp_path, text.replace("{h}", "schema: harness.script/1\nreplies:"))
    assert message in caught.value.message
    assert caught.value.where == f"script.yaml:{line}"


def test_words_that_yaml_guesses_about_are_taken_as_written(tmp_path: Path) -> None:
    model = provider(
        tmp_path,
        "\ufeffschema: harness.script/1\nreplies:\n"
        "- when: {turn: 1}\n  text: yes\n"
        "- when: {turn: 2}\n  json: {a: on, b: 12:30:00, c: 2026-01-01, d: 0o17, e: 1_000, f: .inf, g: true, h: ~}\n",
    )
    token = FakeHost(tmp_path).ports.wait.token()
    answers = [
        model.complete(ask("Go.", routing=Routing("", "", 1, turn)), CallContext(token, lambda _: None)).text
        for turn in (1, 2)
    ]
    assert answers[0] == "yes"
    assert json.loads(answers[1]) == {
        "a": "on", "b": "12:30:00", "c": "2026-01-01", "d": "0o17", "e": "1_000", "f": ".inf", "g": True, "h": None,
    }  # fmt: skip


def test_the_script_in_the_readme_is_one(tmp_path: Path) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    script = next(block for block in readme.split("```yaml\n") if block.startswith("# demo.yaml")).split("```")[0]
    model = provider(tmp_path, script)
    token = FakeHost(tmp_path).ports.wait.token()
    request = ask("Go.", routing=Routing("coder", "build", 1, 2))
    assert model.complete(request, CallContext(token, lambda _: None)).text == "Done."
