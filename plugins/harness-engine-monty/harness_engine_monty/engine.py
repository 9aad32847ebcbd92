"""The engine ``monty``: code, its input and its tools go in, a JSON value or an ``EngineError`` comes out.

Each run has a session of its own in a worker process; workers are begun at the first run and kept for later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.engine import EngineError, EngineLimits, names_in_code
from harness_hookspecs.errors import CodecError, PluginError
from harness_hookspecs.host import CancelToken, EngineHost
from harness_hookspecs.kit import codec
from harness_hookspecs.role import BoundTool

from .failures import no_output, too_large
from .killing import Killable
from .program import program_of
from .running import Run
from .settings import MontySettings

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontySession

__all__ = ["MontyEngine"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK_SECONDS: Final = 0.2
_INTERRUPT_SECONDS: Final = 1.0


class MontyEngine:
    """Keeps the worker processes; any thread may run code."""

    def __init__(self, settings: MontySettings, host: EngineHost) -> None:
        self._settings, self._wait = settings, host.ports.wait
        self._lock = host.ports.wait.lock()
        self._pool: Monty | None = None
        self._closed = False
        self._busy: set[Killable] = set()

    def run(
        self,
        source: str,
        input: Any,  # noqa: A002  # the name the code itself sees
        *,
        tools: Mapping[str, BoundTool],
        limits: EngineLimits,
        seed: int,
        epoch_ms: int,
        cancel: CancelToken,
    ) -> Any:
        """Run it; see :class:`harness_hookspecs.engine.Engine`."""
        cancel.raise_if_cancelled()
        try:
            program = program_of(source, names_in_code(tools))
        except UnicodeEncodeError as error:
            return EngineError("syntax", f"SyntaxError: the code is no text: {error.reason}", "")
        given = codec.dumps(input).decode()
        with self._session(limits, seed, epoch_ms, cancel) as session, self._killed_by(cancel, session.worker_pid):
            found = Run(session, program, tools, limits.output_bytes, cancel).go(given)
        if isinstance(found, EngineError):
            self._may_be_ended(found, cancel)
            return found
        return _output(found, limits.output_bytes)

    def close(self) -> None:
        """End the workers, busy ones too."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            for worker in self._busy:
                worker.kill()
        if pool is not None:
            pool.__exit__(None, None, None)

    @contextmanager
    def _session(
        self, limits: EngineLimits, seed: int, epoch_ms: int, cancel: CancelToken
    ) -> Iterator[MontySession]:
        """A session of a worker that is free, or that is begun, or that is waited for."""
        pool = self._opened()
        checkout = pool.checkout(
            limits={
                "max_feed_duration_secs": limits.timeout_seconds,
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": self._settings.max_depth,
                "max_suspensions": self._settings.max_calls,
            },
            os_policy={
                "datetime": _EPOCH + timedelta(milliseconds=epoch_ms),
                "timezone": "utc",
                "sleep": "zero",
                "process_time": "zero",
                "random_start": {"seed": seed},
            },
        )
        session = self._entered(checkout, cancel)
        try:
            yield session
        finally:
            checkout.__exit__(None, None, None)

    def _entered(self, checkout: MontySession, cancel: CancelToken) -> MontySession:
        """Wait for a worker; those that died while nobody used them are found here, one a try."""
        from pydantic_monty import MontyError

        dead = 0
        while True:
            try:
                return checkout.__enter__()
            except TimeoutError:  # all are busy
                cancel.raise_if_cancelled()
            except MontyError as error:
                dead += 1
                if dead > self._settings.max_processes:
                    raise _not_available(error) from error

    def _opened(self) -> Monty:
        from pydantic_monty import Monty

        with self._lock:
            if self._closed:
                raise _closed()
            if self._pool is None:
                try:
                    pool = Monty(
                        max_processes=self._settings.max_processes,
                        max_checkouts_per_worker=self._settings.runs_per_process,
                        checkout_timeout=_LOOK_SECONDS,
                    )
                    pool.__enter__()
                except (OSError, RuntimeError) as error:
                    raise _not_available(error) from error
                self._pool = pool
            return self._pool

    @contextmanager
    def _killed_by(self, cancel: CancelToken, pid: int | None) -> Iterator[None]:
        """End the worker when the token is set or the engine is closed."""
        if pid is None:
            raise PluginError("a session of the engine monty has no worker", code="engine.not_available")
        worker = Killable(pid, self._wait.lock())
        with self._lock:
            self._busy.add(worker)
        undo = cancel.on_cancel(worker.kill)
        try:
            if self._closed:
                raise _closed()
            yield
        finally:
            undo()
            worker.let_go()
            with self._lock:
                self._busy.discard(worker)

    def _may_be_ended(self, found: EngineError, cancel: CancelToken) -> None:
        """Tell a run that was ended from one that broke.

        An interrupt at a terminal reaches the worker too, and the host may hear of it a moment later.
        """
        cancel.raise_if_cancelled()
        if self._closed:
            raise _closed()
        if found.kind == "crash" and "SIGINT" in found.message:
            self._wait.event().wait(_INTERRUPT_SECONDS, cancel)


def _not_available(error: Exception) -> PluginError:
    said = f"the worker of the engine monty cannot be begun: {error}"
    return PluginError(said, code="engine.not_available", hint="pip install --force-reinstall pydantic-monty")


def _closed() -> PluginError:
    return PluginError("the engine monty is closed", code="engine.closed")


def _output(text: str, limit_bytes: int) -> Any:
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > limit_bytes:
        return too_large(size_bytes, limit_bytes)
    try:
        return codec.loads(text, max_bytes=limit_bytes)
    except CodecError as error:
        return no_output(error.message)
