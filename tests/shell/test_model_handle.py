"""The model of a role call: what is recorded of a question is what was asked, whatever was asked before it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from harness_core.kernel.commands import Record
from harness_core.kernel.facts import Event
from harness_core.shell.deadlines import Deadlines
from harness_core.shell.error_told import error_told
from harness_core.shell.journal import Journal
from harness_core.shell.model_handle import BoundModel, ModelEntry
from harness_core.shell.ports import HostPorts
from harness_core.shell.recorder import RoleCallRecorder
from harness_core.shell.redaction import Redactor
from harness_core.shell.services import ActiveTime, Services
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.kit.prompt import prompt_hash
from harness_hookspecs.messages import (
    ChatInput,
    Message,
    OracleResponse,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolCallRequest,
    Usage,
)
from harness_hookspecs.provider import CallContext, ModelRequest

YES = OracleResponse(content=(TextPart(text="yes"),), finish_reason="stop", usage=Usage(input_tokens=3))
LISTS = {"z": 1.0, "a": -0.0, "": 1e22, "e": 1e16, "\u20ac": [1e-7]}
"""What its canonical form orders and writes otherwise."""
ANSWERS = {
    "calls in the message alone, none named": ((ToolCallPart(call_id="c", tool_name="t", args={}),), ()),
    "calls in the message alone": ((ToolCallPart(call_id="c", tool_name="t", args={}),), None),
    "calls with odd arguments": (
        (ToolCallPart(call_id="c", tool_name="t", args=LISTS),),
        (ToolCallRequest(call_id="c", tool_name="t", args=LISTS),),
    ),
    "nothing": ((), ()),
    "thought and refused": ((ReasoningPart(text="hm", signature="s"), RefusalPart(text="no")), None),
}


class Answers:
    """A provider that answers anything, and counts nothing."""

    def __init__(self, answer: OracleResponse) -> None:
        self.answer = answer

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        request.params["mine"] = True  # type: ignore[index]  # its own, to change as it likes
        return self.answer

    def close(self) -> None:
        """Nothing was opened."""


class Log:
    """Stands where the loop would: keeps the payloads of the questions, and everything as it would be stored."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.events: list[Event] = []
        self.blobs: dict[str, bytes] = {}

    def lay_down(self, command: Record, *, durable: bool) -> None:
        self.asked += [fact.payload for fact in command.intent]
        for fact in (*command.results, *command.intent):
            payload = loads_trusted(dumps(fact.payload))
            self.events.append(Event(len(self.events) + 1, "e", fact.type, payload, fact.refs, "", 1))
        self.blobs.update(command.blobs)

    def carry_out(self, ticket: None) -> None:
        """Nothing is said of it."""


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def model(log: Log, threads: HostPorts) -> BoundModel:
    return bound(log, threads, YES)


def shown_tool(name: str, schema_hash: str) -> Any:
    reference = {"name": name, "schemaHash": schema_hash, "tier": "T0"}
    return SimpleNamespace(
        name=name, schema_hash=schema_hash, schema=lambda: name, reference=lambda: reference, shown=dict
    )


def bound(log: Log, ports: HostPorts, answer: OracleResponse, tools: Mapping[str, Any] | None = None) -> BoundModel:
    """The model of a role call that has recorded what is in the log."""
    loop: Any = log
    journal = Journal(log.events)
    read = log.blobs.__getitem__
    recorder = RoleCallRecorder(loop, ports, role_call_id="role_1", refs={}, journal=journal, read_blob=read)
    token, deadlines, active = ports.wait.token(), Deadlines(ports), ActiveTime(ports)
    services = Services(ports, loop, Redactor(), deadlines, token, token, lambda chunk: None, active)
    entry = ModelEntry("m", "p", "m-1", (), 1000, {}, Answers(answer), 1.0)
    return BoundModel(entry, recorder=recorder, services=services, tools=tools or {}, routing=("", "", 1), params={})


def ask(**more: Any) -> ChatInput:
    return ChatInput(messages=(Message(role="user", content=(TextPart(text="well?"),)),), **more)


@pytest.mark.req("A-65")
def test_a_question_is_recorded_with_its_own_parameters_and_schema_whatever_was_asked_before(
    model: BoundModel, log: Log
) -> None:
    schemas = [{"const": 1}, {"const": 1.5}, {"const": True}, None]
    chats = [ask(response_schema=schema, temperature=warm) for schema in schemas for warm in (None, 1, 1.5)]
    for chat in [chat for one in chats for chat in (one, one)]:
        model.complete(chat)
        (*_, called), wire = log.asked, chat.to_wire()
        params = {"temperature": wire["temperature"]} if "temperature" in wire else {}
        if chat.response_schema is not None:
            params["responseSchemaHash"] = digest(wire["responseSchema"])
        assert called["request"]["params"] == params
        messages = wire["messages"]
        assert called["promptHash"] == prompt_hash(
            provider="p", model_id="m-1", params=params, tools={}, messages=messages
        )


@pytest.mark.req("A-65")
def test_a_question_is_recorded_with_its_own_tools_whatever_was_shown_before(log: Log, threads: HostPorts) -> None:
    hashes = {name: digest(name) for name in ("look", "write")}
    model = bound(log, threads, YES, tools={name: shown_tool(name, value) for name, value in hashes.items()})
    for names in (["look"], ["write"], ["look", "write"], [], ["look"]):
        chat = ask(tools=names)
        model.complete(chat)
        tools, messages = {name: hashes[name] for name in names}, chat.to_wire()["messages"]
        assert log.asked[-1]["promptHash"] == prompt_hash(
            provider="p", model_id="m-1", params={}, tools=tools, messages=messages
        )


@pytest.mark.req("A-65")
def test_a_schema_that_a_role_has_changed_since_its_last_question_is_another_one(model: BoundModel, log: Log) -> None:
    schema: dict[str, Any] = {"const": 1}
    chat = ask().model_copy(update={"response_schema": schema})
    for value in (1, 2):
        schema["const"] = value
        model.complete(chat)
        assert log.asked[-1]["request"]["params"]["responseSchemaHash"] == digest({"const": value})


@pytest.mark.req("A-68")
def test_what_a_role_call_used_is_the_sum_over_its_answers(model: BoundModel) -> None:
    assert model.usage() == Usage()
    for _ in range(3):
        model.complete(ask())
    assert model.usage() == Usage(input_tokens=9)


@pytest.mark.inv("I-18")
@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_is_the_same_when_it_is_read_from_its_record(threads: HostPorts, log: Log, what: str) -> None:
    content, calls = ANSWERS[what]
    answer = OracleResponse(content=content, tool_calls=calls, finish_reason="stop", usage=Usage(known=False))
    asked = bound(log, threads, answer)
    given = asked.complete(ask())
    asked.complete(ask())  # writes what the first came to
    told = bound(log, threads, YES).complete(ask())
    assert told == given
    assert repr(told) == repr(given)  # also the order of keys and the kinds of numbers, which roles make texts of


def test_a_role_that_changes_the_facts_of_an_error_changes_its_own() -> None:
    recorded = {"name": "ProviderError", "message": "no", "details": {"tried": ["a"]}}
    error_told(recorded).facts["tried"].append("b")
    assert recorded["details"] == {"tried": ["a"]}
