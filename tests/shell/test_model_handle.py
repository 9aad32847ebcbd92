"""The model of a role call: what is recorded of a question is what was asked, whatever was asked before it."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.commands import Record
from harness_core.shell.deadlines import Deadlines
from harness_core.shell.journal import Journal
from harness_core.shell.model_handle import BoundModel, ModelEntry, error_told
from harness_core.shell.ports import HostPorts
from harness_core.shell.recorder import RoleCallRecorder
from harness_core.shell.redaction import Redactor
from harness_core.shell.services import ActiveTime, Services
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.prompt import prompt_hash
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, TextPart, Usage
from harness_hookspecs.provider import CallContext, ModelRequest


class Answers:
    """A provider that answers anything, and counts nothing."""

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        request.params["mine"] = True  # type: ignore[index]  # its own, to change as it likes
        return OracleResponse(content=(TextPart(text="yes"),), finish_reason="stop", usage=Usage(input_tokens=3))

    def close(self) -> None:
        """Nothing was opened."""


class Log:
    """Stands where the loop would: keeps the payloads of the questions."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def lay_down(self, command: Record, *, durable: bool) -> None:
        self.asked += [fact.payload for fact in command.intent]

    def carry_out(self, ticket: None) -> None:
        """Nothing is said of it."""


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def model(log: Log, threads: HostPorts) -> BoundModel:
    loop: Any = log
    blob: Any = None
    recorder = RoleCallRecorder(loop, threads, role_call_id="role_1", refs={}, journal=Journal(), read_blob=blob)
    token, deadlines, active = threads.wait.token(), Deadlines(threads), ActiveTime(threads)
    services = Services(threads, loop, Redactor(), deadlines, token, token, lambda chunk: None, active)
    entry = ModelEntry("m", "p", "m-1", (), 1000, {}, Answers(), 1.0)
    return BoundModel(entry, recorder=recorder, services=services, tools={}, routing=("", "", 1), params={})


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


@pytest.mark.req("A-68")
def test_what_a_role_call_used_is_the_sum_over_its_answers(model: BoundModel) -> None:
    assert model.usage() == Usage()
    for _ in range(3):
        model.complete(ask())
    assert model.usage() == Usage(input_tokens=9)


def test_a_role_that_changes_the_facts_of_an_error_changes_its_own() -> None:
    recorded = {"name": "ProviderError", "message": "no", "details": {"tried": ["a"]}}
    error_told(recorded).facts["tried"].append("b")
    assert recorded["details"] == {"tried": ["a"]}
