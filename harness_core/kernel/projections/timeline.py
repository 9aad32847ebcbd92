"""Events in their order in, the lines that people read while a session runs or afterwards out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import attrs

from harness_core.kernel.facts import Event
from harness_core.kernel.state import PLUGIN_KEY
from harness_hookspecs.events import EVENTS
from harness_hookspecs.kit.render import clip_line, escape_line

from .places import Place, Places

__all__ = ["Line", "Timeline", "change_named", "timeline"]

_TEXT_COLUMNS = 160


Said = tuple[str, str] | None
Payload = Mapping[str, Any]


class Line(NamedTuple):
    """One line: the event's seq, a mark (``+`` good, ``-`` bad, ``?`` waits, ``.`` goes on) and the text, escaped."""

    seq: int
    mark: str
    text: str


class Timeline:
    """Follows a stream and says what a person wants to know of it."""

    def __init__(self) -> None:
        self._places = Places()
        self._asked: dict[str, str] = {}  # approval id -> what it is about
        self._steps: dict[str, str] = {}  # role call id -> the step of a plan that it does

    def line(self, event: Event) -> Line | None:
        """The line of the next event; ``None`` for one that is only of interest to programs."""
        place = self._places.see(event)
        if event.type not in EVENTS:
            return Line(event.seq, ".", f"{escape_line(event.type)} (unknown to this version, skipped)")
        say = _LINES.get(event.type)
        step = self._step(event)
        at = place if step in (None, place.stage) else attrs.evolve(place, stage=f"{place.stage}/{step}")
        said = say(self._named(event), at) if say is not None else None
        if said is None:
            return None
        mark, text = said
        return Line(event.seq, mark, clip_line(escape_line(text), _TEXT_COLUMNS))

    def _step(self, event: Event) -> str | None:
        """The step of a plan that it is about; a stage without one is a single step, of its own name."""
        call = event.refs.get("role_call_id", "")
        step: str | None = event.refs.get("step_path", self._steps.get(call))
        if event.type == "role.requested" and step is not None:
            self._steps[call] = step
        elif event.type in ("role.returned", "role.failed"):
            self._steps.pop(call, None)
        return step

    def _named(self, event: Event) -> Payload:
        """The payload; that of an approval's answer, or of waiting for some, also says what they are about, and a child
        is named as people see it."""
        payload = event.payload
        if event.type == "approval.requested":
            self._asked[payload["approval_id"]] = f"{payload['name']} ({payload['tier']})"
        elif event.type.startswith("approval."):
            return {**payload, "what": self._asked.get(payload["approval_id"], "")}
        elif event.type == "session.awaiting":
            names = [f"{self._asked.get(one, '')}, approval {one[-8:]}" for one in payload["approval_ids"]]
            return {**payload, "what": "; ".join((*names, *payload.get("flaws", ())))}
        return {**payload, "child_id": payload["child_id"][-8:]} if "child_id" in payload else payload


def timeline(events: Iterable[Event]) -> list[Line]:
    """All lines of a stream."""
    follow = Timeline()
    return [line for event in events if (line := follow.line(event)) is not None]


def change_named(change: Mapping[str, Any]) -> str:
    """One change of ``config.migrated`` as a person reads it: what it is about, and both values."""
    key = str(change["key"])
    if not key.startswith(PLUGIN_KEY):
        return f"{key}: {change['old']!r} -> {change['new']!r}"
    name = key.removeprefix(PLUGIN_KEY)
    if change["old"] is None:
        return f"{name} {change['new']} is new"
    return f"{name} {change['old']} is gone" if change["new"] is None else f"{name} {change['old']} -> {change['new']}"


def _migrated(payload: Payload, place: Place) -> Said:
    changes = "; ".join(map(change_named, payload["changes"]))
    return ".", f"configuration migrated: {changes}" if changes else "configuration migrated"


def _forked(payload: Payload, place: Place) -> Said:
    asked, seq = payload["asked_seq"], payload["seq"]
    why = "" if asked == seq else f", the last one before {asked} with no stage open"
    on = f"goes on with {payload['target']}" if "target" in payload else "begins anew"
    changes = "".join(f"; {change_named(change)}" for change in payload["changes"])
    return ".", f"forked from session {payload['parent_id'][-8:]} at event {seq}{why}: {on}{changes}"


def _entered(payload: Payload, place: Place) -> Said:
    again = f", visit {place.visit_index + 1}" if place.visit_index else ""
    return ".", f"{place.stage}: {place.persona} with {place.model}, attempt 1 of {place.max_attempts}{again}"


