"""Committed events and chunks in, every listener told; one that fails three times is told no more (D-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness_hookspecs.errors import HarnessError, PluginError
from harness_hookspecs.host import Ports
from harness_hookspecs.kit.failure import headline
from harness_hookspecs.provider import Chunk
from harness_hookspecs.store import StoredEvent

from .ports.interruption import is_interruption

__all__ = ["Observers"]

MAX_ERRORS = 3
CHUNKS_PER_SECOND = 20.0


class Observers:
    """Tells plugins and the embedder; what they raise is never fatal.

    Args:
        ports: For the time between joined chunks.
        on_event: (name, function) pairs told of events.
        on_chunk: (name, function) pairs told of a session's joined text.
        complain: Told once when a listener is switched off.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        on_event: Sequence[tuple[str, Callable[[StoredEvent], Any]]] = (),
        on_chunk: Sequence[tuple[str, Callable[..., Any]]] = (),
        complain: Callable[[HarnessError], None] = lambda error: None,
    ) -> None:
        self._ports, self._complain = ports, complain
        self._on_event, self._on_chunk = list(on_event), list(on_chunk)
        self._errors: dict[tuple[str, bool], int] = {}  # an observer listens to both, by two functions
        self._pending: dict[tuple[str, str], str] = {}
        self._told_at = float("-inf")
        self._lock = ports.wait.lock()  # chunks come from the workers that ask models, events from the turn

    def event(self, event: StoredEvent) -> None:
        """Tell of one committed event."""
        if self._pending:
            self._flush()
        for listener in list(self._on_event):
            self._tell(self._on_event, listener, event)

    def chunk(self, session_id: str, chunk: Chunk) -> None:
        """Tell of provisional text, joined to at most twenty calls a second."""
        if not self._on_chunk:
            return
        key = (session_id, chunk.kind)
        with self._lock:
            self._pending[key] = self._pending.get(key, "") + chunk.text
        if self._ports.clock.monotonic() - self._told_at >= 1.0 / CHUNKS_PER_SECOND:
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        self._told_at = self._ports.clock.monotonic()
        for (session_id, kind), text in pending.items():
            for listener in list(self._on_chunk):
                self._tell(self._on_chunk, listener, session_id, Chunk(kind, text))  # type: ignore[arg-type]

    def _tell(self, listeners: list[Any], listener: tuple[str, Callable[..., Any]], *args: Any) -> None:
        name, function = listener
        try:
            function(*args)
        except BaseException as error:  # a listener's fault is not the session's (contract.md)
            if is_interruption(error):
                raise
            key = name, listeners is self._on_chunk
            with self._lock:
                count = self._errors[key] = self._errors.get(key, 0) + 1
                if count == MAX_ERRORS:
                    listeners.remove(listener)
            if count == MAX_ERRORS:
                said = f"observer {name} failed {MAX_ERRORS} times and is told no more: {headline(error)}"
                told = PluginError(said, code="plugin.observer")
                told.__cause__ = error
                self._complain(told)
