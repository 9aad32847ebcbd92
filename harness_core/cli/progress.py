"""Committed events and provisional model text in, lines on stderr for the person who watches out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.timeline import Timeline
from harness_hookspecs.host import Clock
from harness_hookspecs.provider import Chunk
from harness_hookspecs.store import StoredEvent

__all__ = ["Progress"]

_QUIET_SECONDS = 5.0
"""While a model writes and nothing else happens, a line at most this often."""


class Progress:
    """Tells what happens, a line each: nothing is redrawn, so any terminal, pipe and screen reader can follow.

    Args:
        write: Takes one line.
        clock: For the pause between lines while a model writes.
    """

    def __init__(self, write: Callable[[str], None], clock: Clock) -> None:
        self._write, self._clock = write, clock
        self._timeline = Timeline()
        self._characters = 0
        self._told_at = clock.monotonic()
        self._session = ""  # the one that is watched; what it has begun tells of itself in its own log

    def remember(self, events: Iterable[StoredEvent]) -> None:
        """Take what happened before, without telling it."""
        for event in events:
            self._timeline.line(decoded(event))

    def name(self, session_id: str) -> None:
        """Say which session it is, once: before its first event, or before anything is asked of a person."""
        if not self._session:
            self._session = session_id
            self._write(f"session {session_id}")

    def event(self, event: StoredEvent) -> None:
        """Tell of one event, unless it is one of a session that this one has begun."""
        session_id = event.stream.partition(":")[2]
        self.name(session_id)
        if session_id != self._session:
            return
        line = self._timeline.line(decoded(event))
        if line is not None:
            self._write(f"{line.mark} {line.text}")
            self._told_at, self._characters = self._clock.monotonic(), 0

    def chunk(self, session_id: str, chunk: Chunk) -> None:
        """Count what the model writes, and say now and then that it does."""
        self._characters += len(chunk.text)
        now = self._clock.monotonic()
        if now - self._told_at >= _QUIET_SECONDS:
            self._told_at = now
            self._write(f". the model is writing: {self._characters} characters so far")
