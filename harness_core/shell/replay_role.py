"""A role call's recorded events in, the role run again on them; every call that is not recorded is a divergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from harness_core.kernel.commands import RoleFailed, RoleReturned
from harness_core.kernel.facts import Event, Fact
from harness_core.kernel.state import MIGRATED, SessionState
from harness_hookspecs.errors import Diverged, ProviderError, ToolError
from harness_hookspecs.host import Ports
from harness_hookspecs.messages import OracleResponse
from harness_hookspecs.provider import CallContext, ModelRequest
from harness_hookspecs.store import Store
from harness_hookspecs.tool import ToolContext, ToolResult, ToolSpec

from .deadlines import Deadlines
from .machine import SessionMachine
from .perform import Performer
from .perform_ask import AskSite
from .perform_role import run_role
from .redaction import Redactor
from .services import ActiveTime, Services
from .session_parts import SessionParts

__all__ = ["RecordedCalls", "RefusingProvider", "RefusingTools", "RoleReplay", "ended_from_outside"]

_CLOSING = frozenset({"harness.execute_step.succeeded", "harness.session.completed", "harness.session.failed"})
_FROM_OUTSIDE = frozenset(
    {
        "cancelled", "engine.crash", "engine.memory", "engine.not_available", "engine.timeout", "limits.max_tokens",
        "limits.timeout", "role.timeout", "role.not_available", "step.timeout", MIGRATED,
    }
)  # fmt: skip
"""Codes of role calls that ended by what someone else did, the clock or what the machine had."""


def ended_from_outside(error: Mapping[str, Any]) -> bool:
    """Whether the error that is recorded of a role call, or of the run that its repair came to, has such a code."""
    run = (error.get("details") or {}).get("error")
    of_run = run.get("code") if isinstance(run, Mapping) and str(error.get("code")).startswith("fixer.") else None
    return not _FROM_OUTSIDE.isdisjoint((error.get("code"), of_run))


class RefusingProvider:
    """Stands where a provider would: a replay asks no model."""

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """Always refuses."""
        raise ProviderError("a replay calls no provider", code="replay.provider_called")

    def close(self) -> None:
        """Nothing was opened."""


class RefusingTools:
    """Stands where a tool set would: a replay runs no tool."""

    def specs(self) -> Sequence[ToolSpec]:
        """Not asked: the specs were read before."""
        return ()

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Always refuses."""
        raise ToolError("a replay runs no tool", code="replay.tool_called")


@attrs.define(eq=False)
class RecordedCalls:
    """Stands where the loop would: it has the state and the content, and takes no command."""

    state: SessionState
    machine: SessionMachine
    closing_seq: int  # of the event by which the record says that the role had ended

    def lay_down(self, command: Any, *, durable: bool) -> Any:
        """Every command would be something that is not in the record."""
        seq = self.closing_seq
        raise Diverged(f"the role makes a call that is not recorded, where it had ended at event {seq}", seq=seq)

    def read_blob(self, digest: str) -> bytes:
        """Recorded content."""
        return self.machine.blob(digest)

    def is_running(self, key: str) -> bool:
        """Nothing is under way."""
        return False

    def wait_until(self, holds: Any, *, timeout_seconds: float | None = None, cancel: Any = None) -> bool:
        """Nothing will change."""
        return bool(holds(self.state))

    def flush(self) -> None:
        """Nothing is held."""

    def wake(self) -> None:
        """Nobody waits."""


@attrs.define(eq=False)
class RoleReplay:
    """Enters the roles of one session again, under the configuration that held at the time."""

    session_id: str
    parts: SessionParts
    machine: SessionMachine
    ports: Ports
    redactor: Redactor
    parts_under: Callable[[Event], SessionParts]
    store: Store  # read for what code was given before a repair; a call's own events are at hand

    def migrate(self, event: Event) -> None:
        """Go on as ``config.migrated`` says."""
        self.parts = self.parts_under(event)
        self.machine.definition = self.parts.definition

    def enter_role(self, state: SessionState, event: Event, events: Sequence[Event]) -> bool:
        """Run the role of the call that ``event`` ended; ``False`` for one that was ended from outside.

        Raises:
            Diverged: It asks something else, leaves recorded calls unused, or ends otherwise.
            Drift: Its manifest is another one.
        """
        if event.type == "role.failed" and ended_from_outside(event.payload["error"]):
            return False
        request = state.open[event.payload["effect_id"]]
        token = self.ports.wait.token()
        closing = [one for one in events if one.type in _CLOSING]
        loop: Any = RecordedCalls(state, self.machine, closing[0].seq if closing else event.seq)
        services = Services(
            self.ports,
            loop,
            self.redactor,
            Deadlines(self.ports),
            token,
            token,
            lambda chunk: None,
            ActiveTime(self.ports),
        )
        site = AskSite(self.session_id, (), 0.0, "deny", False, token, lambda approval_id, body: None)
        stream = f"session:{self.session_id}"
        performer = Performer(self.session_id, stream, self.parts, services, self.store, site, log_dir_made=True)
        payload = request.payload
        role = self.parts.roles.get((payload["role"], payload["persona"]))
        if role is None:
            raise Diverged(f"nobody answers for role {payload['role']}", seq=event.seq)
        prior = [one for one in events if one.seq > request.seq]
        outcome = run_role(request, performer.role_setup(request, role), services=services, prior=prior)
        _compare(event, outcome)
        if isinstance(outcome, RoleReturned):
            _compare_closing(closing, outcome.closing)
        return True


def _compare_closing(recorded: Sequence[Event], replayed: Sequence[Fact]) -> None:
    """Nothing else than the recorded end is written: no new note, no other sum of tokens."""
    for event, fact in zip(recorded, replayed, strict=False):
        if (event.type, event.payload) != (fact.type, fact.payload):
            raise Diverged(
                f"the role ends otherwise: {fact.type}", seq=event.seq, recorded=event.payload, replayed=fact.payload
            )


def _compare(event: Event, outcome: Any) -> None:
    recorded: Mapping[str, Any] = event.payload
    if isinstance(outcome, RoleReturned) and event.type == "role.returned":
        if outcome.output_ref != recorded["output_ref"]:
            raise Diverged(
                "the role returns another output",
                seq=event.seq,
                recorded=recorded["output_ref"],
                replayed=outcome.output_ref,
            )
        return
    if isinstance(outcome, RoleFailed) and event.type == "role.failed":
        if outcome.error.get("code") != recorded["error"].get("code"):
            raise Diverged(
                "the role fails otherwise", seq=event.seq, recorded=recorded["error"], replayed=dict(outcome.error)
            )
        return
    raise Diverged("the role ends otherwise", seq=event.seq, recorded=event.type, replayed=type(outcome).__name__)
