"""Requests to a model go in and answers come out; behind it, one worker process that is started on first use.

Three things end a generation early. A cancelled caller leaves at once while the worker stops after the token or the
prompt batch it is at. A worker that shows no progress for too long is killed. A worker that dies is noticed by the end
of its pipe; the next call starts another, unless three in a row have died.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness_hookspecs.errors import ProviderError
from harness_hookspecs.host import CancelToken, ProviderHost
from harness_hookspecs.messages import Message, OracleResponse
from harness_hookspecs.provider import CallContext, Chunk, ModelFacts, ModelRequest, ToolSchema, WorkerInfo

from .chat import Question, engine_messages, question, response
from .endings import grammar_fault
from .settings import LocalModelSettings
from .slots import Slots
from .supervisor import Talk, Worker
from .weights import backend, find_weights

__all__ = ["LocalProvider", "build"]

COUNT_SECONDS: Final = 60.0
PING_SECONDS: Final = 0.5
GRACE_SECONDS: Final = 5.0
"""How long a worker may take to stop a cancelled generation; nobody waits for it meanwhile."""

CRASHES: Final = 3
REST_SECONDS: Final = 30.0
"""After so many deaths in a row no worker is started for this long, then twice as long, and so on up to 32 times."""

CPU_BATCH_TOKENS: Final = 32
GPU_BATCH_TOKENS: Final = 512
"""Prompt tokens between two looks at the cancel flag: a fifth of a second of a small model on one slow core."""

ENVIRONMENT: Final = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
)  # fmt: skip
"""What a worker inherits; keys and tokens of the person's environment stay out."""


