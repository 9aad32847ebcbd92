"""The main of the child process that holds one model: JSON lines on stdin are its orders, those on stdout its answers.

Orders: the first line is the ``Order`` with ``records`` (a folder); then ``{"op": "chat", "id", "body"}``, ``{"op":
"cancel", "id"}``, ``{"op": "count", "id", "messages"}`` and ``{"op": "ping", "id"}``. Answers: ``ready`` or ``failed``,
then per id ``piece`` and ``progress``, and at the end exactly one of ``done``, ``counted``, ``pong`` or ``error``. The
end of stdin is the end of the worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import http.client
import json
import mmap
import os
import secrets
import shutil
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from harness_hookspecs.errors import ProviderError

from .engine import SOCKET, Engine, Order
from .gguf import ModelFile, read_header
from .weights import MISSING_HINT

__all__ = ["main"]

PR_SET_PDEATHSIG: Final = 1
LISTENER_TIMEOUT_SECONDS: Final = 60.0


def main() -> NoReturn:
    """Load the model of the first line, then serve until stdin ends."""
    faulthandler.enable()
    _die_with_parent()
    pipe = _Pipe.take_stdout()
    order = json.loads(sys.stdin.buffer.readline() or b"null")
    if order is None:
        os._exit(0)
    home = _Home(Path(order.pop("records")))
    try:
        worker = _Worker(pipe, home, Order(**order))
    except ProviderError as error:
        pipe.say({"event": "failed", **_told(error)})
        home.leave(1)
    for line in sys.stdin.buffer:
        worker.obey(json.loads(line))
    home.leave(0)


def _die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it dies.

    The end of stdin says the same, but cannot be heard while the engine loads a model: it keeps the interpreter's lock.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError):  # of all processes, the one with the weights may be killed first
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def _told(error: ProviderError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "hint": error.hint, "facts": error.facts}


class _Pipe:
    """The way to the parent; one line at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    @classmethod
    def take_stdout(cls) -> _Pipe:
        """Keep stdout for the answers; what the engine prints there goes to stderr."""
        own = os.dup(1)
        os.dup2(2, 1)
        return cls(own)

    def say(self, answer: Mapping[str, Any]) -> None:
        data = json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except BrokenPipeError:
                os._exit(1)


class _Home:
    """The worker's own folder (0700) and its record, whose lock says to others that it lives."""

    def __init__(self, records: Path) -> None:
        self._folder = records / str(os.getpid())
        shutil.rmtree(self._folder, ignore_errors=True)  # of a dead process with the same number
        self._folder.mkdir(mode=0o700, parents=True)
        os.chdir(self._folder)  # a socket's path may have 107 bytes, so it is used relative to here
        self._path = records / f"{os.getpid()}.json"
        draft = self._folder / "record.json"
        self._file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._facts: dict[str, Any] = {}
        self.note(schema="harness.worker/1", pid=os.getpid(), state="starting")
        draft.rename(self._path)  # with the lock, so that nobody meets the record without it

    def note(self, **facts: Any) -> None:
        """Change facts of the record."""
        self._facts.update(facts)
        data = json.dumps(self._facts).encode("ascii")
        os.pwrite(self._file, data.ljust(4096), 0)  # one write of one size: a reader never sees half of it

    def leave(self, code: int) -> NoReturn:
        """End the process, leaving nothing behind."""
        self._path.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(code)


class _Listener:
    """Sends the pieces of one generation to the parent."""

    def __init__(self, pipe: _Pipe, call_id: int) -> None:
        self._pipe = pipe
        self._id = call_id
        self.stop = False

    def piece(self, kind: str, text: str) -> None:
        self._pipe.say({"event": "piece", "id": self._id, "kind": kind, "text": text})

    def progress(self, done: int, total: int) -> None:
        self._pipe.say({"event": "progress", "id": self._id, "done": done, "total": total})

    def cancelled(self) -> bool:
        return self.stop


