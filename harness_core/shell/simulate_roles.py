"""A role call of a simulation in, the command that ends it out: the role's own code under the answers of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness_core.kernel.commands import RoleFailed
from harness_core.kernel.facts import Event
from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import Diverged
from harness_hookspecs.store import Store, StoredEvent

from .call_limits import TIME_LIMITS
from .deadlines import Deadlines
from .journal import recorded_events
from .machine import SessionMachine
from .model_handle import ModelEntry
from .perform import Performer
from .perform_ask import AskSite
from .perform_role import run_role
from .redaction import Redactor
from .role_setup import RoleCallSetup
from .services import Services
from .session_parts import SessionParts
from .simulate_answers import Answers, RecordedProvider, RecordedTime, RecordedTools
from .simulate_loop import RoleRun

__all__ = ["SimulatedRoles"]


@attrs.define(eq=False)
class SimulatedRoles:
    """Runs the roles of one session, under the configuration that held at the time."""

    session_id: str
    parts: SessionParts
    machine: SessionMachine
    ports: Any
    redactor: Redactor
    parts_under: Callable[[Event], SessionParts]
    store: Store  # read for what code was given before a repair

    def migrate(self, event: Event) -> None:
        """Go on as ``config.migrated`` says."""
        self.parts = self.parts_under(event)
        self.machine.definition = self.parts.definition

    def run_role(self, state: SessionState, call: RoleRun) -> Any:
        """Run a role call; what it did before its process died is its record, as on any resume."""
        request = state.open[call.effect_id]
        if call.again:
            request.calls = max(request.calls, 1)
        services = self._services(call)
        store: Any = _RecordedEvents(call.prior)
        site = AskSite(self.session_id, (), 0.0, "deny", False, call.cancel, lambda approval_id, body: None)
        stream = f"session:{self.session_id}"
        performer = Performer(self.session_id, stream, self.parts, services, self.store, site, log_dir_made=True)
        payload = request.payload
        role = self.parts.roles.get((payload["role"], payload["persona"]))
        if role is None:
            raise Diverged(f"nobody answers for role {payload['role']}", seq=request.seq)
        late = _ended_by_time(call.answers)
        if late is not None and not call.answers.record.has_begun(call.answers.role_call_id):
            return late  # its time was over before it began
        if late is not None:
            call.answers.cut = lambda: call.cancel.cancel("timeout")
            call.answers.answered()
        setup = _answered(performer.role_setup(request, role), call.answers)
        outcome = run_role(request, setup, services=services, prior=recorded_events(request, store, stream))
        if late is not None and isinstance(outcome, RoleFailed):
            return attrs.evolve(outcome, error=late.error)
        return outcome

    def _services(self, call: RoleRun) -> Services:
        loop: Any = call.loop
        ports: Any = _RolePorts(self.ports)
        active: Any = RecordedTime(call.answers, loop)
        return Services(
            ports,
            loop,
            self.redactor,
            Deadlines(self.ports),
            call.cancel,
            call.late_cancel,
            lambda chunk: None,
            active,
            in_turn=call.answers.in_turn,
        )


def _ended_by_time(answers: Answers) -> RoleFailed | None:
    """How the call ended whose time was over; when that was, and by which limit, is the clock's word."""
    failed = next(answers.record.ahead(answers.role_call_id, "role.failed"), None)
    if failed is None or failed.payload["error"].get("code") not in TIME_LIMITS:
        return None
    return RoleFailed(answers.role_call_id, dict(failed.payload["error"]))


def _answered(setup: RoleCallSetup, answers: Answers) -> RoleCallSetup:
    """The same call with the record where its model and its tools are."""
    toolset: Any = RecordedTools(answers)
    tools = {name: attrs.evolve(tool, toolset=toolset) for name, tool in setup.site.tools.items()}

    def recorded(model: ModelEntry, params: Mapping[str, Any]) -> ModelEntry:
        return attrs.evolve(model, provider=RecordedProvider(answers, reply_tokens=params.get("max_output_tokens")))

    slots = {name: slot._replace(model=recorded(*slot)) for name, slot in setup.slots.items()}
    site = attrs.evolve(setup.site, tools=tools)
    return attrs.evolve(setup, model=recorded(setup.model, setup.params), slots=slots, site=site)


@attrs.define(eq=False)
class _RecordedEvents:
    """The one thing a role call reads of a store: its own events."""

    events: Sequence[StoredEvent]

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        return (event for event in self.events if event.seq > after)


class _RolePorts:
    """The simulation's ports, without what acts at the boundaries inside a role call."""

    def __init__(self, ports: Any) -> None:
        self._ports = ports

    def reach(self, name: str) -> None:
        """See ``Ports.reach``; no failpoint acts in a replay."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports, name)
