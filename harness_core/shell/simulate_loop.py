"""A command of a simulated role in, its reply out when it is its turn; the simulation says whose turn it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.store import StoredEvent

from .machine import SessionMachine
from .simulate_answers import Answers

__all__ = ["Asked", "RoleRun", "SimulatedLoop"]


@attrs.define(eq=False)
class RoleRun:
    """One run of one role call.

    Attributes:
        effect_id: Its request, as the state's open ones are named.
        answers: What its calls are answered.
        loop: What it writes to.
        prior: What the record had of the session when it began.
        again: Whether another run of the same call came before it.
        cancel: Set when it hears of a cancel.
        late_cancel: Set when the grace of that cancel is over.
        began_at: The seq of the last event before it.
        alive: Whether its process is; what a dead one asks, nobody writes.
        error: What it ended by, when that is no result.
    """

    effect_id: str
    answers: Answers
    loop: SimulatedLoop
    prior: Sequence[StoredEvent]
    again: bool
    cancel: Any  # both are tokens of the ports, which can be set
    late_cancel: Any
    began_at: int
    alive: bool = True
    error: BaseException | None = None


@attrs.define(eq=False)
class Asked:
    """A command that a role waits for the answer to."""

    command: Any
    run: RoleRun
    flag: Any
    reply: Any = None
    error: HarnessError | None = None


class Simulation(Protocol):
    """What a role call needs of the simulation that it is a part of."""

    state: SessionState
    machine: SessionMachine

    def ask(self, command: Any, run: RoleRun) -> Any:
        """Decide a command when it is its turn, and give the reply; raises ``Abandoned`` for a run that is dead."""

    def is_asking(self, approval_id: str, run: RoleRun) -> bool:
        """Whether somebody is being asked about an approval that a run waits for."""

    def wait_for(self, holds: Callable[[], bool], run: RoleRun, cancel: Any) -> None:
        """Block until it holds; raises ``Abandoned`` for a run that is dead, and when ``cancel`` is set."""


class SimulatedLoop:
    """Stands where a session's loop would, for one run of one role call: what it is told waits for its turn."""

    run: RoleRun

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    @property
    def state(self) -> SessionState:
        """The folded state."""
        return self._simulation.state

    def lay_down(self, command: Any, *, durable: bool) -> Any:
        """Whose turn it is, the record says."""
        return command

    def carry_out(self, command: Any) -> Any:
        """Write what follows from a command when it is its turn."""
        return self._simulation.ask(command, self.run)

    def read_blob(self, digest: str) -> bytes:
        """Recorded content."""
        return self._simulation.machine.blob(digest)

    def is_running(self, key: str) -> bool:
        """Whether an approval is being asked about."""
        return self._simulation.is_asking(key, self.run)

    def wait_until(
        self, holds: Callable[[Any], bool], *, timeout_seconds: float | None = None, cancel: Any = None
    ) -> bool:
        """Block until it holds."""
        self._simulation.wait_for(lambda: holds(self.state), self.run, cancel)
        return True

    def flush(self) -> None:
        """Nothing is held."""

    def wake(self) -> None:
        """Who waits looks whenever something happens."""
