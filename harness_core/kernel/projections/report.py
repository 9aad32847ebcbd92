"""A session's events in, ``harness.report/1`` out: tokens by stage, role, persona, model and tool, and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import attrs

from harness_core.kernel.facts import Event
from harness_core.kernel.own_steps import OWN_STEP, is_own_step

from .places import Place, Places
from .tally import Tally

__all__ = ["report_document"]

_GROUPS = ("stages", "attempts", "roles", "personas", "models")


def report_document(events: Iterable[Event], session_id: str) -> dict[str, Any]:
    """What a session used and how long it took (A-62, B-121, B-122).

    Every number is the sum of the model calls in the log; the roll-ups of role calls are compared with it and not
    added again. Cost is derived elsewhere: here it is null, and every call is an unpriced one.
    """
    report = _Report()
    for event in events:
        report.see(event)
    return report.document(session_id)


@attrs.define
class _Tool:
    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    duration_ms: int = 0


@attrs.define
class _Visit:
    place: Place
    entered_at: str
    left_at: str | None = None
    attempts: int = 1
    status: str | None = None


@attrs.define
class _Timers:
    """How many there were, and for how long any was open."""

    asked: int = 0
    seconds: float = 0.0
    open: set[str] = attrs.Factory(set)
    since: str = ""

    def ask(self, effect_id: str, at: str) -> None:
        self.asked += 1
        self.since = self.since if self.open else at
        self.open.add(effect_id)

    def end(self, effect_id: str, at: str) -> None:
        self.open.discard(effect_id)
        if not self.open:
            self.seconds += _seconds(self.since, at)

    def end_all(self, at: str) -> None:
        """At the session's end, or where the log ends."""
        if self.open:
            self.seconds += _seconds(self.since, at)
            self.open.clear()


@attrs.define
class _FanOut:
    """How often a ``parallel`` step began and succeeded, how its branches ended, and how long it took in sum."""

    begun: int = 0
    succeeded: int = 0
    branches_completed: int = 0
    branches_failed: int = 0
    seconds: float = 0.0
    since: dict[str, str] = attrs.Factory(dict)  # where it is under way -> since when

    def see(self, event: Event) -> None:
        payload = event.payload
        where = f"{payload['stepPath']}#{payload['attempt']}"
        if event.type == "harness.execute_step.started":
            self.begun += 1
            self.since[where] = event.timestamp
            return
        ended = payload["branches"]
        self.succeeded += 1
        self.branches_completed += ended["completed"]
        self.branches_failed += ended["failed"]
        self.seconds += _seconds(self.since.pop(where, ""), event.timestamp)

    def document(self) -> dict[str, Any]:
        counted = {name: value for name, value in attrs.asdict(self).items() if name != "since"}
        return {**counted, "seconds": round(self.seconds, 3)}


