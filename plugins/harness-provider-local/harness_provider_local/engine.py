"""The xllamacpp engine inside the worker: a load order goes in, then chat bodies; text pieces and results come out.

xllamacpp always opens an HTTP listener. Here it is a Unix socket in the worker's own 0700 folder with a random key, and
it is used for one thing the Python interface lacks: counting tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from harness_hookspecs.errors import ProviderError

__all__ = ["Ending", "Engine", "Listener", "Order"]

SOCKET: Final = "x.sock"
TIMINGS: Final = frozenset({"cache_n", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms"})
"""The timings passed on; the engine's rates may be infinite, which strict JSON has no word for."""


class Order(NamedTuple):
    """What to load and how; the first line the worker reads."""

    model: str
    path: str
    context_tokens: int
    slots: int
    threads: int
    kv_type: str
    gpu_layers: int
    batch_tokens: int
    chat_template: str | None = None


class Ending(NamedTuple):
    """How one generation ended; ``finish`` is ``stop``, ``length`` or ``cancelled``."""

    text: str
    reasoning: str
    finish: str
    usage: Mapping[str, Any] | None
    timings: Mapping[str, Any]


class Listener(Protocol):
    """Hears the pieces of one generation on the engine's thread."""

    def piece(self, kind: str, text: str) -> None:
        """A piece of ``text`` or ``reasoning``."""

    def progress(self, done: int, total: int) -> None:
        """So many prompt tokens are evaluated."""

    def cancelled(self) -> bool:
        """Whether to stop; asked after each prompt batch and each token."""


class Engine:
    """One loaded model. Built by the worker's main thread; ``chat`` and ``count`` may be called from several."""

    def __init__(self, order: Order, key: str, request: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Load the model.

        Args:
            order: What to load.
            key: The listener's key.
            request: Posts a JSON body to a path of the listener and gives the JSON answer.

        Raises:
            ProviderError: ``provider.model_load``; the engine's log on stderr says why.
        """
        import xllamacpp

        self._request = request
        params = _params(xllamacpp, order, key)
        self.kv_types = (_type_name(params.cache_type_k), _type_name(params.cache_type_v))
        self.version = f"xllamacpp {xllamacpp.__version__}"
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ProviderError(
                f"The engine could not load {order.path}.", code="provider.model_load", reason="refused"
            ) from error

    def chat(self, body: Mapping[str, Any], listener: Listener) -> Ending:
        """Generate once.

        Raises:
            ProviderError: ``provider.context_overflow``, ``provider.chat_template`` or ``provider.engine``.
        """
        stream = _Stream(listener)
        try:
            # Progress after each prompt batch is what lets a cancel end a long prefill.
            asked = {**body, "stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
            self._server.handle_chat_completions(asked, stream.hear)
        except ValueError as error:
            raise ProviderError(f"The engine refused the request: {error}", code="provider.engine") from error
        return stream.ending()

    def count(self, messages: list[Mapping[str, Any]]) -> int:
        """Prompt tokens of these messages with the chat template around them."""
        answer = self._checked("/apply-template", {"messages": messages}, "provider.chat_template")
        body = {"content": answer["prompt"], "add_special": True, "parse_special": True}
        return len(self._checked("/tokenize", body, "provider.engine")["tokens"])

    def _checked(self, path: str, body: Mapping[str, Any], code: str) -> Mapping[str, Any]:
        answer = self._request(path, body)
        if "error" in answer:
            raise ProviderError(f"The engine refused the request: {answer['error'].get('message')}", code=code)
        return answer


def _params(xllamacpp: Any, order: Order, key: str) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = order.path
    params.n_parallel = order.slots
    params.n_ctx = order.context_tokens * order.slots  # the engine divides it among the slots
    params.n_batch = params.n_ubatch = order.batch_tokens
    params.n_gpu_layers = order.gpu_layers
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order.threads
    kind = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{order.kv_type.upper()}")
    params.cache_type_k = params.cache_type_v = kind
    params.fit_params = params.warmup = params.ui = params.endpoint_slots = False
    params.cache_ram_mib = 0  # a second cache of up to 8 GiB otherwise
    params.verbosity = 1
    params.hostnames, params.api_keys = [SOCKET], [key]
    if order.chat_template is not None:
        params.chat_template = order.chat_template
    return params


def _type_name(kind: Any) -> str:
    import xllamacpp

    return str(xllamacpp.ggml_type(kind).name).removeprefix("GGML_TYPE_").lower()


class _Stream:
    """Puts the engine's stream of parts together; the engine swallows what its callback raises, so nothing may."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._pieces: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._finish: str | None = None
        self._last: Mapping[str, Any] = {}
        self._error: Mapping[str, Any] | None = None
        self._broken: Exception | None = None

    def hear(self, part: Mapping[str, Any]) -> bool:
        """Take one part; ``True`` stops the generation."""
        try:
            return self._take(part)
        except (KeyError, TypeError, AttributeError) as error:  # an engine with another vocabulary
            self._broken = error
            return True

    def ending(self) -> Ending:
        if self._broken is not None:
            raise ProviderError("The engine's stream is not understood.", code="provider.engine") from self._broken
        if self._error is not None:
            raise _refusal(self._error)
        text, reasoning = ("".join(self._pieces[kind]) for kind in ("text", "reasoning"))
        finish = self._finish or ("cancelled" if self._listener.cancelled() else "length")
        timings = {key: value for key, value in (self._last.get("timings") or {}).items() if key in TIMINGS}
        return Ending(text, reasoning, finish, self._last.get("usage"), timings)

    def _take(self, part: Mapping[str, Any]) -> bool:
        if "error" in part:
            self._error = part["error"]
            return True
        if "usage" in part:
            self._last = part
        progress = part.get("prompt_progress")
        if progress:
            self._listener.progress(progress["processed"], progress["total"])
        for choice in part.get("choices") or ():
            self._finish = choice.get("finish_reason") or self._finish
            self._hear_delta(choice.get("delta") or {})
        return self._listener.cancelled()

    def _hear_delta(self, delta: Mapping[str, Any]) -> None:
        for kind, key in (("text", "content"), ("reasoning", "reasoning_content")):
            piece = delta.get(key)
            if piece:
                self._pieces[kind].append(piece)
                self._listener.piece(kind, piece)


def _refusal(error: Mapping[str, Any]) -> ProviderError:
    if error.get("type") == "exceed_context_size_error":
        return ProviderError(
            f"The prompt has {error.get('n_prompt_tokens')} tokens, the model reads {error.get('n_ctx')}.",
            code="provider.context_overflow",
            prompt_tokens=error.get("n_prompt_tokens"),
            limit_tokens=error.get("n_ctx"),
        )
    return ProviderError(f"The engine refused the request: {error.get('message')}", code="provider.engine")
