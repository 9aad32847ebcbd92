from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.provider import ProviderContract, ask
from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules
from harness_hookspecs.errors import ProviderError, ToolError
from harness_hookspecs.messages import Message, OracleResponse, TextPart, Usage
from harness_hookspecs.provider import CallContext, Chunk, ModelRequest, ToolSchema

WORDS = ("All ", "is ", "well.")


class Reference:
    """Keeps every rule: says the same three words to everything, or true where a schema asks."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.answered = 0

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        self.fail(request)
        call.on_begin()
        for word in self.words(request):
            call.cancel.raise_if_cancelled()
            call.on_chunk(Chunk("text", word))
        call.cancel.raise_if_cancelled()
        self.answered += 1
        return self.response("".join(self.words(request)))

    def fail(self, request: ModelRequest) -> None:
        if request.messages[0].text == "fail":
            raise ProviderError("It cannot be answered.", code="provider.context_overflow")

    def words(self, request: ModelRequest) -> Sequence[str]:
        return WORDS if request.response_schema is None else ('{"answer":', "true}")

    def response(self, text: str, **rest: Any) -> OracleResponse:
        usage = Usage(input_tokens=5, output_tokens=3, cached_input_tokens=2)
        content = (TextPart(text=text),)
        return OracleResponse(**{"content": content, "finish_reason": "stop", "usage": usage, **rest})

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        return sum(len(message.text.split()) for message in messages)

    def close(self) -> None:
        return


class ReferenceContract(ProviderContract):
    is_deterministic = True

    def failing_question(self) -> ModelRequest:
        return ask("fail")


def responding(**rest: Any) -> type[Reference]:
    class Responding(Reference):
        def response(self, text: str, **_: Any) -> OracleResponse:
            return super().response(text, **rest)

    return Responding


class Prose(Reference):
    def words(self, request: ModelRequest) -> Sequence[str]:
        return WORDS


class Chatty(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        call.on_chunk(Chunk("text", "Well, "))
        return super().complete(request, call)


class BeginningLate(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        answer = super().complete(request, call)
        call.on_begin()
        return answer


class Counting(Reference):
    def words(self, request: ModelRequest) -> Sequence[str]:
        return super().words(request) if request.response_schema else (f"This is answer {self.answered}.",)


class Deaf(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        return super().complete(request, call._replace(cancel=self.host.ports.wait.token()))


class DeafWhileSpeaking(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        call.cancel.raise_if_cancelled()
        return super().complete(request, call._replace(cancel=self.host.ports.wait.token()))


class Untyped(Reference):
    def fail(self, request: ModelRequest) -> None:
        if request.messages[0].text == "fail":
            raise ToolError("It is not even a tool.")


class Meddling(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        assert isinstance(request.params, dict)
        request.params["seen"] = True
        return super().complete(request, call)


class Exporting(Reference):
    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        os.environ["MODEL_READY"] = "1"
        return super().complete(request, call)


class ClosedOnce(Reference):
    closed = False

    def close(self) -> None:
        if self.closed and self.answered:
            self.answered = 0
            raise ProviderError("It is closed.")
        self.closed = True


class CountingCalls(Reference):
    counted = 0

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        self.counted += 1
        return super().count_tokens(messages, tools) + self.counted


BROKEN: dict[str, type[Reference]] = {
    "provider.says_why_it_stopped": responding(finish_reason="tool_calls"),
    "provider.usage_is_honest": responding(usage=Usage()),
    "provider.answer_fits_the_schema": Prose,
    "provider.chunks_are_the_answer": Chatty,
    "provider.begins_before_it_answers": BeginningLate,
    "provider.same_question_same_answer": Counting,
    "provider.cancel_is_respected": Deaf,
    "provider.errors_are_typed": Untyped,
    "provider.request_is_left_alone": Meddling,
    "provider.environment_is_left_alone": Exporting,
    "provider.closes_twice": ClosedOnce,
    "provider.counts_consistently": CountingCalls,
}


class TestReference(ReferenceContract):
    def subject(self) -> Reference:
        return Reference(self.host)


def made(kind: type[Reference]) -> Callable[[Contract], Reference]:
    return lambda running: kind(running.host)


def test_each_rule_of_a_provider_bites() -> None:
    broken = {label: made(kind) for label, kind in BROKEN.items()}
    assert complaints(ReferenceContract, good=made(Reference), broken=broken, at_most=2) == []


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (DeafWhileSpeaking, "provider.cancel_is_respected"),
        (responding(usage=Usage.model_construct(input_tokens=1, output_tokens=1, cached_input_tokens=2)),
         "provider.usage_is_honest"),
        (responding(finish_reason="error"), "provider.says_why_it_stopped"),
    ],
)  # fmt: skip
def test_other_ways_to_break_a_rule_are_noticed(kind: type[Reference], label: str) -> None:
    assert failing_rules(ReferenceContract, made(kind), only=[label]) == {label}


def test_a_provider_that_reports_no_usage_is_honest() -> None:
    assert failing_rules(ReferenceContract, made(responding(usage=Usage.unknown()))) == set()