class _Report:
    def __init__(self) -> None:
        self.timers, self.events = _Timers(), _Timers()
        self.places = Places()
        self.total = Tally()
        self.groups: dict[str, dict[tuple[Any, ...], Tally]] = {name: {} for name in _GROUPS}
        self.tools: dict[str, _Tool] = {}
        self.fan_outs: dict[tuple[str | None, str], _FanOut] = {}
        self.visits: dict[str, _Visit] = {}
        self.failed_attempts: dict[tuple[str, int], str] = {}
        self.calls: dict[str, dict[str, Any]] = {}
        self.cut_off: list[dict[str, Any]] = []  # earlier starts of those
        self.roll_ups: dict[str, tuple[Tally, Mapping[str, Any] | None]] = {}
        self.first_at = self.last_at = ""
        self.status = "created"

    def see(self, event: Event) -> None:
        place = self.places.see(event)
        self.first_at = self.first_at or event.timestamp
        self.last_at = event.timestamp
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            handler(self, event, place)

    # -- stages ---

    def entered(self, event: Event, place: Place) -> None:
        self.visits[place.visit_id] = _Visit(place, event.timestamp)

    def retried(self, event: Event, place: Place) -> None:
        self.failed_attempts[place.visit_id, place.attempt] = event.payload["code"]
        self.visits[place.visit_id].attempts = event.payload["attempt"]

    def left(self, event: Event, place: Place) -> None:
        visit = self.visits[event.payload["visit_id"]]
        visit.left_at, visit.status = event.timestamp, event.payload["status"]
        if visit.status == "failure":
            self.failed_attempts[place.visit_id, place.attempt] = "failure"

    def ended(self, event: Event, place: Place) -> None:
        self.status = _STATUS[event.type]
        if self.status in _FINAL:
            self.timers.end_all(event.timestamp)
            self.events.end_all(event.timestamp)
        if self.status == "failed" and place.visit_id and self.visits[place.visit_id].left_at is None:
            self.failed_attempts[place.visit_id, place.attempt] = event.payload["code"]
            self.visits[place.visit_id].status = "failure"

    def timer(self, event: Event, place: Place) -> None:
        kind, _, what = event.type.partition(".")
        waits = self.timers if kind == "timer" else self.events
        change = waits.ask if what == "requested" else waits.end
        change(event.payload["effect_id"], event.timestamp)

    # -- calls ---

    def called(self, event: Event, place: Place) -> None:
        payload = event.payload
        model = payload["request"]["model"]
        before = self.calls.get(payload["callId"])
        if before is not None:  # asked again, since nobody had its answer
            self._lose(before)
            self.cut_off.append(before)
        self.calls[payload["callId"]] = {
            "seq": event.seq,
            "call_id": payload["callId"],
            "turn": payload["turn"],
            "stage": place.stage,
            "visit_id": place.visit_id,
            "attempt": place.attempt,
            "persona": place.persona,
            "role": self.places.role_of(event),
            "role_call_id": event.refs.get("role_call_id"),
            "provider": model["provider"],
            "model_id": model["modelId"],
            "outcome": "open",
            "usage": None,
            "first_token_ms": None,
            "total_ms": None,
            "queue_ms": None,
        }

    def responded(self, event: Event, place: Place) -> None:
        payload = event.payload
        usage, timing = payload["response"]["usage"], payload.get("timing") or {}
        call = self.calls[payload["callId"]]
        one = Tally()
        one.answered(usage, timing)
        call |= {
            "outcome": payload["response"]["finishReason"],
            "usage": one.document()["usage"],
            "first_token_ms": timing.get("firstTokenMs"),
            "total_ms": timing.get("totalMs"),
            "queue_ms": timing.get("queueMs"),
        }
        for tally in self._tallies(call):
            tally.answered(usage, timing)

    def failed(self, event: Event, place: Place) -> None:
        call = self.calls[event.payload["callId"]]
        call["outcome"] = "failed"
        for tally in self._tallies(call):
            tally.failed()

    def _lose(self, call: dict[str, Any], outcome: str = "lost") -> None:
        call["outcome"] = outcome
        for tally in self._tallies(call):
            tally.lost()

    def _tallies(self, call: Mapping[str, Any]) -> list[Tally]:
        keys: dict[str, tuple[Any, ...]] = {
            "stages": (call["stage"],),
            "attempts": (call["visit_id"], call["attempt"]),
            "roles": (call["role"],),
            "personas": (call["persona"],),
            "models": (call["provider"], call["model_id"]),
        }
        role_call = str(call["role_call_id"])
        own, _ = self.roll_ups.setdefault(role_call, (Tally(), None))
        return [self.total, own, *(self.groups[name].setdefault(key, Tally()) for name, key in keys.items())]

    def rolled_up(self, event: Event, place: Place) -> None:
        role_call = str(event.refs.get("role_call_id"))
        own, _ = self.roll_ups.get(role_call, (Tally(), None))
        self.roll_ups[role_call] = (own, event.payload["usage"])

    def tool(self, event: Event, place: Place) -> None:
        payload = event.payload
        tool = self.tools.setdefault(payload["toolName"], _Tool())
        tool.calls += 1
        ok = event.type == "harness.tool_call.succeeded"
        tool.succeeded += ok
        tool.failed += not ok
        tool.duration_ms += int(payload.get("durationMs") or 0)

    def step(self, event: Event, place: Place) -> None:
        """Of a fan-out, which the runtime runs itself; what a step of a role takes is told by its calls."""
        if is_own_step(event):
            fan_out = self.fan_outs.setdefault((place.stage, event.payload["stepId"]), _FanOut())
            fan_out.see(event)

    # -- the document ---

    def document(self, session_id: str) -> dict[str, Any]:
        calls = sorted([*self.cut_off, *self.calls.values()], key=lambda call: int(call["seq"]))
        for call in calls:
            if call["outcome"] == "open":  # of one that nobody has lost yet nobody knows either what it used
                self._lose(call, "lost" if self.status in _AT_REST else "open")
            code = self.failed_attempts.get((call["visit_id"], call["attempt"]))
            call["attempt_failed"] = code is not None
        return {
            "schema": "harness.report/1",
            "session_id": session_id,
            "status": self.status,
            **self.total.document(),
            "cost_usd": None,
            "unpriced_calls": self.total.calls,
            "seconds": _seconds(self.first_at, self.last_at),
            "stages": self._stages(),
            "roles": [{"role": role, **tally.document()} for (role,), tally in self.groups["roles"].items()],
            "personas": [{"persona": name, **tally.document()} for (name,), tally in self.groups["personas"].items()],
            "models": [
                {"provider": provider, "model_id": model, **tally.document()}
                for (provider, model), tally in self.groups["models"].items()
            ],
            "timers": self._waits(self.timers),
            "events": self._waits(self.events),
            "fan_outs": [
                {"stage": stage, "step": step, **one.document()} for (stage, step), one in self.fan_outs.items()
            ],
            "tools": [{"tool": name, **attrs.asdict(tool)} for name, tool in self.tools.items()],
            "model_calls": calls,
            "roll_ups": self._roll_ups(),
        }

    def _waits(self, waits: _Timers) -> dict[str, Any]:
        waits.end_all(self.last_at)
        return {"asked": waits.asked, "seconds": round(waits.seconds, 3)}

    def _stages(self) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for visit in self.visits.values():
            stage = visit.place.stage
            tally = self.groups["stages"].get((stage,), Tally())
            row = found.setdefault(stage, {"stage": stage, **tally.document(), "seconds": 0.0, "visits": []})
            seconds = _seconds(visit.entered_at, visit.left_at or self.last_at)
            row["seconds"] = round(row["seconds"] + seconds, 3)
            row["visits"].append(self._visit(visit, seconds))
        return list(found.values())

    def _visit(self, visit: _Visit, seconds: float) -> dict[str, Any]:
        visit_id = visit.place.visit_id
        return {
            "visit_id": visit_id,
            "index": visit.place.visit_index,
            "status": visit.status,
            "seconds": seconds,
            "attempts": [
                {
                    "attempt": number,
                    "failed": (visit_id, number) in self.failed_attempts,
                    "code": self.failed_attempts.get((visit_id, number)),
                    **self.groups["attempts"].get((visit_id, number), Tally()).document(),
                }
                for number in range(1, visit.attempts + 1)
            ],
        }

    def _roll_ups(self) -> dict[str, Any]:
        said = [(own, usage) for own, usage in self.roll_ups.values() if usage is not None]
        equal = all(
            (own.input_tokens, own.output_tokens) == (usage.get("inputTokens", 0), usage.get("outputTokens", 0))
            for own, usage in said
        )
        return {"role_calls": len(said), "equal": equal}


