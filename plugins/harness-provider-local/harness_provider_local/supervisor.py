"""Orders to one worker process go in, its answers come out; its death comes out of every open conversation at once.

The worker's own thread starts the process and reads it to its end. It must be that thread: Linux kills the child when
the *thread* that started it dies (see ``worker.py``).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import IO, Any, Final, Protocol

from harness_hookspecs.errors import ProviderError
from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.framer import FrameError, Framer

from .endings import Death, died

__all__ = ["Child", "Talk", "Worker"]

READ_BYTES: Final = 65_536
STDERR_KEEP_BYTES: Final = 16_384
STOP_SECONDS: Final = 5.0
LAST: Final = frozenset({"done", "error", "counted", "pong", "died"})

ANSWERS: Final[Mapping[str, Mapping[str, type]]] = {
    "ready": {"context_tokens": int},
    "failed": {"code": str, "message": str},
    "piece": {"id": int, "kind": str, "text": str},
    "progress": {"id": int},
    "done": {"id": int, "text": str, "finish": str},
    "error": {"id": int, "code": str, "message": str},
    "counted": {"id": int, "tokens": int},
    "pong": {"id": int, "memory_bytes": int},
}
"""Every answer of a worker by its event, with the fields that it cannot be read without."""


class Child(Protocol):
    """The part of ``subprocess.Popen[bytes]`` that is used."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def wait(self) -> int: ...

    def kill(self) -> None: ...