class _Worker:
    """The loaded model and the generations that run on it."""

    def __init__(self, pipe: _Pipe, home: _Home, order: Order) -> None:
        self._pipe = pipe
        self._home = home
        self._running: dict[int, _Listener] = {}
        header = _header(order)
        # The engine reads no more than the model was trained for, whatever it is told.
        context_tokens = min(order.context_tokens, header.context_tokens or order.context_tokens)
        order = order._replace(threads=order.threads or _spare_cores(), context_tokens=context_tokens)
        key = secrets.token_hex(16)
        home.note(backend="xllamacpp", model=order.model, path=order.path, started_at=_now())
        started = time.monotonic()
        self._engine = Engine(order, key, _poster(key))
        self._note_memory(state="ready")
        load_ms = round((time.monotonic() - started) * 1000)
        pipe.say({"event": "ready", "pid": os.getpid(), "load_ms": load_ms, **self._facts(order, header)})

    def obey(self, order: Mapping[str, Any]) -> None:
        """Carry out one order; long ones go on in a thread of their own."""
        if order["op"] == "cancel":
            if listener := self._running.get(order["id"]):
                listener.stop = True
        elif order["op"] == "ping":
            self._pipe.say({"event": "pong", "id": order["id"], "memory_bytes": _memory()})
        else:
            if order["op"] == "chat":  # before the thread starts, so that a cancel right behind finds it
                self._running[order["id"]] = _Listener(self._pipe, order["id"])
            threading.Thread(target=self._answer, args=(order,), daemon=True).start()

    def _answer(self, order: Mapping[str, Any]) -> None:
        answer: dict[str, Any] = {"event": "error", "code": "provider.engine", "message": "The worker has a bug."}
        try:
            answer = self._chat(order) if order["op"] == "chat" else self._count(order)
        except ProviderError as error:
            answer = {"event": "error", **_told(error)}
        finally:  # whatever happened, the parent waits for an answer; a traceback goes to stderr
            self._running.pop(order["id"], None)
            self._pipe.say({**answer, "id": order["id"]})

    def _chat(self, order: Mapping[str, Any]) -> dict[str, Any]:
        self._note_memory(state="busy")
        try:
            ending = self._engine.chat(order["body"], self._running[order["id"]])
        finally:
            self._note_memory(state="busy" if len(self._running) > 1 else "ready")
        return {"event": "done", **ending._asdict()}

    def _count(self, order: Mapping[str, Any]) -> dict[str, Any]:
        return {"event": "counted", "tokens": self._engine.count(order["messages"])}

    def _note_memory(self, state: str) -> None:
        self._home.note(state=state, memory_bytes=_memory())

    def _facts(self, order: Order, header: ModelFile) -> dict[str, Any]:
        type_k, type_v = self._engine.kv_types
        return {
            "backend": self._engine.version,
            "architecture": header.architecture,
            "name": header.name,
            "trained_context_tokens": header.context_tokens,
            "context_tokens": order.context_tokens,
            "slots": order.slots,
            "threads": order.threads,
            "gpu_layers": order.gpu_layers,
            "layers": header.layers,
            "type_k": type_k,
            "type_v": type_v,
            "weights_bytes": header.tensor_bytes,
            "memory_bytes": _memory(),
        }


def _header(order: Order) -> ModelFile:
    """Check the model file before the engine sees it."""
    try:
        header = _read(Path(order.path))
    except OSError as error:
        reason = "missing" if isinstance(error, FileNotFoundError) else "unreadable"
        message = f"The model file {order.path} cannot be read: {error.strerror}."
        hint = MISSING_HINT if reason == "missing" else None
        raise ProviderError(message, code="provider.model_file", hint=hint, reason=reason, path=order.path) from error
    except ProviderError as error:
        message = f"{error.message} ({order.path})"
        raise ProviderError(message, code=error.code, path=order.path, **error.facts) from error
    if order.chat_template is None and header.chat_template is None:
        raise ProviderError(
            f"The model file {order.path} has no chat template; the engine would quietly use ChatML.",
            code="provider.chat_template",
            hint="Use an instruct model, or set chat_template in its entry of models.yaml.",
            path=order.path,
        )
    return header


def _read(path: Path) -> ModelFile:
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode):  # before opening: a named pipe would never open
        raise ProviderError("The model file is a folder or no regular file.", code="provider.model_file", reason="kind")
    with path.open("rb") as file:
        if facts.st_size == 0:
            return read_header(b"")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return read_header(data)


def _spare_cores() -> int:
    """Physical cores less one: a busy neighbour on the last one costs llama.cpp more than the core is worth."""
    import psutil

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed) - 1)


def _memory() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Connection(http.client.HTTPConnection):
    """HTTP over the listener's Unix socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LISTENER_TIMEOUT_SECONDS)
        self.sock.connect(SOCKET)


def _poster(key: str) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(path: str, body: Mapping[str, Any]) -> Any:
        connection = _Connection("localhost")
        try:
            connection.request("POST", path, json.dumps(body), headers)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ProviderError(f"The engine's listener failed: {error}", code="provider.engine") from error
        finally:
            connection.close()

    return post


if __name__ == "__main__":
    main()