def _left(payload: Payload, place: Place) -> Said:
    attempts = f"{payload['attempts']} attempt{'s' if payload['attempts'] != 1 else ''}"
    mark = "+" if payload["status"] == "success" else "-"
    return mark, f"{payload['stage']}: left with status {payload['status']} after {attempts}"


def _retried(payload: Payload, place: Place) -> Said:
    return "-", f"{place.stage}: attempt {place.attempt} of {place.max_attempts} failed: {payload['reason']}"


def _context(payload: Payload, place: Place) -> Said:
    left = f", {payload['left_out']} left out" if payload["left_out"] else ""
    items = f"{payload['items']} item{'s' if payload['items'] != 1 else ''}"
    return ".", (
        f"{place.stage}: attempt {place.attempt} of {place.max_attempts}, context "
        f"{payload['tokens']}/{payload['budget_tokens']} tokens, {items}{left}"
    )


def _responded(payload: Payload, place: Place) -> Said:
    usage = payload["response"]["usage"]
    tokens = f"{usage.get('inputTokens', 0)} in, {usage.get('outputTokens', 0)} out"
    known = tokens if usage.get("known", True) else "tokens unknown"
    total = (payload.get("timing") or {}).get("totalMs")
    seconds = f", {total / 1000:.1f} s" if total is not None else ""
    calls = len(payload["response"].get("toolCalls", ()))
    asks = f", asks for {calls} tool call{'s' if calls != 1 else ''}" if calls else ""
    return ".", f"{place.stage}: turn {payload['turn']} answered, {known}{seconds}{asks}"


def _tool(mark: str, word: str) -> Callable[[Payload, Place], Said]:
    def say(payload: Payload, place: Place) -> Said:
        error = payload.get("error") or {}
        reason = f": {error.get('message', '')}" if error else ""
        return mark, f"{place.stage}: {payload['toolName']} {word}{reason}"

    return say


def _validation_failed(payload: Payload, place: Place) -> Said:
    findings = [f for f in payload.get("findings", ()) if f.get("severity", "error") == "error"]
    text = "; ".join(f"{f.get('path') or '/'}: {f['message']}" for f in findings)
    return "-", f"{place.stage}: {payload['level']} validation failed: {text or 'no reason given'}"


def _validation_errored(payload: Payload, place: Place) -> Said:
    text = "; ".join(str(error.get("message", "")) for error in payload["errors"])
    return "-", f"{place.stage}: {payload['level']} validation gave no verdict: {text}"


def _asked(payload: Payload, place: Place) -> Said:
    return None  # what becomes of it is said: it is answered, or it is waited for


def _decided(mark: str, word: str) -> Callable[[Payload, Place], Said]:
    def say(payload: Payload, place: Place) -> Said:
        why = payload.get("say") or payload.get("reason")
        return mark, f"{place.stage}: {payload['what']} {word} by {payload['by']}{f': {why}' if why else ''}"

    return say


def _failed(payload: Payload, place: Place) -> Said:
    return "-", f"session failed: {payload['code']}: {payload['message']}"


def _error(what: str) -> Callable[[Payload, Place], Said]:
    def say(payload: Payload, place: Place) -> Said:
        error = payload["error"]
        return "-", f"{place.stage}: {what}: {error.get('message') or error.get('name')}"

    return say


def _budget_reached(payload: Payload, place: Place) -> Said:
    used, limit, wanted = (_number(payload[name]) for name in ("used", "limit", "wanted"))
    more = f", {wanted} more wanted" if payload["wanted"] else ""
    return "?", f"budget of {payload['dimension']} reached: {used} of {limit}{more}"


def _budget_raised(payload: Payload, place: Place) -> Said:
    limits = ", ".join(f"{name} to {_number(value)}" for name, value in payload["limits"].items())
    return ".", f"budget raised: {limits}"


def _number(value: float) -> str:
    """Tokens and calls to the last one, seconds to the hundredth."""
    return str(value if isinstance(value, int) else round(value, 2))


def _fixed(mark: str, template: str) -> Callable[[Payload, Place], Said]:
    """A line whose words are fields of the payload."""

    def say(payload: Payload, place: Place) -> Said:
        return mark, template.format_map({**payload, "in": place.stage})

    return say


def _rejected(payload: Payload, place: Place) -> Said:
    errors = [one for one in payload["findings"] if one.get("severity") == "error"]
    text = "; ".join(f"{one.get('path') or '/'}: {one.get('message', '')}" for one in errors)
    return "-", f"{place.stage}: the plan is not registered: {text or 'no reason given'}"


def _child(payload: Payload, place: Place) -> Said:
    named = payload.get("workflow_version_id") or payload["workflow_id"]
    return ".", f"{place.stage}: a child session to {payload['goal']} {named}: {payload['child_id']}"


