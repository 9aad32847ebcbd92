"""A fact and the state before it in, the id of the event that caused it out; and what the fold keeps for that (B-90).

Only facts about the log are looked at, never which process writes it or what happened to be decided beside it: an end
follows from its intent, a call from what asked for it, a decision from the event that let the stages go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .facts import Event, Fact
from .own_steps import is_own_step
from .state import OpenRequest, SessionState

__all__ = ["KEEP", "cause_of"]

Rule = Callable[[SessionState, Fact], str | None]
Keep = Callable[[SessionState, Event], None]


def cause_of(fact: Fact, state: SessionState) -> str | None:
    """The event that caused ``fact``, which is not folded yet; ``None`` for the first of a session.

    A fact without a rule stands right after its cause, in the same decision.
    """
    rule = _RULES.get(fact[0])
    return (rule is not None and rule(state, fact)) or state.causes.last_id


# -- rules ---


def _status(state: SessionState, fact: Fact) -> str | None:
    """What a person or a signal does is done to the session as they found it."""
    return state.causes.status_id


def _moved(state: SessionState, fact: Fact) -> str | None:
    return state.causes.moved_id


def _resumed(state: SessionState, fact: Fact) -> str | None:
    return state.causes.decided_id if fact.payload["reason"] == "answered" else state.causes.status_id


def _paused(state: SessionState, fact: Fact) -> str | None:
    return state.causes.status_id if state.pausing is None else state.causes.asked.get("pause")


def _cancelled(state: SessionState, fact: Fact) -> str | None:
    return state.causes.moved_id if state.cancelling is None else state.causes.asked.get("cancel")


def _awaiting(state: SessionState, fact: Fact) -> str | None:
    return state.approvals[fact.payload["approval_ids"][0]].event_id


def _command(state: SessionState, fact: Fact) -> str | None:
    """An answer is one to its question; any other command is given to the session as it stands."""
    body = fact.payload["body"]
    named = body.get("approval_id") if fact.payload["kind"] == "answer" else body.get("effect_id")
    if not isinstance(named, str):
        return state.causes.status_id
    if named in state.approvals:
        return state.approvals[named].event_id
    doubt = state.in_doubt.get(named)
    request = None if doubt is None else state.open_of(doubt["role_call_id"])
    return state.causes.status_id if doubt is None or request is None else request.calls_of.get(doubt["call_id"])


def _delivered(state: SessionState, fact: Fact) -> str | None:
    """What comes from outside follows from its delivery, which may be older than that somebody waits for it."""
    kept = state.kept.get(fact.payload["name"], ())
    return next((one["event_id"] for one in kept if one["delivery_id"] == fact.payload["delivery_id"]), None)


def _requested(state: SessionState, fact: Fact) -> str | None:
    request = state.open.get(fact.payload["effect_id"])
    return None if request is None else request.event_id


def _ignored(state: SessionState, fact: Fact) -> str | None:
    return state.causes.status_id if state.final else state.causes.moved_id


def _approval_asked(state: SessionState, fact: Fact) -> str | None:
    return _call(state, fact) if "call_id" in fact.payload else state.causes.moved_id


def _approval_ended(state: SessionState, fact: Fact) -> str | None:
    """What was answered follows from the answer, right before it; what nobody answered from the question."""
    answered = fact.payload["kind"] not in ("on_ask", "system")
    return None if answered else state.approvals[fact.payload["approval_id"]].event_id


def _begun(state: SessionState, fact: Fact) -> str | None:
    """The last opening event of the role call: what its role does by itself follows from that."""
    request = _role_call(state, fact.refs)
    return None if request is None else request.begun_id or request.event_id


def _step_begun(state: SessionState, fact: Fact) -> str | None:
    """As any other opening event of a role call; the runtime's own step begins because the stages may go on."""
    return _begun(state, fact) if "role_call_id" in fact.refs else state.causes.moved_id


def _step_ended(state: SessionState, fact: Fact) -> str | None:
    return _own_start("harness.execute_step.started")(state, fact) or state.causes.moved_id


def _suspended(state: SessionState, fact: Fact) -> str | None:
    kind, wait_id = fact.payload["kind"], fact.payload["wait_id"]
    if kind == "approval" and wait_id in state.approvals:
        return state.approvals[wait_id].event_id
    if kind == "in_doubt" and wait_id in state.in_doubt:
        request = _role_call(state, fact.refs)
        return None if request is None else request.calls_of.get(state.in_doubt[wait_id]["call_id"])
    if kind == "pause":
        return _paused(state, fact)
    if kind == "child" and (child := state.children.get(wait_id)) is not None:
        return child.event_id
    return state.causes.exhausted_id if kind == "budget" else _begun(state, fact)


