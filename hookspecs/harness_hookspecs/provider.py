"""Kind ``provider``: messages, tools and parameters in, one answer out; no handle to anything else (B-18)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from .host import CancelToken
from .messages import Message, OracleResponse

__all__ = [
    "CallContext",
    "Chunk",
    "CountsTokens",
    "Embeds",
    "ListsWorkers",
    "ModelFacts",
    "ModelRequest",
    "Probes",
    "Provider",
    "Routing",
    "ToolSchema",
    "WorkerInfo",
]


class ToolSchema(NamedTuple):
    """A tool as the model is shown it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class Routing(NamedTuple):
    """Where a request comes from; a scripted provider chooses its answer by it, others ignore it."""

    persona: str
    stage: str
    attempt: int
    turn: int


class ModelRequest(NamedTuple):
    """Everything a model is asked, and everything that is in its promptHash.

    ``params`` holds ``temperature``, ``top_p``, ``repeat_penalty``, ``seed`` and ``max_output_tokens`` where set.
    ``response_schema`` is a JSON Schema the answer's text must satisfy; the host validates the answer again.
    """

    model_id: str
    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    params: Mapping[str, Any] = {}
    response_schema: Mapping[str, Any] | None = None
    routing: Routing = Routing("", "", 1, 1)


class Chunk(NamedTuple):
    """A provisional piece of the answer; never an event (invariant I-1)."""

    kind: Literal["text", "reasoning"]
    text: str


def _unheard() -> None:
    """For who makes a call and does not want to know when it begins."""


class CallContext(NamedTuple):
    """What goes with one call and is not part of the question.

    A provider calls ``on_begin`` once, when the model is free, loaded and turns to this question; what passed before
    is the call's queue time (``timing.queueMs``). One that cannot know leaves it out, and the time is not known.
    """

    cancel: CancelToken
    on_chunk: Callable[[Chunk], None]
    deadline_seconds: float | None = None
    on_begin: Callable[[], None] = _unheard


class ModelFacts(NamedTuple):
    """What a probe found out; ``None`` is unknown, never "no"."""

    context_tokens: int | None
    supports_tools: bool | None
    supports_schema: bool | None
    detail: Mapping[str, Any] = {}


class WorkerInfo(NamedTuple):
    """One process that holds a model."""

    pid: int
    backend: str
    model: str
    state: str
    memory_bytes: int | None


class Provider(Protocol):
    """Answers one request at a time per caller; may be called from several threads."""

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """Ask the model once; nothing is tried again here, nor by whoever calls this.

        The one retry owner is the stage: a call that fails fails the role call unless the role makes something of it,
        and the stage's ``retry`` decides whether another attempt asks anew, as a ``retry.scheduled`` and with calls of
        its own, ``max_attempts`` in all. Switch off the retries of a client library.

        Returns:
            The whole answer with its finish reason; usage that the model did not report is ``known: false``.

        Raises:
            ProviderError: ``provider.unavailable``, ``provider.model_file``, ``provider.worker_died``,
                ``provider.context_overflow``, ``provider.schema_violation``, ``provider.timeout`` or the provider's own
                dotted code.
            Cancelled: The token was set; what was generated so far is dropped.
        """

    def close(self) -> None:
        """End every process and connection; called once, also after errors."""


@runtime_checkable
class CountsTokens(Protocol):
    """A provider that counts with the model's own tokenizer."""

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        """Prompt tokens of exactly this request, template included."""


@runtime_checkable
class Embeds(Protocol):
    """A provider that embeds texts; nothing in this version asks for it."""

    def embed(self, texts: Sequence[str], call: CallContext) -> Sequence[Sequence[float]]:
        """One vector per text, all of one length."""


@runtime_checkable
class Probes(Protocol):
    """A provider that can find out what its model is able to do."""

    def probe(self) -> ModelFacts:
        """May load the model and make a tiny call."""


@runtime_checkable
class ListsWorkers(Protocol):
    """A provider with processes of its own."""

    def workers(self) -> Sequence[WorkerInfo]:
        """The living ones."""
