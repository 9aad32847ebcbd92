"""What every call of a role call needs beside its own facts, as one frozen value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness_core.kernel.commands import Command
from harness_core.kernel.definition import Limits
from harness_core.kernel.facts import Fact
from harness_core.kernel.state import OpenRequest
from harness_hookspecs.errors import Drift, HarnessError, Suspend
from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.messages import ErrorEnvelope
from harness_hookspecs.provider import Chunk

from .deadlines import Deadlines
from .loop import SessionLoop
from .redaction import Redactor
from .trace import TraceSink

__all__ = ["ActiveTime", "Services", "elapsed"]


class ActiveTime:
    """Time this process has run the session and not yet recorded; the log keeps the rest (I-10)."""

    def __init__(self, ports: Ports) -> None:
        self._clock = ports.clock
        self._since = self._clock.monotonic()

    def seconds(self) -> float:
        """Since the last lap."""
        return self._clock.monotonic() - self._since

    def lap_ms(self) -> int:
        """The same in milliseconds, and begin again: it goes into an event now."""
        now = self._clock.monotonic()
        elapsed, self._since = now - self._since, now
        return int(elapsed * 1000)


def elapsed(active: ActiveTime) -> dict[str, int]:
    """The time since the last lap, as what is recorded of a child says it; nothing where none has passed."""
    lap = active.lap_ms()
    return {"elapsed_ms": lap} if lap else {}


RunsChild = Callable[[OpenRequest, Limits, ActiveTime], Command | None]
"""Runs a child that was asked for, of a parent with these limits that has been run for so long."""


@attrs.frozen
class Services:
    """The doors, the loop, and who is told of chunks."""

    ports: Ports
    loop: SessionLoop
    redactor: Redactor
    deadlines: Deadlines
    cancel: CancelToken  # tools, validators and prompts stop at once
    late_cancel: CancelToken  # a model call in flight may go on for cancel_grace_sec (K-30)
    on_chunk: Callable[[Chunk], None]
    active: ActiveTime
    trace: TraceSink | None = None
    in_turn: Callable[[Fact], Suspend | None] | None = None  # a simulation holds what a role call writes until its turn
    on_raised: Callable[[HarnessError], None] = lambda error: None
    run_child: RunsChild | None = None  # until it rests; None where none is run
    accept: Callable[[Drift], None] | None = None  # records what a person accepts; None where nobody does

    def recorded(self, error: HarnessError) -> dict[str, Any]:
        """An error as it goes into the log; who watches is told where in a plugin it was raised, which does not."""
        if error.code == "plugin.raised" and error.__cause__ is not None:
            self.on_raised(error)
        envelope = ErrorEnvelope.from_exception(error, with_stack=False).to_wire()
        return dict(self.redactor.value(envelope))