def _model_called(state: SessionState, fact: Fact) -> str | None:
    """A turn follows from what its conversation had last: an answer, or the end of a call that one asked for."""
    request = _role_call(state, fact.refs)
    last = None if request is None else request.last_of.get(fact.payload.get("scope", ""))
    return last or _begun(state, fact)


def _reserved(state: SessionState, fact: Fact) -> str | None:
    """As the model call it is for, whose conversation it does not name: with more than one only the role is sure."""
    request = _role_call(state, fact.refs)
    if request is None or len(request.last_of) != 1:
        return _begun(state, fact)
    return next(iter(request.last_of.values()))


def _call(state: SessionState, fact: Fact) -> str | None:
    """What the call has recorded so far: who asked for it, its approval, its start, its end."""
    request = _role_call(state, fact.refs)
    call_id = fact.payload.get("callId") or fact.payload.get("call_id")
    return (request and request.calls_of.get(str(call_id))) or _begun(state, fact)


def _own_start(started: str) -> Rule:
    def rule(state: SessionState, fact: Fact) -> str | None:
        request = _role_call(state, fact.refs)
        return None if request is None else request.calls_of.get(started, request.event_id)

    return rule


def _role_call(state: SessionState, refs: Mapping[str, Any]) -> OpenRequest | None:
    return state.role_calls.get(refs.get("role_call_id", ""))


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("session.started", "session.forked", "config.migrated", "plugin.failed"), _status),
    "session.resumed": _resumed,
    "session.paused": _paused,
    "session.cancelled": _cancelled,
    "session.awaiting": _awaiting,
    "command.received": _command,
    **dict.fromkeys(("session.completed", "session.failed", "stage.entered", "stage.left", "stage.skipped"), _moved),
    **dict.fromkeys(("transition.taken", "retry.scheduled"), _moved),
    **dict.fromkeys(("artifact.proposed", "artifact.accepted", "artifact.rejected"), _moved),
    **dict.fromkeys(("context.requested", "validation.requested", "role.requested"), _moved),
    **dict.fromkeys(("timer.requested", "external.requested", "compile.requested"), _moved),
    **dict.fromkeys(("external.timed_out", "external.cancelled"), _requested),
    "external.delivered": _delivered,
    **dict.fromkeys(("context.assembled", "context.failed", "role.returned", "role.failed"), _requested),
    **dict.fromkeys(("validation.passed", "validation.failed", "validation.errored"), _requested),
    **dict.fromkeys(("timer.elapsed", "timer.cancelled", "compile.failed", "workflow.version_registered"), _requested),
    "effect.ignored": _ignored,
    "approval.requested": _approval_asked,
    **dict.fromkeys((f"approval.{end}" for end in ("granted", "denied", "expired", "superseded")), _approval_ended),
    **dict.fromkeys(("role.resolved", "role.delegated", "role.note"), _begun),
    "harness.session.started": _begun,
    "harness.execute_step.started": _step_begun,
    "role.suspended": _suspended,
    "harness.model.called": _model_called,
    **dict.fromkeys(("budget.reserved", "budget.exhausted"), _reserved),
    **dict.fromkeys(("harness.model.responded", "harness.model.failed", "budget.settled", "effect.in_doubt"), _call),
    **dict.fromkeys((f"harness.tool_call.{part}" for part in ("started", "succeeded", "failed")), _call),
    "child.requested": _call,
    **dict.fromkeys(("child.granted", "child.exhausted", "child.completed", "child.failed"), _requested),
    "harness.execute_step.succeeded": _step_ended,
    **dict.fromkeys(("harness.session.completed", "harness.session.failed"), _own_start("harness.session.started")),
}
"""By type of the fact. What has no rule: ``config.loaded``, an approval that policy, grant or yolo decided, and what a
command of the inbox does, which stands right after it."""


# -- what is kept ---


def _keep_status(state: SessionState, event: Event) -> None:
    state.causes.status_id = event.id


def _keep_moved(state: SessionState, event: Event) -> None:
    state.causes.moved_id = event.id


def _keep_active(state: SessionState, event: Event) -> None:
    state.causes.status_id = state.causes.moved_id = event.id


def _keep_command(state: SessionState, event: Event) -> None:
    state.causes.asked[event.payload["kind"]] = event.id


def _keep_decided(state: SessionState, event: Event) -> None:
    asked = state.approvals[event.payload["approval_id"]].payload
    state.causes.decided_id = event.id
    if asked["subject"] == "artifact":
        state.causes.moved_id = event.id
    _keep_in_call(state, event, asked.get("call_id"))


