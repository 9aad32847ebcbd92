"""A role's question in, the model's recorded answer out: hash, reservation, intent, call, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import attrs

from harness_core.kernel.facts import derive
from harness_hookspecs.errors import HarnessError, ProviderError
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical, sha256
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.kit.frozen import FrozenDict
from harness_hookspecs.kit.prompt import PromptHasher
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, Usage
from harness_hookspecs.provider import CallContext, Chunk, CountsTokens, ModelRequest, Provider, Routing, ToolSchema

from .conversation import NOTHING_SAID, Conversation, went_on
from .error_told import error_told
from .journal import CallRecord
from .perform_attempt import attempt
from .recorder import RoleCallRecorder
from .redaction import ChunkRedactor
from .services import Services
from .toolbox import Tool

__all__ = ["BoundModel", "ModelEntry", "counted_tokens"]

CHARACTERS_PER_TOKEN = 3
"""A cautious estimate for a reservation where the provider cannot count: more tokens than English text has."""
_NOTHING: Final = Usage()  # of a call that asks no model, as most steps of a plan do


@attrs.frozen
class ModelEntry:
    """A model entry of ``models.yaml``, built."""

    name: str
    provider_name: str
    model_id: str
    capabilities: tuple[str, ...]
    context_tokens: int
    params: Mapping[str, Any]
    provider: Provider
    timeout_seconds: float
    path: str | None = None
    live: bool = True  # in a replay nobody is asked, whoever answers
    # Asked once here: looking whether an object fits a protocol is slow, and questions are many.
    counter: CountsTokens | None = attrs.field(init=False)

    @counter.default
    def _find_counter(self) -> CountsTokens | None:
        return self.provider if isinstance(self.provider, CountsTokens) else None


class _Question(NamedTuple):
    """What a model is asked beside the messages, as it is recorded, and the hash of both."""

    tools: list[Tool]
    params: dict[str, Any]
    response_schema: Mapping[str, Any] | None
    prompt_hash: str


class _Answer(NamedTuple):
    """A provider's answer as the role is given it, and as it is recorded: in its event and in its message."""

    given: OracleResponse
    response: dict[str, Any]
    content: bytes


class _Elsewhere(NamedTuple):
    """A provider of which a role has the one function."""

    complete: Callable[[ModelRequest, CallContext], OracleResponse]

    def close(self) -> None:
        """Nothing was opened."""