class LocalProvider:
    """``Provider``, ``CountsTokens``, ``Probes`` and ``ListsWorkers`` over one local model."""

    def __init__(self, settings: LocalModelSettings, host: ProviderHost) -> None:
        self._settings = settings
        self._host = host
        self._ports = host.ports
        self._records = Path(host.state_dir) / "workers"
        self._lock = host.ports.wait.lock()
        self._worker: Worker | None = None
        self._closed = False
        self._crashes = 0
        self._rest_until = 0.0
        self._slots = Slots(host.ports, settings.limits.max_parallel_sessions)

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """Ask the model once; see ``Provider.complete`` for the errors."""
        call.cancel.raise_if_cancelled()
        asked = question(request, self._settings.inference.model_dump(exclude_none=True))
        deadline = _Deadline(self._ports.clock.monotonic, call.deadline_seconds)
        if not self._slots.take(deadline.seconds(), call.cancel):
            raise _timeout("Every place at the model stayed taken", "queue")
        talk: Talk | None = None
        try:
            worker = self._ready_worker(deadline, call.cancel)
            call.on_begin()
            self._check_fits(worker, asked.body["messages"], deadline, call.cancel)
            logged_bytes = worker.stderr_bytes
            talk = worker.ask("chat", body=asked.body)
            answer = self._follow(talk, call, deadline, asked)
            self._crashes = 0
            return response(asked, answer, complaint=grammar_fault(worker.stderr(logged_bytes)))
        finally:
            if talk is not None and talk.open:
                self._ports.spawn(self._stop, talk, name="local-stop")
            else:
                self._slots.give()

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        """Prompt tokens of exactly this request; starts the worker if there is none."""
        deadline = _Deadline(self._ports.clock.monotonic, None)
        return self._count(self._ready_worker(deadline, None), engine_messages(messages, tools), deadline, None)

    def probe(self) -> ModelFacts:
        """Load the model; ``detail`` holds what the worker reports and every setting of the entry."""
        worker = self._ready_worker(_Deadline(self._ports.clock.monotonic, None), None)
        detail = {**{k: v for k, v in worker.facts.items() if k != "event"}, "settings": self._settings.model_dump()}
        return ModelFacts(worker.facts["context_tokens"], supports_tools=True, supports_schema=True, detail=detail)

    def workers(self) -> Sequence[WorkerInfo]:
        """The living worker, if there is one."""
        worker = self._worker
        if worker is None or worker.pid is None or worker.state == "dead":
            return ()
        state, memory_bytes = worker.state, worker.facts.get("memory_bytes")
        if state != "starting":
            try:
                pong = worker.ask_once("ping", PING_SECONDS)
            except ProviderError:
                return ()  # it died this very moment
            memory_bytes = pong["memory_bytes"] if pong else memory_bytes
        return (WorkerInfo(worker.pid, "xllamacpp", self._host.entry_name, state, memory_bytes),)

    def close(self) -> None:
        """End the worker; calls that are under way fail with ``provider.worker_died``."""
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _ready_worker(self, deadline: _Deadline, cancel: CancelToken | None) -> Worker:
        with self._lock:
            worker = self._living()
        patience = self._settings.gpu.swap_timeout_sec
        wait_seconds = deadline.left(patience)
        if worker.wait_ready(wait_seconds, cancel):
            return worker
        if wait_seconds < patience:  # somebody with more time may still want it
            raise _timeout("The call's time was over before the model was loaded", "load")
        worker.kill()
        raise ProviderError(
            f"The model {self._host.entry_name} was not loaded within {patience:g} s.",
            code="provider.swap_timeout",
            hint="gpu.swap_timeout_sec in models.yaml is how long a call waits for its model.",
        )

    def _living(self) -> Worker:
        """Give the worker, starting one where there is none; the lock is held."""
        worker = self._worker
        if worker is not None and worker.state != "dead":
            return worker
        if self._closed:
            raise ProviderError("The provider was closed.", code="provider.unavailable")
        if worker is not None and worker.crashed:
            self._count_crash()
        self._worker = None
        self._check_rest()
        self._worker = Worker(self._ports, self._host.entry_name, self._start, self._order())
        return self._worker

    def _count_crash(self) -> None:
        self._crashes += 1
        if self._crashes >= CRASHES:
            rest_seconds = REST_SECONDS * 2 ** min(self._crashes - CRASHES, 5)
            self._rest_until = self._ports.clock.monotonic() + rest_seconds

    def _check_rest(self) -> None:
        rest_seconds = self._rest_until - self._ports.clock.monotonic()
        if rest_seconds > 0:
            raise ProviderError(
                f"The worker of model {self._host.entry_name} died {self._crashes} times in a row.",
                code="provider.crash_loop",
                hint=f"It is started again after {rest_seconds:.0f} s.",
                crashes=self._crashes,
                retry_after_seconds=rest_seconds,
            )

    def _order(self) -> dict[str, Any]:
        settings = self._settings
        layers = settings.gpu.layers or 0
        backend(settings.backend)
        return {
            "records": str(self._records),
            "model": self._host.entry_name,
            "path": str(find_weights(settings.path, Path(self._host.project_dir))),
            "context_tokens": settings.context_size,
            "slots": settings.limits.max_parallel_sessions,
            "threads": settings.threads or 0,
            "kv_type": settings.kv_cache.quantization or "f16",
            "gpu_layers": layers,
            "batch_tokens": GPU_BATCH_TOKENS if layers else CPU_BATCH_TOKENS,
            "chat_template": settings.chat_template,
        }

    def _start(self) -> subprocess.Popen[bytes]:
        self._records.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(self._records)
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "harness_provider_local.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._records,
            env=_environment(),
            process_group=0,  # a terminal's Ctrl-C is for the host, which then closes its workers
        )

    def _check_fits(
        self, worker: Worker, messages: Sequence[Mapping[str, str]], deadline: _Deadline, cancel: CancelToken
    ) -> None:
        limit_tokens = worker.facts["context_tokens"]
        prompt_tokens = self._count(worker, messages, deadline, cancel)
        if prompt_tokens >= limit_tokens:
            raise ProviderError(
                f"The prompt has {prompt_tokens} tokens; the model reads {limit_tokens}, its reply included.",
                code="provider.context_overflow",
                hint="Send less, or raise context_size in models.yaml.",
                prompt_tokens=prompt_tokens,
                limit_tokens=limit_tokens,
            )

    def _count(
        self, worker: Worker, messages: Sequence[Mapping[str, str]], deadline: _Deadline, cancel: CancelToken | None
    ) -> int:
        wait_seconds = deadline.left(COUNT_SECONDS)
        answer = worker.ask_once("count", wait_seconds, cancel, messages=messages)
        if answer is None and wait_seconds < COUNT_SECONDS:  # somebody with more time may still want the worker
            raise _timeout("The call's time was over before the prompt's tokens were counted", "deadline")
        if answer is None:
            worker.kill()
            raise _timeout("The worker did not count the prompt's tokens in time", "count")
        return int(answer["tokens"])

    def _follow(self, talk: Talk, call: CallContext, deadline: _Deadline, asked: Question) -> Mapping[str, Any]:
        """Pass pieces on until the answer is whole."""
        patience, stage = self._settings.first_token_timeout_sec, "first_token"
        while True:
            call.cancel.raise_if_cancelled()  # pieces may come faster than the wait below looks at the token
            wait_seconds = deadline.left(patience)
            answer = talk.next(wait_seconds, call.cancel) if wait_seconds > 0 else None
            if answer is None and wait_seconds < patience:
                raise _timeout("The call's time was over before the answer was whole", "deadline")
            if answer is None:
                talk.worker.kill()
                raise _timeout(f"The worker showed no progress for {patience:g} s and was ended", stage)
            if answer["event"] == "done":
                return answer
            if answer["event"] == "piece":
                patience, stage = self._settings.inter_token_timeout_sec, "next_token"
                if not (asked.enveloped and answer["kind"] == "text"):  # an envelope is no text for people
                    call.on_chunk(Chunk(answer["kind"], answer["text"]))

    def _stop(self, talk: Talk) -> None:
        """Stop a generation that its caller has left; its place is free when it has really ended."""
        try:
            talk.worker.cancel(talk)
            while talk.open:
                if talk.next(GRACE_SECONDS) is None:
                    talk.worker.kill()
        except ProviderError:
            return  # it failed or died, which is an end too
        finally:
            self._slots.give()


