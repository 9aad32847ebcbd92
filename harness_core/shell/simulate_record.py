"""A session's recorded events in; what each role call asked, how that ended, and in which order it may happen again.

A simulation holds every call back until all that the same role call did before it in the record has happened.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from harness_core.kernel.facts import Event, Fact, effect_id
from harness_core.kernel.projections.event import decoded
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import StoredEvent

from .replay import Difference
from .simulate_deaths import deaths

__all__ = ["Record", "call_id_of"]

_INTENTS = frozenset({"harness.model.called", "harness.tool_call.started"})
_LOST = frozenset({"effect.in_doubt", "effect.settled"})
"""What says of an effect that its process died before it could write how it ended."""

_MOVES = _INTENTS | {"approval.requested", "child.requested"}
"""What a role call writes at once, with all that it has not written yet."""

_ENDS = frozenset(
    {
        "harness.model.responded",
        "harness.model.failed",
        "harness.tool_call.succeeded",
        "harness.tool_call.failed",
    }
)
_READINGS: Mapping[str, Sequence[str]] = {
    "harness.model.responded": ("timing",),
    "harness.tool_call.succeeded": ("durationMs",),
    "harness.tool_call.failed": ("durationMs",),
    "budget.settled": ("elapsed_ms",),
    "child.requested": ("elapsed_ms",),
}
"""What of an event was read off a clock: a simulation's clock shows what was recorded."""

_ASKS: Mapping[str, str] = {
    "approval.requested": "approval_id", "child.requested": "effect_id", "effect.in_doubt": "effect_id",
}  # fmt: skip
"""What says that a call waits -> where it names for what."""

_seq_of = attrgetter("seq")

_ENVELOPE_IDS = frozenset({"causation_id", "correlation_id"})


def call_id_of(event: Event | Fact) -> Any:
    """The id of the model or tool call that an event is about, ``None`` for another event."""
    return event.payload.get("callId") or event.payload.get("call_id")


