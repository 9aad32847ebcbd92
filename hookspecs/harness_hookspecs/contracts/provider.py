"""What every provider promises: a provider and sample questions go in, the rules that it breaks come out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.errors import Cancelled, HarnessError, ProviderError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema
from harness_hookspecs.messages import Message, OracleResponse, TextPart
from harness_hookspecs.provider import CallContext, Chunk, CountsTokens, ModelRequest, Provider, Routing
from harness_hookspecs.value import thaw

from .rules import Contract, raised_by, rule

__all__ = ["ANSWER_SCHEMA", "ProviderContract", "ask"]

ANSWER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}},
    "required": ["answer"],
    "additionalProperties": False,
}
"""What the default schema question wants."""


def ask(text: str, **rest: Any) -> ModelRequest:
    """A request with one message of the user; ``rest`` are further fields of the request."""
    message = Message(role="user", content=(TextPart(text=text),))
    params = {"max_output_tokens": 64, "seed": 7, "temperature": 0.0}
    return ModelRequest(**{"model_id": "model", "messages": (message,), "params": params, **rest})


class ProviderContract(Contract):
    """The suite of kind ``provider``; each subject is closed when its test ends.

    Attributes:
        is_deterministic: Whether the same question always gets the same answer; then that is a rule too.
    """

    is_deterministic = False

    def subject(self) -> Provider:
        """The provider, able to answer the questions below."""
        raise NotImplementedError("override subject()")

    def question(self) -> ModelRequest:
        """An ordinary question, answered with some text."""
        return ask("Say something.", routing=Routing("coder", "build", 1, 1))

    def schema_question(self) -> ModelRequest | None:
        """A question with a response schema, ``None`` for a provider without such answers."""
        return self.question()._replace(response_schema=ANSWER_SCHEMA)

    def failing_question(self) -> ModelRequest | None:
        """A question that the subject cannot answer, where there is one."""
        return None

    def setup_method(self) -> None:
        """Make the host."""
        super().setup_method()
        self._open: list[Provider] = []
        self._environment = dict(os.environ)

    def teardown_method(self) -> None:
        """Close every subject and undo what it did to this process."""
        for provider in self._open:
            provider.close()
        os.environ.clear()
        os.environ.update(self._environment)
        super().teardown_method()

    # ------------------------------------------------------------------------------------------- answers

    @rule("provider.says_why_it_stopped")
    def test_an_answer_has_a_finish_reason_that_fits_it(self) -> None:
        answer, _ = self._answer(self.question())
        assert isinstance(answer, OracleResponse)
        assert OracleResponse.from_wire(codec.loads(answer.to_json_bytes())) == answer
        assert answer.finish_reason in {"stop", "length"}
        assert not answer.tool_calls, "nobody offered a tool"

    @rule("provider.usage_is_honest")
    def test_usage_is_what_was_used_or_not_known(self) -> None:
        answer, _ = self._answer(self.question())
        usage = answer.usage
        assert usage.cached_input_tokens <= usage.input_tokens
        assert usage.reasoning_tokens <= usage.output_tokens
        if usage.known:
            assert usage.input_tokens > 0, "a question is never free: unknown is not zero"
            assert usage.output_tokens > 0 or not answer.text

    @rule("provider.answer_fits_the_schema")
    def test_an_answer_satisfies_the_response_schema(self) -> None:
        question = self.schema_question()
        if question is None or question.response_schema is None:
            return
        answer, _ = self._answer(question)
        if answer.finish_reason != "length":  # what was cut off is not complete
            assert best_fault(compiled_schema(question.response_schema), codec.loads(answer.text)) is None

    @rule("provider.chunks_are_the_answer")
    def test_the_chunks_joined_are_the_text(self) -> None:
        answer, chunks = self._answer(self.question())
        assert {chunk.kind for chunk in chunks} <= {"text", "reasoning"}
        text = "".join(chunk.text for chunk in chunks if chunk.kind == "text")
        assert text in {"", answer.text}

    @rule("provider.begins_before_it_answers")
    def test_a_call_begins_at_most_once_and_before_its_first_chunk(self) -> None:
        chunks: list[Chunk] = []
        begun: list[int] = []
        call = CallContext(self.host.ports.wait.token(), chunks.append, on_begin=lambda: begun.append(len(chunks)))
        self._made().complete(self.question(), call)
        assert begun in ([], [0])

    @rule("provider.same_question_same_answer")
    def test_an_answer_depends_on_the_question_alone(self) -> None:
        if not self.is_deterministic:
            return
        subject = self._made()
        first, _ = self._ask(subject, self.question())
        self._ask(subject, self.schema_question() or self.question())
        assert self._ask(subject, self.question())[0] == first == self._answer(self.question())[0]

    # ----------------------------------------------------------------------------------- cancel and errors

    @rule("provider.cancel_is_respected")
    def test_a_cancelled_call_ends_as_cancelled(self) -> None:
        token = self.host.ports.wait.token()
        token.cancel("stop")
        call = CallContext(token, lambda chunk: None)
        assert raised_by(self._made().complete, self.question(), call) is Cancelled

    @rule("provider.cancel_is_respected")
    def test_a_call_cancelled_while_it_answers_ends_as_cancelled(self) -> None:
        token = self.host.ports.wait.token()
        heard: list[Chunk] = []

        def hear(chunk: Chunk) -> None:
            heard.append(chunk)
            token.cancel("stop")

        raised = raised_by(self._made().complete, self.question(), CallContext(token, hear))
        assert raised is Cancelled or not heard

    @rule("provider.errors_are_typed")
    def test_what_cannot_be_answered_is_a_provider_error(self) -> None:
        question = self.failing_question()
        if question is None:
            return
        subject = self._made()
        call = CallContext(self.host.ports.wait.token(), lambda chunk: None)
        try:
            subject.complete(question, call)
        except HarnessError as problem:
            assert isinstance(problem, ProviderError)
            assert problem.code and problem.message
        else:
            raise AssertionError("the question was answered")

    # ------------------------------------------------------------------------------------------ good manners

    @rule("provider.request_is_left_alone")
    def test_a_call_does_not_change_the_question(self) -> None:
        question = self.question()
        before = _frozen(question)
        self._answer(question)
        assert _frozen(question) == before

    @rule("provider.environment_is_left_alone")
    def test_a_provider_changes_neither_environment_nor_working_folder(self) -> None:
        before = dict(os.environ), os.getcwd()
        self._answer(self.question())
        assert (dict(os.environ), os.getcwd()) == before

    @rule("provider.closes_twice")
    def test_closing_is_possible_at_any_time_and_again(self) -> None:
        unused, used = self._made(), self._made()
        self._ask(used, self.question())
        for provider in (unused, unused, used, used):
            provider.close()

    @rule("provider.counts_consistently")
    def test_more_text_is_not_fewer_tokens(self) -> None:
        subject = self._made()
        if not isinstance(subject, CountsTokens):
            return
        [message] = self.question().messages[:1]
        few, many = subject.count_tokens((message,)), subject.count_tokens((message, message))
        assert 0 < few < many
        assert subject.count_tokens((message,)) == few

    # -------------------------------------------------------------------------------------------- helpers

    def _made(self) -> Provider:
        provider = self.subject()
        self._open.append(provider)
        return provider

    def _answer(self, question: ModelRequest) -> tuple[OracleResponse, list[Chunk]]:
        return self._ask(self._made(), question)

    def _ask(self, subject: Provider, question: ModelRequest) -> tuple[OracleResponse, list[Chunk]]:
        chunks: list[Chunk] = []
        return subject.complete(question, CallContext(self.host.ports.wait.token(), chunks.append)), chunks


def _frozen(question: ModelRequest) -> bytes:
    messages = [message.to_wire() for message in question.messages]
    tools = [thaw(dict(tool._asdict())) for tool in question.tools]
    rest = [dict(question.params), None if question.response_schema is None else thaw(dict(question.response_schema))]
    return codec.dumps([messages, tools, rest], sort_keys=True)