class _Deadline:
    """How much time a call has left."""

    def __init__(self, monotonic: Callable[[], float], seconds: float | None) -> None:
        self._monotonic = monotonic
        self._end = None if seconds is None else monotonic() + seconds

    def seconds(self) -> float | None:
        """Seconds left; ``None`` is no limit."""
        return None if self._end is None else max(0.0, self._end - self._monotonic())

    def left(self, most_seconds: float) -> float:
        """Seconds left, at most ``most_seconds``."""
        seconds = self.seconds()
        return most_seconds if seconds is None else min(seconds, most_seconds)


def _timeout(message: str, stage: str) -> ProviderError:
    return ProviderError(f"{message}.", code="provider.timeout", stage=stage)


def _environment() -> dict[str, str]:
    """Give the worker's environment: the allowed names, and the folders of the import path that it would not find."""
    found = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    own = (sys.prefix, sys.base_prefix)
    found["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry and not entry.startswith(own))
    return found


def _sweep(records: Path) -> None:
    """Remove what workers that were killed left behind: a record whose lock is free has no worker."""
    for record in records.glob("*.json"):
        try:
            with record.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                record.unlink()
                shutil.rmtree(record.with_suffix(""), ignore_errors=True)
        except OSError:
            continue  # it lives, or another sweep was faster


def build(settings: LocalModelSettings, host: ProviderHost) -> LocalProvider:
    """Build the provider of one model entry; nothing is loaded before it is first used."""
    return LocalProvider(settings, host)