class Worker:
    """One process with one model; usable from several threads. It is starting when built."""

    def __init__(self, ports: Ports, model: str, start: Callable[[], Child], order: Mapping[str, Any]) -> None:
        self.model = model
        self.facts: Mapping[str, Any] = {}
        self.death: Death | None = None
        self.stopping = False
        self._unwanted = False
        self._failure: ProviderError | None = None
        self._child: Child | None = None
        self._stderr = b""
        self._stderr_bytes = 0
        self._ids = itertools.count(1)
        self._talks: dict[int, Talk] = {}
        self._ports = ports
        self._lock = ports.wait.lock()
        self._writing = ports.wait.lock()
        self._settled = ports.wait.event()
        self._task = ports.spawn(self._live, start, order, name=f"worker-{model}")

    @property
    def pid(self) -> int | None:
        """The process's number, ``None`` before there is one."""
        return self._child.pid if self._child else None

    @property
    def crashed(self) -> bool:
        """Whether it died without being told to and without saying why."""
        return self.death is not None and self._failure is None and not self.stopping

    @property
    def state(self) -> str:
        """``starting``, ``ready``, ``busy`` or ``dead``."""
        if self.death is not None or self._failure is not None:
            return "dead"
        if not self._settled.is_set():
            return "starting"
        return "busy" if self._talks else "ready"

    def wait_ready(self, timeout_seconds: float, cancel: CancelToken | None) -> bool:
        """Wait until the model is loaded; ``False`` on timeout.

        Raises:
            ProviderError: It could not be loaded, or the worker died.
            Cancelled: The token was set; the loading goes on.
        """
        if not self._settled.wait(timeout_seconds, cancel):
            return False
        if self._failure is not None:
            raise self._failure
        if self.death is not None:
            raise died(self.death, model=self.model, loading=not self.facts)
        return True

    def ask(self, op: str, **fields: Any) -> Talk:
        """Give an order and open the conversation that hears the answers.

        Raises:
            ProviderError: ``provider.worker_died``.
        """
        talk = Talk(next(self._ids), self, self._ports.wait.queue())
        with self._lock:
            if self.death is not None:
                raise died(self.death, model=self.model, loading=False)
            self._talks[talk.id] = talk
        self._say({"op": op, "id": talk.id, **fields})
        return talk

    def ask_once(
        self, op: str, timeout_seconds: float, cancel: CancelToken | None = None, **fields: Any
    ) -> Mapping[str, Any] | None:
        """Give an order that has one answer and wait for it; ``None`` on timeout. What comes later is dropped.

        Raises:
            ProviderError: As ``ask`` and ``Talk.next``.
            Cancelled: The token was set.
        """
        talk = self.ask(op, **fields)
        try:
            return talk.next(timeout_seconds, cancel)
        finally:
            self.forget(talk)

    def cancel(self, talk: Talk) -> None:
        """Ask the worker to stop the generation of that conversation."""
        self._say({"op": "cancel", "id": talk.id})

    def forget(self, talk: Talk) -> None:
        """Close a conversation; what still comes for it is dropped."""
        with self._lock:
            self._talks.pop(talk.id, None)

    @property
    def stderr_bytes(self) -> int:
        """How much the process has written to stderr so far."""
        return self._stderr_bytes

    def stderr(self, since_bytes: int = 0) -> str:
        """The end of what the process wrote to stderr, at most what came after the first ``since_bytes``."""
        fresh = min(len(self._stderr), max(0, self._stderr_bytes - since_bytes))
        return self._stderr[len(self._stderr) - fresh :].decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process at once, or as soon as there is one; every conversation hears of its death."""
        self._unwanted = True
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """End the process: by the end of its stdin, and by force when it takes too long."""
        self.stopping = True
        if not self._settled.is_set() or not self._end_input():  # what loads or hangs does not listen
            self.kill()
        if not self._task.join(STOP_SECONDS):
            self.kill()
            self._task.join(STOP_SECONDS)

    def _end_input(self) -> bool:
        """Close the process's stdin; ``False`` when somebody is stuck in writing to it."""
        if not self._writing.acquire(timeout=1.0):
            return False
        try:
            _close(self._child.stdin if self._child else None)
        finally:
            self._writing.release()
        return True

    def _live(self, start: Callable[[], Child], order: Mapping[str, Any]) -> None:
        """Start the process and hear it to its end; the whole life of the worker's thread."""
        returncode = -1
        try:
            self._child = child = start()
            if self.stopping or self._unwanted:
                child.kill()
            returncode = self._attend(child, order)
        except OSError as error:
            self._failure = ProviderError(f"The worker could not be started: {error}", code="provider.worker_start")
        finally:
            self._end(Death(returncode, self.stderr()))

    def _attend(self, child: Child, order: Mapping[str, Any]) -> int:
        """Hear a process to its end and give its return code; whatever goes wrong in here, it has ended afterwards."""
        errors = self._ports.spawn(self._keep_stderr, child.stderr, name=f"stderr-{self.model}")
        try:
            self._say(order)
            self._hear_all(child)
        except BaseException:
            child.kill()
            raise
        finally:
            returncode = child.wait()
            errors.join(STOP_SECONDS)
            for pipe in (child.stdin, child.stdout, child.stderr):
                _close(pipe)
        return returncode

    def _keep_stderr(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._stderr = (self._stderr + line)[-STDERR_KEEP_BYTES:]
            self._stderr_bytes += len(line)

    def _end(self, death: Death) -> None:
        with self._lock:
            self.death = death
            talks, self._talks = list(self._talks.values()), {}
        self._settled.set()
        for talk in talks:
            talk.hear({"event": "died"})

    def _hear_all(self, child: Child) -> None:
        framer = Framer(max_line_bytes=codec.MAX_BYTES)
        while child.stdout is not None and (chunk := os.read(child.stdout.fileno(), READ_BYTES)):
            for frame in framer.feed(chunk):
                if isinstance(frame, FrameError) or not _is_answer(frame.value):
                    child.kill()  # nothing it says can be trusted any more
                    return
                self._hear(frame.value)

    def _hear(self, answer: Mapping[str, Any]) -> None:
        if answer["event"] == "ready":
            self.facts = answer
            self._settled.set()
        elif answer["event"] == "failed":
            self._failure = told(answer)
            self._settled.set()
        else:
            with self._lock:
                talk = self._talks.get(answer["id"])
            if talk is not None:
                talk.hear(answer)

    def _say(self, order: Mapping[str, Any]) -> None:
        """Write one line; a worker that is gone is noticed by its reader, so a broken pipe is no news here."""
        child = self._child
        if child is None or child.stdin is None:
            return
        with self._writing:
            try:
                child.stdin.write(codec.dumps(order) + b"\n")
                child.stdin.flush()
            except (BrokenPipeError, ValueError):
                return


class Talk:
    """One order and its answers."""

    def __init__(self, talk_id: int, worker: Worker, answers: Any) -> None:
        self.id = talk_id
        self.worker = worker
        self.open = True
        self._answers = answers

    def hear(self, answer: Mapping[str, Any]) -> None:
        """Take an answer from the reader."""
        self._answers.put(answer)

    def next(self, timeout_seconds: float | None, cancel: CancelToken | None = None) -> Mapping[str, Any] | None:
        """The next answer, ``None`` on timeout; the last one closes the conversation.

        Raises:
            ProviderError: What the worker answered, or ``provider.worker_died``.
            Cancelled: The token was set; the conversation stays open.
        """
        answer: Mapping[str, Any] | None = self._answers.get(timeout_seconds, cancel)
        if answer is None:
            return None
        if answer["event"] in LAST:
            self.open = False
            self.worker.forget(self)
        if answer["event"] == "error":
            raise told(answer)
        if answer["event"] == "died":
            raise died(self.worker.death or Death(-1, ""), model=self.worker.model, loading=False)
        return answer


def _is_answer(value: Any) -> bool:
    fields = ANSWERS.get(str(value.get("event"))) if isinstance(value, dict) else None
    return fields is not None and all(isinstance(value.get(name), kind) for name, kind in fields.items())


def told(answer: Mapping[str, Any]) -> ProviderError:
    """Build the error that a worker reported."""
    return ProviderError(
        answer["message"], code=answer["code"], hint=answer.get("hint"), **(answer.get("facts") or {})
    )


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        return
