"""A recorded session in, whether its control logic decides the same again out; nothing is called, nothing written.

Outcomes and inputs of the record are folded as they are; every decision of the kernel is taken again from the state
before it and compared; every role is run again on its recorded calls (B-96, traps 29 and 30).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs

from harness_core.kernel.evolve import evolve
from harness_core.kernel.facts import Event, Fact
from harness_core.kernel.own_steps import is_own_step
from harness_core.kernel.projections.event import decoded, folding, payload_of
from harness_core.kernel.projections.session import session_document, state_hash
from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import Diverged, Drift, HarnessError
from harness_hookspecs.events import Category, category_of
from harness_hookspecs.store import StoredEvent

from .machine import SessionMachine

__all__ = ["Difference", "Part", "ReplayReport", "Site", "replay_control", "replay_full", "replay_part"]

CONTROL_TYPES = frozenset(
    {
        "stage.entered",
        "stage.left",
        "stage.skipped",
        "transition.taken",
        "context.requested",
        "validation.requested",
        "role.requested",
        "compile.requested",
        "timer.requested",
        "timer.cancelled",
        "external.requested",
        "external.delivered",
        "external.cancelled",
        "child.granted",
        "artifact.proposed",
        "artifact.accepted",
        "artifact.rejected",
        "retry.scheduled",
        "session.completed",
        "session.failed",
    }
)
"""What the kernel decides by itself; everything else in a log is an outcome or an input."""

_OUTCOMES = frozenset(
    {
        "context.assembled",
        "context.failed",
        "role.returned",
        "role.failed",
        "compile.failed",
        "workflow.version_registered",
        "timer.elapsed",
        "external.timed_out",
        "child.completed",
        "child.exhausted",
        "child.failed",
        "validation.passed",
        "validation.failed",
        "validation.errored",
    }
)
"""What ends a request; each names the one it ends."""


@attrs.frozen
class Difference:
    """The first event that differs: its seq and both sides, each ``{type, payload}``; ``None`` for nothing there.

    Of a transition each side also has the place where its rule stands.
    """

    seq: int
    recorded: Any
    replayed: Any
    recorded_where: str | None = None
    replayed_where: str | None = None


@attrs.frozen
class ReplayReport:
    """What a replay found (``harness.replay/1``); ``equal`` is ``None`` where nothing was there to compare with."""

    mode: str
    events: int
    state_hash: str
    equal: bool | None
    model_calls: int = 0
    tool_calls: int = 0
    roles_entered: int = 0
    diverged: Difference | None = None

    def document(self) -> dict[str, Any]:
        """The document."""
        return {"schema": "harness.replay/1", **attrs.asdict(self)}


def replay_full(events: Iterator[StoredEvent], machine: SessionMachine, kept: Mapping[str, Any] | None) -> ReplayReport:
    """Rebuild the state from the log alone; equal when the document kept of it is what the log gives at its seq."""
    state = machine.new_state()
    equal = None if kept is None else False
    for stored in folding(machine.evolve, state, events):
        if kept is not None and stored.seq == kept["last_seq"]:
            equal = session_document(state) == kept
    return ReplayReport("full", state.seq, state_hash(state), equal)


@attrs.frozen
class Part:
    """The part of a session that is replayed: its events from seq ``first`` to ``until``, or of them one category's."""

    first: int
    until: int
    category: Category | None = None

    def holds(self, event: StoredEvent) -> bool:
        """Whether the event is in it."""
        return event.seq >= self.first and self.category in (None, category_of(event.type))


def replay_part(
    mode: str, part: Part, state: SessionState, events: Iterable[StoredEvent], kept: Mapping[str, Any] | None
) -> ReplayReport:
    """Fold the state up to the end of the part; its events are counted, and what they write is hashed.

    The state is folded from the whole whatever the category: a fact means nothing without those it follows from.

    Args:
        mode: The mode's name, for the report.
        part: What is counted and hashed.
        state: The state before ``events``; it is folded further.
        events: All events from there to the end of the part.
        kept: The document kept of the session; it must be what the log gives where its seq is in the part. Where it is
            not, nothing is compared.
    """
    equal: bool | None = None
    count = 0
    for stored in folding(evolve, state, events):
        count += part.holds(stored)
        if kept is not None and stored.seq == kept["last_seq"] and stored.seq >= part.first:
            equal = session_document(state) == kept
    return ReplayReport(mode, count, state_hash(state, part.category), equal)