class BoundModel:
    """The model of one role call; implements :class:`~harness_hookspecs.role.ModelHandle`."""

    def __init__(
        self,
        entry: ModelEntry,
        *,
        recorder: RoleCallRecorder,
        services: Services,
        tools: Mapping[str, Tool],
        routing: tuple[str, str, int],
        params: Mapping[str, Any],
        slot: str | None = None,
    ) -> None:
        self._entry, self._recorder = entry, recorder
        self._ports, self._redactor, self._cancel = services.ports, services.redactor, services.late_cancel
        self._tools, self._routing, self._on_chunk = tools, routing, services.on_chunk
        self._active, self._recorded_error = services.active, services.recorded
        self.slot_id = slot or entry.name
        self.provider = entry.provider_name
        self.model_id = entry.model_id
        self.capabilities: Sequence[str] = entry.capabilities
        self.context_tokens = entry.context_tokens
        self.params: Mapping[str, Any] = {**entry.params, **params}
        self.last_turn: int | None = None
        # By scope: one role call may ask several questions side by side, and each scope is a conversation of its own.
        self._turns: dict[str, int] = {}
        self._said: dict[str, Conversation] = {}
        self._turn_of_call: dict[str, int] = {}
        self._stored: set[str] = set()
        self._last_schema: tuple[Mapping[str, Any], str] | None = None
        self._last_hasher: tuple[bytes, PromptHasher] | None = None
        self._usages: list[Usage] = []

    def complete(
        self, chat: ChatInput, *, scope: str = "", on_chunk: Callable[[Chunk], None] | None = None
    ) -> OracleResponse:
        self._recorder.check_open()
        turn = self._turns[scope] = self._turns.get(scope, 0) + 1
        self.last_turn = turn
        said, contents = went_on(self._said.get(scope, NOTHING_SAID), chat.messages, self._redactor.message)
        self._said[scope] = said
        question = self._question(chat, said)
        record = self._recorder.recorded_model(scope, turn, question.prompt_hash)
        if record is not None and record.ended is not None:
            return self._recorded(record)
        request = self._request(chat, question, said, turn)
        if record is None:
            reserve = self._reservation(request, said)
            called = {**self._called(question, scope, turn, said), "reservedTokens": reserve}
            schemas = self._schemas(question)
            blobs = {ref: content for ref, content in {**contents, **schemas}.items() if ref not in self._stored}
            self._recorder.intend(
                [self._recorder.fact("harness.model.called", called, actor="agent")],
                blobs,
                reserve_tokens=reserve,
                elapsed_seconds=self._active.seconds(),
            )
            self._stored.update(blobs)  # now, and not before: a question beside this one may be stored first
        else:
            called = dict(record.intent)  # its answer was lost: it is asked again, and the log says so
            self._recorder.intend([self._recorder.fact("harness.model.called", called, actor="agent")])
        return self._ask(request, called, on_chunk or self._on_chunk)

    def elsewhere(
        self, answer: Callable[[ModelRequest, CallContext], OracleResponse], *, provider: str, model_id: str
    ) -> BoundModel:
        """One that shares all that is counted, so that no two calls are taken for each other."""
        asked = _Elsewhere(answer) if self._entry.live else self._entry.provider
        other = copy(self)
        other._entry = attrs.evolve(self._entry, provider=asked)
        other.provider, other.model_id, other.params = provider, model_id, {}
        other._last_hasher = None
        return other

    def turn_of(self, call_id: str) -> int | None:
        """The turn in which the model asked for that tool call; ``None`` for a call that no answer of its holds."""
        return self._turn_of_call.get(call_id)

    def usage(self) -> Usage:
        """What all answers used that there are."""
        return Usage.sum_of(self._usages) if self._usages else _NOTHING

    # -- the question ---

    def _question(self, chat: ChatInput, said: Conversation) -> _Question:
        tools = [self._tools[name] for name in sorted(chat.tools or ()) if name in self._tools]
        schema = self._redactor.value(chat.response_schema)
        params = self._params(chat)
        if schema is not None:
            params["responseSchemaHash"] = self._schema_hash(schema)
        hasher = self._hasher(tools, params)
        hasher.add_digests(said.joined_digests)
        return _Question(tools, params, schema, hasher.hexdigest())

    def _schema_hash(self, schema: Mapping[str, Any]) -> str:
        """Of a schema that cannot change, most often the last question's own, which is not hashed once more."""
        known = self._last_schema
        if known is None or known[0] is not schema:
            known = schema, digest(schema)
            self._last_schema = known if type(schema) is FrozenDict else None
        return known[1]

    def _hasher(self, tools: Sequence[Tool], params: Mapping[str, Any]) -> PromptHasher:
        """One that lacks the messages; what comes before them is most often the last question's."""
        before = dumps([[tool.name for tool in tools], params])
        known = self._last_hasher
        if known is None or known[0] != before:
            hashes = {tool.name: tool.schema_hash for tool in tools}
            hasher = PromptHasher(provider=self.provider, model_id=self.model_id, params=params, tools=hashes)
            known = self._last_hasher = before, hasher
        return known[1].copy()

    def _params(self, chat: ChatInput) -> dict[str, Any]:
        own = {"max_output_tokens": chat.max_output_tokens, "temperature": chat.temperature, "top_p": chat.top_p}
        return {**self.params, **{name: value for name, value in own.items() if value is not None}}

    def _request(self, chat: ChatInput, question: _Question, said: Conversation, turn: int) -> ModelRequest:
        """What the provider is asked: its own, to change as it likes."""
        persona, stage, stage_attempt = self._routing
        return ModelRequest(
            model_id=self.model_id,
            messages=list(said.clean),
            tools=[tool.schema() for tool in question.tools],
            params=self._params(chat),
            response_schema=question.response_schema,
            routing=Routing(persona, stage, stage_attempt, turn),
        )

    def _called(self, question: _Question, scope: str, turn: int, said: Conversation) -> dict[str, Any]:
        """The intent."""
        return {
            "turn": turn,
            "callId": derive("call", self._recorder.role_call_id, scope, turn),
            "scope": scope,
            "promptHash": question.prompt_hash,
            "request": {
                "model": {"provider": self.provider, "modelId": self.model_id},
                "messages": said.digests,
                "tools": [tool.reference() for tool in question.tools],
                "params": question.params,
            },
        }

    def _schemas(self, question: _Question) -> dict[str, bytes]:
        """The schemas of tools and answer as shown, sent along until stored: what was shown is logged (I-40)."""
        shown: dict[str, Callable[[], dict[str, Any]]] = {tool.schema_hash: tool.shown for tool in question.tools}
        if question.response_schema is not None:
            schema = question.response_schema
            shown[question.params["responseSchemaHash"]] = lambda: dict(schema)
        return {value: canonical(content()) for value, content in shown.items() if value not in self._stored}

    def _reservation(self, request: ModelRequest, said: Conversation) -> int:
        """Prompt tokens and the longest reply; both are given back as far as they were not used."""
        reply = int(request.params.get("max_output_tokens") or 1024)
        if self._entry.counter is not None:
            counted = counted_tokens(self._entry.counter, request.messages, request.tools)
            if counted is not None:
                return counted + reply
        return sum(said.sizes_bytes) // CHARACTERS_PER_TOKEN + reply

    # -- the answer ---

    def _ask(
        self, request: ModelRequest, called: Mapping[str, Any], on_chunk: Callable[[Chunk], None]
    ) -> OracleResponse:
        started = self._ports.clock.monotonic()
        timing: dict[str, Any] = {}
        streams: dict[str, ChunkRedactor] = {}

        def reached(name: str) -> None:
            timing.setdefault(name, int((self._ports.clock.monotonic() - started) * 1000))

        def tell(chunk: Chunk) -> None:
            reached("firstTokenMs")
            text = streams.setdefault(chunk.kind, ChunkRedactor(self._redactor)).feed(chunk.text)
            if text:
                on_chunk(chunk._replace(text=text))

        context = CallContext(self._cancel, tell, self._entry.timeout_seconds, lambda: reached("queueMs"))
        done = attempt(self._entry.provider.complete, request, context, what=f"provider {self.provider}")
        reached("totalMs")
        for kind, stream in streams.items():
            if held := stream.rest():
                on_chunk(Chunk(kind, held))  # type: ignore[arg-type]  # a kind that came with a chunk
        self._recorder.reach("effect.done")
        if done.error is not None:
            raise self._failed(called, done.error)
        answer = attempt(self._normalised, done.value, called, what=f"the answer of provider {self.provider}")
        if answer.value is None:
            said = answer.error.message if answer.error is not None else "it is none"
            message = f"provider {self.provider} gave no answer: {said}"
            raise self._failed(called, ProviderError(message, code="provider.no_answer"))
        return self._responded(called, answer.value, timing)

    def _responded(self, called: Mapping[str, Any], answered: _Answer, timing: dict[str, Any]) -> OracleResponse:
        answer, response, content = answered
        self._took(answer, called["turn"])
        usage = answer.usage
        spent = usage.total_tokens if usage.known else max(usage.total_tokens, called.get("reservedTokens", 0))
        if answer.text:
            response["text"] = answer.text
        payload: dict[str, Any] = {
            "turn": called["turn"],
            "callId": called["callId"],
            "model": {"provider": self.provider, "modelId": self.model_id},
            "response": response,
            "timing": timing,
        }
        if "step_path" in self._recorder.refs:
            payload["stepPath"] = self._recorder.refs["step_path"]
        self._recorder.result(
            [
                self._recorder.fact("harness.model.responded", payload, actor="model"),
                self._settled(called, spent, known=usage.known),
            ],
            {response["messageRef"]: content},
        )
        return answer

    def _took(self, answer: OracleResponse, turn: int) -> None:
        """Remember what an answer used and which calls are its; questions side by side need no lock for that."""
        self._usages.append(answer.usage)
        for call in answer.tool_calls or ():
            self._turn_of_call[call.call_id] = turn

    def _normalised(self, answer: OracleResponse | None, called: Mapping[str, Any]) -> _Answer:
        """Secrets out, and every tool call under an id of its own: absent or repeated ones are derived (D-5).

        Raises for what is no answer, or holds what cannot be recorded.
        """
        if not isinstance(answer, OracleResponse):
            raise ProviderError(f"{type(answer).__name__} where an OracleResponse belongs")
        turn, scope = called["turn"], called["scope"]
        wire = answer.to_wire()
        dumps(wire)
        wire = self._redactor.value(wire)
        seen: set[str] = set()
        renamed: list[str] = []
        for index, call in enumerate(wire.get("toolCalls") or ()):
            given = call["callId"]
            if scope or not given or given in seen or not _fits(given):
                call["callId"] = derive("call", self._recorder.role_call_id, scope, turn, index)
            else:
                # Ids of different turns may be equal as well; the turn keeps them apart.
                call["callId"] = f"{given}-t{turn}"
            seen.add(given)
            renamed.append(call["callId"])
        parts = [part for part in wire["content"] if part["type"] == "tool_call"]
        for part, call_id in zip(parts, renamed, strict=False):
            part["callId"] = call_id
        content = canonical({"role": "assistant", "content": wire["content"]})
        response: dict[str, Any] = {
            "toolCalls": wire.get("toolCalls") or [],
            "finishReason": wire["finishReason"],
            "messageRef": sha256(content).hex(),
            "usage": wire["usage"],
        }
        return _Answer(_answer_of(response, content), response, content)

    def _failed(self, called: Mapping[str, Any], error: HarnessError) -> HarnessError:
        envelope = dumps(self._recorded_error(error))
        payload = {"turn": called["turn"], "callId": called["callId"], "error": loads_trusted(envelope)}
        self._recorder.result(
            [
                self._recorder.fact("harness.model.failed", payload),
                self._settled(called, called.get("reservedTokens", 0), known=False),
            ]
        )
        return error_told(loads_trusted(envelope))

    def _settled(self, called: Mapping[str, Any], tokens: int, *, known: bool) -> Any:
        payload = {
            "call_id": called["callId"],
            "tokens": tokens,
            "known": known,
            "elapsed_ms": self._active.lap_ms(),
        }
        return self._recorder.fact("budget.settled", payload)

    def _recorded(self, record: CallRecord) -> OracleResponse:
        """The recorded answer, or the recorded failure raised again."""
        assert record.ended is not None
        if record.ended_type == "harness.model.failed":
            raise error_told(record.ended["error"])
        response = record.ended["response"]
        answer = _answer_of(response, self._recorder.read_blob(response["messageRef"]))
        self._took(answer, record.intent["turn"])
        return answer


def _answer_of(response: Mapping[str, Any], content: bytes) -> OracleResponse:
    """The answer that a role is given, made from what is recorded of it alone, so that it is the same one in every run:
    with no tool calls where there is none, and what the message holds in its canonical form."""
    wire = {
        "content": read_canonical(content)["content"],
        "finishReason": response["finishReason"],
        "usage": response["usage"],
    }
    if response.get("toolCalls"):
        wire["toolCalls"] = response["toolCalls"]
    return OracleResponse.from_wire(wire)


def counted_tokens(provider: CountsTokens, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> int | None:
    """What the provider's model counts; ``None`` where it cannot, or says what is no count."""
    counted = attempt(provider.count_tokens, messages, tools, what="the token count").value
    return counted if isinstance(counted, int) and counted >= 0 else None


def _fits(call_id: str) -> bool:
    return len(call_id) <= 64 and call_id.isascii() and call_id.replace("_", "").replace("-", "").isalnum()