class Record:
    """The events of one session, and how far a simulation has come in them.

    Args:
        stored: All events of the stream, from the first one.
    """

    def __init__(self, stored: Sequence[StoredEvent]) -> None:
        self.stored = stored
        self.events = [decoded(one) for one in stored]
        self.seq = 0  # of the last event that has happened again
        told = (one.seq for one in self.events if one.type == "command.received" and one.payload["kind"] == "cancel")
        self._cancelled_at = next(told, 0)
        self._of_call: dict[str, list[Event]] = {}
        self._of_type: dict[tuple[str, str], list[Event]] = {}  # the same, by what they are
        for event in self.events:
            if "role_call_id" in event.refs:
                self._of_call.setdefault(event.refs["role_call_id"], []).append(event)
                self._of_type.setdefault((event.refs["role_call_id"], event.type), []).append(event)
        self._decided: dict[str, int] = {}  # the seq of what ended it, by approval or effect in doubt
        self._grants: dict[str, str] = {}  # the approvals that somebody granted, by the id of that event
        for event in self.events:
            if event.type.startswith("approval.") and event.type != "approval.requested":
                self._decided.setdefault(event.payload["approval_id"], event.seq)
            if event.type == "effect.settled":
                self._decided.setdefault(event.payload["effect_id"], event.seq)
            if event.type == "approval.granted" and event.payload["kind"] != "policy":
                self._grants[event.id] = event.payload["approval_id"]
        self._answers: dict[int, Event] = {}  # by the seq of the intent
        self._starts: dict[str, Event] = {}  # by the identity of the effect
        self._died: dict[str, list[tuple[int, int]]] = {}  # behind which event, and before which
        self._deaths: dict[str, frozenset[int]] = {}
        self._began: dict[str, int] = {}  # behind which event the process of a role call that runs now did
        for role_call_id, events in self._of_call.items():
            self._died[role_call_id] = self._pair(role_call_id, events)
            self._deaths[role_call_id] = self._deaths_of(role_call_id)
        self._made = frozenset(end.seq for end in self._answers.values())  # the ends of calls that were made

    def has_begun(self, role_call_id: str) -> bool:
        """Whether anything of a role call began."""
        return (role_call_id, "harness.session.started") in self._of_type

    def _pair(self, role_call_id: str, events: Sequence[Event]) -> list[tuple[int, int]]:
        """Find the end of each call; gives where those that were lost began, and where the record says so."""
        open_calls: dict[str, tuple[Event, int]] = {}  # the latest intent of each call, and the how many-th it is
        lost: dict[str, int] = {}
        for event in events:
            call_id = call_id_of(event)
            if event.type in _INTENTS:
                start = open_calls[call_id][1] + 1 if call_id in open_calls else 1
                open_calls[call_id] = (event, start)
                self._starts[effect_id(role_call_id, call_id, start)] = event
            elif event.type in _ENDS and call_id in open_calls:
                self._answers.setdefault(open_calls[call_id][0].seq, event)
            elif event.type in _LOST:
                lost.setdefault(event.payload["effect_id"], event.seq)
        for effect in lost:  # what is recorded as its end is what somebody found out or said
            self._answers.pop(self._starts[effect].seq, None)
        return [(self._starts[effect].seq, told) for effect, told in lost.items()]

    def _deaths_of(self, role_call_id: str) -> frozenset[int]:
        died = self._died[role_call_id]
        return deaths(died, self._lives(self._of_call[role_call_id])) if died else frozenset()

    def _lives(self, events: Sequence[Event]) -> Sequence[tuple[int, int]]:
        """From where to where a process must have lived: a call that is repeatable may be ended by another one, and
        what suspended it is given up by one that began before the answer came."""
        once = [
            event
            for event in events
            if event.type == "harness.model.called" or event.payload.get("effectClass") == "unkeyed"
        ]
        made = [(one.seq, self._answers[one.seq].seq) for one in once if one.seq in self._answers]
        suspended = [event for event in events if event.type == "role.suspended"]
        answered = [(self._decided.get(one.payload["wait_id"], one.seq), one.seq) for one in suspended]
        return [*made, *answered]

    @property
    def next(self) -> Event | None:
        """The event that must happen now; ``None`` when all have."""
        return self.events[self.seq] if self.seq < len(self.events) else None

    def dies(self, role_call_id: str) -> bool:
        """Whether the process of a role call died right behind what has happened last."""
        return self.seq in self._deaths[role_call_id]

    def dies_later(self, role_call_id: str) -> bool:
        """Whether the record says so of the process of a role call."""
        return any(seq > self.seq for seq in self._deaths[role_call_id])

    def gives_up(self, role_call_id: str, wait_id: str, suspended_by: str) -> None:
        """Take down that the process of a role call waits for something no longer: when the record goes on with that
        call before it is suspended, or is suspended by something else than this process would be, another process does,
        and this one dies before.
        """
        call_id = self._waiting_call(role_call_id, wait_id)
        for event in self._of_call[role_call_id]:
            suspended = event.type == "role.suspended"
            if event.seq > self.seq and (suspended or call_id_of(event) == call_id is not None):
                if not suspended or event.payload["wait_id"] != suspended_by:
                    self.dies_before(role_call_id, event.seq)
                return

    def kept_in_memory(self, role_call_id: str, fact: Fact) -> int | None:
        """The seq of a result that need not have been written by who had it first: a call that may happen twice is made
        again by another process, and one that was refused is refused again. ``None`` for everything else."""
        if not fact.type.startswith("harness.tool_call."):
            return None
        same = (one for one in self.ahead(role_call_id, fact.type) if call_id_of(one) == call_id_of(fact))
        event = next(same, None)
        if event is None or any(event.seq == end for _, end in self._lives(self._of_call[role_call_id])):
            return None
        return event.seq

    def begins(self, role_call_id: str) -> None:
        """Take down that a process takes a role call up now: what it loses, no death up to here has lost."""
        self._began[role_call_id] = self.seq

    def dies_before(self, role_call_id: str, seq: int) -> None:
        """Take down that the process of a role call dies from now on, and that another one writes the event of that
        seq."""
        self._died[role_call_id].append((max(self.seq, self._began.get(role_call_id, 0) + 1), seq))
        self._deaths[role_call_id] = self._deaths_of(role_call_id)

    def _waiting_call(self, role_call_id: str, wait_id: str) -> Any:
        """The id of the call that waits for it, ``None`` when that is no call."""
        return next((call_id_of(one) for one in self._of_call[role_call_id] if _asks(one, wait_id)), None)

    def until_now(self) -> Sequence[StoredEvent]:
        """What has happened again so far."""
        return self.stored[: self.seq]

    def ahead(self, role_call_id: str, event_type: str) -> Iterator[Event]:
        """What of a type is still to happen in a role call, in order."""
        of_type = self._of_type.get((role_call_id, event_type), [])
        first = bisect_right(of_type, self.seq, key=_seq_of)
        return (of_type[at] for at in range(first, len(of_type)))

    def calls_ahead(self, role_call_id: str) -> bool:
        """Whether a role call is still to make, or to ask for, a call of its own."""
        return any(True for name in _MOVES for _ in self.ahead(role_call_id, name))

    def ahead_in_run(self, role_call_id: str, event_type: str) -> Iterator[Event]:
        """The same until the role call is suspended: what is asked then and stands behind that was refused here."""
        suspends = next(self.ahead(role_call_id, "role.suspended"), None)
        ahead = self.ahead(role_call_id, event_type)
        return (one for one in ahead if suspends is None or one.seq < suspends.seq)

    def suspends(self, role_call_id: str) -> bool:
        """Whether what is next is the suspension of a role call."""
        event = self.next
        return event is not None and event.type == "role.suspended" and event.refs["role_call_id"] == role_call_id

    def has_asked(self, role_call_id: str, fact: Fact) -> bool:
        """Whether it is a question that a role call has asked of the same call before."""
        before = (one for one in self._of_call.get(role_call_id, ()) if one.seq <= self.seq and one.type == fact.type)
        return fact.type == "approval.requested" and any(call_id_of(one) == call_id_of(fact) for one in before)

    def suspended_by(self, role_call_id: str, fact: Fact) -> tuple[str, str] | None:
        """What a call that is about to be made, or to end, waits for when the role call is suspended next by just that,
        or beside it: somebody answered, but later than it was given up."""
        suspends = next(self.ahead(role_call_id, "role.suspended"), None)
        if suspends is None or fact.type not in _INTENTS | _ENDS:
            return None
        kind, wait_id = suspends.payload["kind"], suspends.payload["wait_id"]
        if call_id_of(fact) in (call_id_of(one) for one in self._of_call[role_call_id] if _asks(one, wait_id)):
            return kind, wait_id
        later = (one for one in self.ahead(role_call_id, fact.type) if call_id_of(one) == call_id_of(fact))
        granted = (self.granted_to(one) for one in later if kind in ("approval", "in_doubt"))
        return next((("approval", approval_id) for approval_id in granted if approval_id is not None), None)

    def is_answered(self, role_call_id: str, approval_id: str) -> bool:
        """Whether the call that asked goes on before its role call is suspended, if it is: it was waited for until
        somebody had decided. Also when nobody decides it."""
        suspends = next(self.ahead(role_call_id, "role.suspended"), None)
        if suspends is None:
            return True
        decided = self._decided.get(approval_id, suspends.seq)
        call_id = self._waiting_call(role_call_id, approval_id)
        goes_on = (one for one in self._of_call[role_call_id] if decided < one.seq < suspends.seq)
        return any(call_id_of(one) == call_id for one in goes_on)

    def granted_to(self, intent: Event) -> str | None:
        """The approval that a call was made under, if it had been waited for."""
        return self._grants.get(intent.refs.get("causation_id") or "")

    def model_call(self, role_call_id: str, turn: int, taken: set[int]) -> Event | None:
        """The intent of a model call of that turn that has happened and waits for its answer; the latest of each call,
        since one whose answer was lost is asked again."""
        latest: dict[str, Event] = {}
        for event in self._of_call.get(role_call_id, ()):
            if event.type == "harness.model.called" and event.seq <= self.seq and event.payload["turn"] == turn:
                latest[call_id_of(event)] = event
        for event in latest.values():
            answer = self._answers.get(event.seq)
            if event.seq not in taken and (answer is None or answer.seq > self.seq):
                return event
        return None

    def tool_call(self, effect: str) -> Event | None:
        """The intent of a tool call by the identity of its effect."""
        return self._starts.get(effect)

    def answer(self, intent: Event) -> Event | None:
        """How a call ended; ``None`` when its process died before it did."""
        return self._answers.get(intent.seq)

    def is_result(self, event: Event) -> bool:
        """Whether it says how a call ended, made or refused, or what is known of one whose end was lost."""
        found = event.type == "effect.settled" and event.payload["kind"] == "probe"
        return found or event.type in _ENDS or event.type == "effect.in_doubt"

    def is_due(self, seq: int, role_call_id: str, laid: set[int]) -> bool:
        """Whether all calls and ends of a role call before ``seq`` have happened, or are about to be written at once:
        what stands between two events of a role call stands between two of its commands.
        """
        return not any(
            event.refs.get("role_call_id") != role_call_id
            or event.type in _MOVES
            or (self.is_result(event) and event.seq not in laid)
            for event in map(self.events.__getitem__, range(self.seq, seq - 1))
        )

    def are_all_in(self, role_call_id: str, laid: set[int]) -> bool:
        """Whether a cancel that is recorded has happened, and all ends of calls that were made by now are written, or
        about to be: then comes what is not recorded, and was refused.
        """
        if self.seq < self._cancelled_at:
            return False
        made = (end for seq, end in self._answers.items() if seq <= self.seq < end.seq and end.seq not in laid)
        return not any(end.refs.get("role_call_id") == role_call_id for end in made)

    def is_closed_to(self, role_call_id: str, fact: Fact) -> bool:
        """Whether a call is refused because another one was before: that one leaves no trace, this one has failed."""
        failed = self.ahead(role_call_id, "harness.tool_call.failed")
        end = next((one for one in failed if call_id_of(one) == call_id_of(fact)), None)
        return end is not None and end.payload["error"].get("code") == "role.closed"

    def heard(self, role_call_id: str, reason: str) -> bool:
        """Whether a role call that is to end yet says itself that it heard a cancel, not that it was refused a call."""
        ended = next(self.ahead(role_call_id, "harness.session.failed"), None)
        error = {} if ended is None else ended.payload["error"]
        return error.get("code") == "cancelled" and (error.get("details") or {}).get("reason") == reason

    def difference(self, fact: Fact, version: int, *, seq: int) -> Difference | None:
        """What a new event has otherwise than the recorded one of that seq, byte by byte but for the envelope's ids;
        one that an older version wrote is compared in the form of today."""
        if seq > len(self.stored):
            return Difference(seq, None, {"type": fact.type, "payload": fact.payload})
        stored, event = self.stored[seq - 1], self.events[seq - 1]
        payload = {**fact.payload, **_readings(event)} if fact.type == event.type else fact.payload
        error = payload.get("error")
        if event.seq in self._made and error and _said(error) == _said(event.payload.get("error") or {}):
            payload = {**payload, "error": event.payload["error"]}  # whoever failed stands outside, with what caused it
        older = stored.version != event.version  # what an upcaster made has no order of fields to be compared
        recorded = dumps(dict(event.payload), sort_keys=True) if older else stored.payload
        written = (fact.type, version, fact.actor, _refs(fact.refs), dumps(payload, sort_keys=older))
        if written == (event.type, event.version, stored.actor, _refs(event.refs), recorded):
            return None
        sides = (
            {"type": event.type, "payload": dict(event.payload), "refs": _refs(event.refs), "actor": stored.actor},
            {"type": fact.type, "payload": payload, "refs": _refs(fact.refs), "actor": fact.actor},
        )
        return Difference(seq, *sides)


def _asks(event: Event, wait_id: str) -> bool:
    """Whether it says what a call waits for: an approval, a child, or a word on what became of it."""
    told = _ASKS.get(event.type)
    return told is not None and event.payload[told] == wait_id


def _readings(event: Event) -> dict[str, Any]:
    """What of an event was read off a clock."""
    if event.type == "budget.exhausted" and event.payload["dimension"] == "seconds":
        return {"used": event.payload["used"]}
    return {name: event.payload[name] for name in _READINGS.get(event.type, ()) if name in event.payload}


def _said(error: Mapping[str, Any]) -> Any:
    return error.get("name"), error.get("code"), error.get("message")


def _refs(refs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in refs.items() if value is not None and name not in _ENVELOPE_IDS}
