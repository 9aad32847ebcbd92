"""Fold one event into the state it owns: a table from type to handler, no I/O, no plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness_hookspecs.events import EVENTS

from .causes import KEEP
from .children import CHILDREN
from .compiling import COMPILING, changes_accepted
from .externals import EXTERNALS
from .facts import Event
from .forking import inherit
from .inbox import command_received
from .own_steps import OWN_STEPS
from .spending import BUDGET
from .state import MIGRATED, PLUGIN_KEY, Approval, Failure, OpenRequest, SessionState, Visit
from .timers import timer_cancelled, timer_elapsed, timer_requested

__all__ = ["HANDLERS", "evolve"]

Handler = Callable[[SessionState, Event], None]
HANDLERS: dict[str, Handler] = {
    "session.forked": inherit,
    **BUDGET,
    **CHILDREN,
    **COMPILING,
    **EXTERNALS,
    **OWN_STEPS,
    "command.received": command_received,
    "timer.requested": timer_requested,
    "timer.elapsed": timer_elapsed,
    "timer.cancelled": timer_cancelled,
}

CHANGES_OLDER = frozenset(
    {"command.received", "config.migrated", "role.suspended", "budget.exhausted", "budget.raised"}
    | {name for name in EVENTS if name.startswith(("session.", "approval.", "effect.", "child."))}
)
"""After these something may run that was asked for before them, or may not any more (``react``)."""


def evolve(state: SessionState, event: Event) -> None:
    """Fold ``event``; a type nobody knows, or knows only in another version, is marked and skipped (B-92)."""
    event_type = event.type
    known = EVENTS.get(event_type)
    if known is not None and event.version == known.version:
        if (keep := KEEP.get(event_type)) is not None:
            keep(state, event)
        if (handler := HANDLERS.get(event_type)) is not None:
            handler(state, event)
        state.causes.last_id = event.id
        if event_type in CHANGES_OLDER:
            state.changed_seq = event.seq
    elif event_type not in state.unknown_types:
        state.unknown_types.append(event_type)
    state.seq, state.updated_at = event.seq, event.timestamp


def _on(*types: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(types, handler))
        return handler

    return register


@_on("session.created")
def _created(state: SessionState, event: Event) -> None:
    state.status = "created"
    state.created = dict(event.payload)
    state.created_at = event.timestamp
    state.config_digest, state.config_ref = event.payload["config_digest"], event.payload["config_ref"]
    state.plugins = {one["id"]: one["version"] for one in event.payload.get("plugins", ()) if one["status"] == "ok"}
    state.budget = dict(event.payload.get("budget") or {})


@_on("session.started", "session.resumed")
def _active(state: SessionState, event: Event) -> None:
    state.status = "active"
    state.pausing = None


@_on("session.paused")
def _paused(state: SessionState, event: Event) -> None:
    state.status = "paused"
    state.pausing = None


@_on("session.awaiting")
def _awaiting(state: SessionState, event: Event) -> None:
    state.status = "awaiting_approval"
    for approval_id in event.payload["approval_ids"]:
        state.approvals[approval_id].awaited = True


@_on("session.cancelled", "session.completed")
def _ended(state: SessionState, event: Event) -> None:
    state.status = event.type.removeprefix("session.")
    _close(state)


@_on("session.failed")
def _failed(state: SessionState, event: Event) -> None:
    state.status = "failed"
    payload = event.payload
    state.failure = Failure(payload["code"], payload["message"], list(payload.get("findings", ())), payload.get("hint"))
    _close(state)


def _close(state: SessionState) -> None:
    of_calls = (state.role_calls, state.timers, state.children, state.child_ends, state.reserved, state.questions)
    for held in (state.open, state.externals, state.kept, *of_calls):
        held.clear()
    state.usage.lose()
    state.cancelling = state.pausing = None


@_on("config.migrated")
def _migrated(state: SessionState, event: Event) -> None:
    payload = event.payload
    state.config_digest, state.config_ref = payload["new_digest"], payload["content_ref"]
    state.migrated_seq = event.seq
    changes_accepted(state, payload["changes"])
    for change in payload["changes"]:
        if change["key"].startswith(PLUGIN_KEY):
            state.plugins[change["key"].removeprefix(PLUGIN_KEY)] = change["new"]


@_on("plugin.failed")
def _plugin_failed(state: SessionState, event: Event) -> None:
    state.plugin_failures += 1


@_on("stage.entered")
def _entered(state: SessionState, event: Event) -> None:
    payload = event.payload
    state.visits += 1
    state.visits_of[payload["stage"]] = state.visits_of.get(payload["stage"], 0) + 1
    state.target = None
    state.visit = Visit(
        stage=payload["stage"],
        visit_id=payload["visit_id"],
        index=payload["visit_index"],
        persona=payload["persona"],
        executor=payload["executor"],
        model=payload["model"],
        max_attempts=payload["max_attempts"],
        entered_seq=event.seq,
    )


@_on("stage.skipped")
def _skipped(state: SessionState, event: Event) -> None:
    _visit(state).skipped = True


@_on("stage.left")
def _left(state: SessionState, event: Event) -> None:
    _visit(state).left = True


@_on("transition.taken")
def _transition(state: SessionState, event: Event) -> None:
    # `retry` leads nowhere: the attempt that follows is scheduled beside it.
    state.target = None if event.payload["target"] == "retry" else event.payload["target"]


def _visit(state: SessionState) -> Visit:
    assert state.visit is not None, "an event of a visit without a visit"
    return state.visit


@_on("context.requested", "validation.requested", "role.requested")
def _requested(state: SessionState, event: Event) -> None:
    kind = event.type.removesuffix(".requested")
    payload = dict(event.payload)
    effect_id = payload["effect_id"]
    request = state.open[effect_id] = OpenRequest(kind, effect_id, payload, event.seq, event.id)
    if kind == "role":
        request.step_path, request.visit_index = event.refs.get("step_path"), event.refs.get("visit_index") or 0
        state.role_calls[payload["role_call_id"]] = request
        _visit(state).ask(request)
    if kind == "context":  # what was said until now is in it, and stays in the later attempts of this visit
        _visit(state).steering += state.steering
        state.steering = []


@_on("context.assembled")
def _assembled(state: SessionState, event: Event) -> None:
    state.open.pop(event.payload["effect_id"], None)
    visit = _visit(state)
    visit.pack_ref = event.payload["pack_ref"]
    visit.facts_ref = event.payload["facts_ref"]


@_on("context.failed")
def _context_failed(state: SessionState, event: Event) -> None:
    state.open.pop(event.payload["effect_id"], None)
    _attempt_failed(_visit(state), event.payload["error"])


def _attempt_failed(visit: Visit, error: dict[str, Any]) -> None:
    code = error.get("code") or error.get("name") or "failed"
    visit.failure = Failure.told(code, error.get("message", ""), error)


@_on("role.suspended")
def _suspended(state: SessionState, event: Event) -> None:
    request = state.open_of(event.payload["role_call_id"])
    if request is not None:
        request.suspended = (event.payload["kind"], event.payload["wait_id"])
        request.suspended_seq = event.seq
        request.rounds += 1


@_on("role.returned", "role.failed")
def _role_ended(state: SessionState, event: Event) -> None:
    payload = event.payload
    request = state.open.pop(payload["effect_id"], None)
    if request is None:
        return
    state.role_calls.pop(request.payload["role_call_id"], None)
    state.questions.pop(request.payload["role_call_id"], None)
    state.child_ends.pop(request.payload["role_call_id"], None)
    state.usage.lose(request.payload["role_call_id"])
    outcome: dict[str, Any] = {"request_id": request.payload["request_id"], "ok": event.type == "role.returned"}
    if outcome["ok"]:
        outcome["value_ref"] = payload["output_ref"]
    else:
        outcome["error"] = payload["error"]
    _visit(state).outcomes.append(outcome)


@_on("validation.passed", "validation.failed", "validation.errored")
def _validated(state: SessionState, event: Event) -> None:
    payload = event.payload
    state.open.pop(payload["effect_id"], None)
    visit, level = _visit(state), payload["level"]
    if event.type == "validation.passed":
        visit.passed.append(level)
        if level == "payload":
            visit.body_ref, visit.status = payload.get("body_ref"), payload.get("status")
            visit.body = payload.get("body")
            visit.warnings = list(payload.get("findings", ()))
    elif event.type == "validation.failed":
        findings = list(payload.get("findings", ()))
        text = "; ".join(str(f["message"]) for f in findings if f.get("severity") == "error")
        # Asked of the approval, not of the findings: a validator may write any code into one.
        unattended = level == "approval" and any(_denied_unattended(one, visit) for one in state.approvals.values())
        code = "approval.denied_unattended" if unattended else f"validation.{level}"
        visit.failure = Failure(code, text or f"{level} validation failed", findings)
    else:
        text = "; ".join(str(error.get("message", "")) for error in payload["errors"])
        visit.failure = Failure("validator_error", text or "a validator gave no verdict")


def _denied_unattended(approval: Approval, visit: Visit) -> bool:
    of = approval.payload
    kind = (approval.ended or {}).get("kind")
    return of["subject"] == "artifact" and of["visit_id"] == visit.visit_id and kind == "on_ask"


@_on("artifact.proposed")
def _proposed(state: SessionState, event: Event) -> None:
    visit = _visit(state)
    visit.artifact_id = event.payload["artifact_id"]
    visit.artifact_type = event.payload["type"]
    visit.output_ref = event.payload["output_ref"]


@_on("artifact.accepted")
def _accepted(state: SessionState, event: Event) -> None:
    visit, payload = _visit(state), event.payload
    visit.accepted, visit.status = True, payload["status"]
    state.artifacts.append(
        {
            "ref": f"artifact://sha256-{payload['body_ref']}",
            "artifact_id": payload["artifact_id"],
            "type": payload["type"],
            "status": payload["status"],
            "stage": visit.stage,
            "visit_id": visit.visit_id,
        }
    )


@_on("artifact.rejected")
def _rejected(state: SessionState, event: Event) -> None:
    _visit(state).status = "rejected"


@_on("retry.scheduled")
def _retry(state: SessionState, event: Event) -> None:
    visit, payload = _visit(state), event.payload
    visit.keep_ended(payload)
    visit.attempt = payload["attempt"]
    visit.retries += payload["code"] != MIGRATED  # no fault of the attempt
    visit.feedback = payload["reason"] if payload["inject"] else None
    visit.temperature = payload.get("temperature", visit.temperature)
    visit.passed = [level for level in visit.passed if level == "routing"]
    visit.pack_ref = visit.facts_ref = visit.artifact_id = visit.output_ref = None
    visit.body_ref = visit.status = visit.failure = visit.body = None
    visit.accepted = False
    visit.requested, visit.begun_at, visit.repaired, visit.outcomes, visit.warnings = {}, {}, {}, [], []


@_on("approval.requested")
def _approval_requested(state: SessionState, event: Event) -> None:
    approval_id = event.payload["approval_id"]
    approval = Approval(approval_id, dict(event.payload), event.id)
    state.approvals[approval_id] = state.pending[approval_id] = approval
    role_call_id, call_id = event.payload.get("role_call_id"), event.payload.get("call_id")
    if role_call_id is not None and call_id is not None:
        state.questions.setdefault(role_call_id, {}).setdefault(call_id, []).append(approval_id)


@_on("approval.granted", "approval.denied", "approval.bypassed", "approval.expired", "approval.superseded")
def _approval_ended(state: SessionState, event: Event) -> None:
    approval = state.approvals[event.payload["approval_id"]]
    approval.status = event.type.removeprefix("approval.")
    approval.ended = dict(event.payload)
    approval.grant_event_id = event.id
    state.pending.pop(approval.approval_id, None)
    if approval.payload["subject"] == "tool" and approval.status in ("granted", "bypassed"):  # no call uses a gate's
        state.unused[event.id] = approval.approval_id
    _count_decision(state, approval, 1)
    if event.payload.get("scope") == "session":
        asked = approval.payload
        grant = {"name": asked["name"], "tier": asked["tier"], "by": event.payload["by"]}
        state.grants.append({**grant, "approval_id": approval.approval_id})


def _count_decision(state: SessionState, approval: Approval, change: int) -> None:
    """Decisions are counted as they come, or whoever wants to know them would have to walk over all approvals."""
    decision = approval.decision()
    count = state.decided.get(decision, 0) + change
    if count:
        state.decided[decision] = count
    else:
        del state.decided[decision]


@_on("steering.received")
def _steering(state: SessionState, event: Event) -> None:
    state.steering.append(event.payload["text"])


@_on("harness.model.called")
def _model_called(state: SessionState, event: Event) -> None:
    _count_call(state, event)
    state.usage.ask(event.payload["callId"], str(event.refs.get("role_call_id", "")))


@_on("harness.tool_call.succeeded", "harness.tool_call.failed", "harness.session.started")
def _count_call(state: SessionState, event: Event) -> None:
    request = state.open_of(str(event.refs.get("role_call_id", "")))
    if request is not None:
        request.calls += 1


@_on("harness.model.responded")
def _model_responded(state: SessionState, event: Event) -> None:
    state.usage.answer(event.payload["callId"], event.payload["response"]["usage"])


@_on("harness.model.failed")
def _model_failed(state: SessionState, event: Event) -> None:
    state.usage.fail(event.payload["callId"])


@_on("harness.tool_call.started")
def _tool_started(state: SessionState, event: Event) -> None:
    _count_call(state, event)
    cause, call = str(event.refs.get("causation_id")), (event.refs.get("role_call_id"), event.payload["callId"])
    approval = state.approvals.get(state.unused.get(cause, ""))
    if approval is None or (approval.payload.get("role_call_id"), approval.payload.get("call_id")) != call:
        return  # a call that needs no approval may follow right after the grant of another one
    del state.unused[cause]
    _count_decision(state, approval, -1)
    approval.consumed = True
    _count_decision(state, approval, 1)


@_on("effect.in_doubt")
def _in_doubt(state: SessionState, event: Event) -> None:
    state.in_doubt[event.payload["effect_id"]] = dict(event.payload)


@_on("effect.settled")
def _settled(state: SessionState, event: Event) -> None:
    state.in_doubt.pop(event.payload["effect_id"], None)
    state.settled[event.payload["effect_id"]] = dict(event.payload)