def _keep_exhausted(state: SessionState, event: Event) -> None:
    state.causes.exhausted_id = event.id


def _keep_begun(state: SessionState, event: Event) -> None:
    request = _role_call(state, event.refs)
    if request is not None:
        request.begun_id = request.calls_of[event.type] = event.id


def _keep_own_step(state: SessionState, event: Event) -> None:
    if is_own_step(event):
        state.causes.moved_id = event.id


def _keep_step(state: SessionState, event: Event) -> None:
    _keep_begun(state, event)
    _keep_own_step(state, event)


def _keep_call(state: SessionState, event: Event) -> None:
    _keep_in_call(state, event, event.payload.get("callId") or event.payload.get("call_id"))


def _keep_settled(state: SessionState, event: Event) -> None:
    _keep_in_call(state, event, state.in_doubt.get(event.payload["effect_id"], {}).get("call_id"))


def _keep_in_call(state: SessionState, event: Event, call_id: str | None) -> None:
    request = _role_call(state, event.refs)
    if request is not None and call_id is not None:
        request.calls_of[call_id] = event.id


def _keep_model_called(state: SessionState, event: Event) -> None:
    request, payload = _role_call(state, event.refs), event.payload
    if request is not None:
        request.calls_of[payload["callId"]] = event.id
        request.scope_of[payload["callId"]] = payload.get("scope", "")


def _keep_model_ended(state: SessionState, event: Event) -> None:
    request, payload = _role_call(state, event.refs), event.payload
    if request is None:
        return
    scope = request.scope_of.get(payload["callId"], "")
    request.calls_of[payload["callId"]] = request.last_of[scope] = event.id
    for call in payload.get("response", {}).get("toolCalls", ()):
        request.calls_of[call["callId"]] = event.id
        request.scope_of[call["callId"]] = scope


def _keep_tool_ended(state: SessionState, event: Event) -> None:
    request, call_id = _role_call(state, event.refs), event.payload["callId"]
    if request is None:
        return
    request.calls_of[call_id] = event.id
    if call_id in request.scope_of:  # what the role's own code called is nothing a conversation goes on from
        request.last_of[request.scope_of[call_id]] = event.id


KEEP: dict[str, Keep] = {
    **dict.fromkeys(("session.created", "session.paused", "session.awaiting"), _keep_status),
    **dict.fromkeys(("session.completed", "session.failed", "session.cancelled"), _keep_status),
    **dict.fromkeys(("session.started", "session.resumed"), _keep_active),
    "command.received": _keep_command,
    **dict.fromkeys(("config.migrated", "stage.entered", "stage.left", "stage.skipped"), _keep_moved),
    **dict.fromkeys(("transition.taken", "retry.scheduled"), _keep_moved),
    **dict.fromkeys(("artifact.proposed", "artifact.accepted", "artifact.rejected"), _keep_moved),
    **dict.fromkeys(("context.assembled", "context.failed", "role.returned", "role.failed"), _keep_moved),
    **dict.fromkeys(("validation.passed", "validation.failed", "validation.errored"), _keep_moved),
    **dict.fromkeys(("timer.elapsed", "timer.cancelled", "compile.failed"), _keep_moved),
    **dict.fromkeys(("external.delivered", "external.timed_out", "external.cancelled"), _keep_moved),
    "workflow.version_registered": _keep_moved,
    **dict.fromkeys((f"approval.{end}" for end in ("granted", "denied", "bypassed")), _keep_decided),
    **dict.fromkeys((f"approval.{end}" for end in ("expired", "superseded")), _keep_decided),
    **dict.fromkeys(("role.resolved", "role.delegated"), _keep_begun),
    "harness.session.started": _keep_begun,
    "harness.execute_step.started": _keep_step,
    "harness.execute_step.succeeded": _keep_own_step,
    **dict.fromkeys(("approval.requested", "harness.tool_call.started", "effect.in_doubt"), _keep_call),
    **dict.fromkeys(("child.completed", "child.failed"), _keep_moved),
    "effect.settled": _keep_settled,
    "budget.exhausted": _keep_exhausted,
    "harness.model.called": _keep_model_called,
    **dict.fromkeys(("harness.model.responded", "harness.model.failed"), _keep_model_ended),
    **dict.fromkeys(("harness.tool_call.succeeded", "harness.tool_call.failed"), _keep_tool_ended),
}
"""By type of the event, what is kept of it for later ones; the fold does it before it does anything else."""