class Site(Protocol):
    """What a replay cannot do by itself."""

    def enter_role(self, state: SessionState, event: Event, events: Sequence[Event]) -> bool:
        """Run the role of the call that ``event`` ended, on its recorded events; ``False`` if it was not entered.

        Raises:
            Diverged: It asks something else, leaves recorded calls unused, or ends otherwise.
            Drift: Its manifest is another one.
        """

    def migrate(self, event: Event) -> None:
        """The session goes on under the configuration of this ``config.migrated``."""


def replay_control(events: list[StoredEvent], machine: SessionMachine, site: Site) -> ReplayReport:
    """Take every decision again.

    Args:
        events: The whole stream.
        machine: The kernel under the recorded configuration, or under another one to compare with.
        site: Enters roles, and follows the session to another configuration.

    Returns:
        The report; ``diverged`` names the first event that differs.
    """
    replay = _ControlReplay(events, machine, site)
    return replay.run()


class _ControlReplay:
    def __init__(self, events: list[StoredEvent], machine: SessionMachine, site: Site) -> None:
        self._events, self._machine, self._site = events, machine, site
        self._state = machine.new_state()
        self._expected: list[Fact] = []
        self._calls: dict[str, list[Event]] = {}
        self._roles_entered = 0

    def run(self) -> ReplayReport:
        difference = None
        for stored in self._events:
            difference = self._step(stored)
            if difference is not None:
                break
        return ReplayReport(
            mode="skip-inference",
            events=self._state.seq,
            state_hash=state_hash(self._state),
            equal=difference is None,
            roles_entered=self._roles_entered,
            diverged=difference,
        )

    def _step(self, stored: StoredEvent) -> Difference | None:
        event = decoded(stored)
        role_call_id = event.refs.get("role_call_id")
        if role_call_id is not None:
            self._calls.setdefault(role_call_id, []).append(event)
        if self._is_decision(event):
            difference = self._compare(event)
            if difference is not None:
                return difference
        elif event.type in _OUTCOMES and event.payload["effect_id"] not in self._state.open:
            return self._compare(event)  # nobody asked for it: a decision is missing before it
        elif event.type in ("role.returned", "role.failed"):
            difference = self._run_role(event)
            if difference is not None:
                return difference
        self._machine.evolve(self._state, event)
        if event.type == "config.migrated":
            self._site.migrate(event)
        return None

    def _is_decision(self, event: Event) -> bool:
        if self._expected:
            # The facts of one decision stand together, except where an input of the same turn came in between.
            return _same_type(self._expected[0], event) or event.type in CONTROL_TYPES or is_own_step(event)
        gate = event.type == "approval.requested" and "role_call_id" not in event.payload
        return event.type in CONTROL_TYPES or gate or is_own_step(event)

    def _compare(self, event: Event) -> Difference | None:
        if not self._expected:
            self._expected = list(self._machine.advance(self._state, frozenset()).facts)
        replayed = self._expected.pop(0) if self._expected else None
        if replayed is not None and _view(replayed.type, replayed.payload) == _view(event.type, event.payload):
            return None
        shown = None if replayed is None else {"type": replayed.type, "payload": replayed.payload}
        return Difference(event.seq, {"type": event.type, "payload": dict(event.payload)}, shown)

    def _run_role(self, event: Event) -> Difference | None:
        recorded = {"type": event.type, "payload": dict(event.payload)}
        calls = self._calls.pop(event.payload["role_call_id"], [])
        try:
            entered = self._site.enter_role(self._state, event, calls)
        except Diverged as error:
            seq = int(error.facts.get("seq", event.seq))
            return Difference(seq, self._recorded_at(seq) or recorded, {"error": error.message, **_sides(error)})
        except Drift as error:
            seq = next((one.seq for one in calls if one.type == "harness.session.started"), event.seq)
            return Difference(seq, self._recorded_at(seq), {"error": error.message, **error.facts})
        self._roles_entered += entered
        return None

    def _recorded_at(self, seq: int) -> Any:
        for stored in self._events:
            if stored.seq == seq:
                return {"type": stored.type, "payload": payload_of(stored)}
        return None


def _sides(error: HarnessError) -> Mapping[str, Any]:
    return {name: error.facts[name] for name in ("recorded", "replayed") if name in error.facts}


def _same_type(fact: Fact, event: Event) -> bool:
    return fact.type == event.type


def _view(event_type: str, payload: Mapping[str, Any]) -> Any:
    """What is compared: the type and the payload; ids derive from the session, so they are equal when all else is."""
    return event_type, {name: value for name, value in payload.items() if value is not None}