def _child_failed(payload: Payload, place: Place) -> Said:
    return "-", f"{place.stage}: child {payload['child_id']} {payload['status']}: {payload['error'].get('message', '')}"


def _timer(payload: Payload, place: Place) -> Said:
    return ".", f"{place.stage}: a timer of {payload['delay_ms'] / 1000:g} s"


def _own_step(payload: Payload, place: Place) -> Said:
    """Of the runtime's own, which the place names; what a role runs is told by its calls."""
    again = f", attempt {payload['attempt']}" if payload.get("attempt", 1) > 1 else ""
    return (".", f"{place.stage}: begins{again}") if "requestId" in payload else None


def _own_step_done(payload: Payload, place: Place) -> Said:
    if (ended := payload.get("branches")) is None:
        return None
    failed = f", {ended['failed']} failed" if ended["failed"] else ""
    return "+", f"{place.stage}: done: {ended['completed']} branches completed{failed}"


def _external(payload: Payload, place: Place) -> Said:
    limit = f", at most {payload['limit_ms'] / 1000:g} s" if "limit_ms" in payload else ""
    return "?", f"{place.stage}: waits for the event {payload['name']}{limit}"


def _taken(payload: Payload, place: Place) -> Said:
    """A rule without a condition is recorded as one that always holds."""
    why = ", by a rule without a condition" if payload["rule"] == "true" else f" because {payload['rule']}"
    return ".", f"{payload['source']} -> {payload['target']}{why}"


_LINES: dict[str, Callable[[Payload, Place], Said]] = {
    "session.created": _fixed(".", "session created: {title}"),
    "session.forked": _forked,
    "session.paused": _fixed("?", "session paused: {reason}"),
    "session.resumed": _fixed(".", "session goes on: {reason}"),
    "session.awaiting": _fixed("?", "{in}: waits for a decision about {what}"),
    "session.cancelled": _fixed("-", "session cancelled: {reason}"),
    "session.failed": _failed,
    "session.completed": _fixed("+", "session completed"),
    "config.migrated": _migrated,
    "plugin.failed": _error("a plugin is left out"),
    "stage.entered": _entered,
    "stage.left": _left,
    "stage.skipped": _fixed("-", "{stage}: skipped: {reason}"),
    "transition.taken": _taken,
    "retry.scheduled": _retried,
    "context.assembled": _context,
    "context.failed": _error("no context"),
    "role.delegated": _fixed(".", "{in}: {source} gives the call to {target}"),
    "role.failed": _error("role call failed"),
    "workflow.version_registered": _fixed("+", "{in}: plan {workflow_version_id} is registered"),
    "compile.failed": _rejected,
    "child.requested": _child,
    "child.granted": _fixed(".", "{in}: child {child_id} may use {tokens} tokens and {calls} calls"),
    "child.completed": _fixed("+", "{in}: child {child_id} is done: {summary}"),
    "child.exhausted": _fixed("?", "{in}: child {child_id} has used up its {dimension}"),
    "child.failed": _child_failed,
    "timer.requested": _timer,
    "timer.elapsed": _fixed(".", "{in}: a timer is over"),
    "timer.cancelled": _fixed(".", "{in}: a timer is given up: {reason}"),
    "harness.execute_step.started": _own_step,
    "harness.execute_step.succeeded": _own_step_done,
    "external.requested": _external,
    "external.delivered": _fixed("+", "{in}: {name} has come"),
    "external.timed_out": _fixed("-", "{in}: an event has not come in time"),
    "external.cancelled": _fixed(".", "{in}: an event is waited for no more: {reason}"),
    "harness.model.responded": _responded,
    "harness.model.failed": _error("model call failed"),
    "harness.tool_call.started": _tool(".", "started"),
    "harness.tool_call.succeeded": _tool("+", "succeeded"),
    "harness.tool_call.failed": _tool("-", "failed"),
    "validation.failed": _validation_failed,
    "validation.errored": _validation_errored,
    "artifact.accepted": _fixed("+", "{in}: artifact {type} accepted, status {status}"),
    "approval.requested": _asked,
    "approval.granted": _decided("+", "granted"),
    "approval.denied": _decided("-", "denied"),
    "approval.expired": _decided("-", "expired"),
    "approval.bypassed": _decided(".", "bypassed"),
    "steering.received": _fixed(".", "instruction from {source}: {text}"),
    "effect.in_doubt": _fixed("?", "{in}: nobody knows whether {tool_name} happened; settle {effect_id}"),
    "effect.settled": _fixed(".", "effect {effect_id}: {outcome}, says {by}"),
    "budget.exhausted": _budget_reached,
    "budget.raised": _budget_raised,
}