def _seconds(start: str, end: str) -> float:
    """Seconds between two stored times; a clock that was set back gives 0."""
    if not start or not end:
        return 0.0
    gone = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return round(max(0.0, gone.total_seconds()), 3)


_FINAL = frozenset({"completed", "failed", "cancelled"})
_AT_REST = frozenset({"paused", *_FINAL})  # nobody waits for an answer in these
_STATUS = {
    "session.started": "active",
    "session.resumed": "active",
    "session.paused": "paused",
    "session.awaiting": "awaiting_approval",
    "session.completed": "completed",
    "session.failed": "failed",
    "session.cancelled": "cancelled",
}
_HANDLERS: dict[str, Callable[[_Report, Event, Place], None]] = {
    **dict.fromkeys(_STATUS, _Report.ended),
    "stage.entered": _Report.entered,
    "retry.scheduled": _Report.retried,
    "stage.left": _Report.left,
    **dict.fromkeys(("timer.requested", "timer.elapsed", "timer.cancelled"), _Report.timer),
    **dict.fromkeys(("external.requested", "external.delivered"), _Report.timer),
    **dict.fromkeys(("external.timed_out", "external.cancelled"), _Report.timer),
    "harness.model.called": _Report.called,
    "harness.model.responded": _Report.responded,
    "harness.model.failed": _Report.failed,
    "harness.session.completed": _Report.rolled_up,
    **dict.fromkeys(OWN_STEP, _Report.step),
    "harness.tool_call.succeeded": _Report.tool,
    "harness.tool_call.failed": _Report.tool,
}
