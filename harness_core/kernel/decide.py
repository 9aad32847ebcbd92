"""One command and the state in, the facts to append out: pure, and a table from command to rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .approvals import approval_digest, find_grant
from .children import abandoned
from .commands import (
    AskApproval,
    CancelNow,
    ChildEnded,
    ChildShort,
    Command,
    Compiled,
    ContextReady,
    EffectFailed,
    Migrate,
    PauseNow,
    PluginsFailed,
    Received,
    Record,
    Refusal,
    Resume,
    RoleFailed,
    RoleReturned,
    RoleSuspended,
    Start,
    TimersElapsed,
    Unanswered,
    Validated,
)
from .definition import Definition
from .externals import times_out
from .facts import Decision, Fact, derive
from .inbox import goes_on, received
from .limits import exhausted_by
from .spending import beyond_plan
from .stages import kernel_findings
from .state import Approval, OpenRequest, SessionState

__all__ = ["decide"]

NOTHING = Decision()
_WAITS_END = {"timer": "timer.elapsed", "external": "external.timed_out"}


def decide(command: Command, state: SessionState, definition: Definition) -> Decision:
    """What a command means in this state; ``Advance`` is answered by :func:`.stages.advance`.

    A result that comes after the end, or for a request that is no longer open, is recorded as ``effect.ignored``
    and changes nothing (I-17, I-20).
    """
    return _RULES[type(command)](command, state, definition)


def _start(command: Start, state: SessionState, definition: Definition) -> Decision:
    if state.status not in ("", "created"):
        return NOTHING
    created = dict(command.created)
    facts = [
        Fact("session.created", created, actor="operator"),
        Fact("config.loaded", {"digest": created["config_digest"], "content_ref": created["config_ref"]}),
    ]
    if command.forked is not None:
        facts.append(Fact("session.forked", dict(command.forked), actor="operator"))
    # A process that died right after session.created left the rest undone.
    if state.status == "created":
        facts = []
    return Decision((*facts, Fact("session.started", {})), command.blobs)


def _resume(command: Resume, state: SessionState, definition: Definition) -> Decision:
    if state.status == "created":
        return Decision((Fact("session.started", {}),))
    resumed = Fact("session.resumed", {"reason": command.reason}, actor="operator")
    if state.status == "paused":
        return Decision((resumed,))
    if state.pausing is not None:  # its process died before it could say that it has stopped
        return Decision((Fact("session.paused", {"reason": state.pausing}), resumed))
    return NOTHING


def _migrate(command: Migrate, state: SessionState, definition: Definition) -> Decision:
    if state.final:
        return NOTHING
    return Decision((Fact("config.migrated", dict(command.payload), actor="operator"),), command.blobs)


def _received(command: Received, state: SessionState, definition: Definition) -> Decision:
    return received(command, state)


def _pause_now(command: PauseNow, state: SessionState, definition: Definition) -> Decision:
    if state.status != "active":
        return NOTHING  # awaiting an approval stays so, also over a signal (I-38)
    return Decision((Fact("session.paused", {"reason": command.reason}),))


def _cancel_now(command: CancelNow, state: SessionState, definition: Definition) -> Decision:
    if state.final or not state.status:
        return NOTHING
    return Decision((Fact("session.cancelled", {"reason": command.reason}),))


def _plugins_failed(command: PluginsFailed, state: SessionState, definition: Definition) -> Decision:
    if state.final:
        return NOTHING
    return Decision(tuple(Fact("plugin.failed", dict(failure)) for failure in command.failures))


def _context_ready(command: ContextReady, state: SessionState, definition: Definition) -> Decision:
    request = state.open.get(command.effect_id)
    if request is None:
        return _ignored(command.effect_id, "the context is no longer asked for")
    refs = {"stage_visit_id": request.payload["visit_id"]}
    return Decision((Fact("context.assembled", dict(command.payload), refs),), command.blobs)


def _effect_failed(command: EffectFailed, state: SessionState, definition: Definition) -> Decision:
    request = state.open.get(command.effect_id)
    if request is None:
        return _ignored(command.effect_id, "the effect is no longer asked for")
    refs = {"stage_visit_id": request.payload["visit_id"]}
    payload = {"effect_id": command.effect_id, "error": dict(command.error)}
    return Decision((Fact("context.failed", payload, refs),))


def _validated(command: Validated, state: SessionState, definition: Definition) -> Decision:
    request = state.open.get(command.effect_id)
    if request is None:
        return _ignored(command.effect_id, "the verdict is no longer asked for")
    refs = {"stage_visit_id": request.payload["visit_id"]}
    outcome, payload = _verdict(command, request)
    findings = kernel_findings(payload["level"], state, definition) if outcome == "passed" else []
    if findings:
        outcome, payload = "failed", {**payload, "findings": [*payload.get("findings", ()), *findings]}
    return Decision((Fact(f"validation.{outcome}", payload, refs),), command.blobs)


def _verdict(command: Validated, request: OpenRequest) -> tuple[str, dict[str, Any]]:
    """The verdict as it counts: a pass of the payload that does not say what passed is none (I-24)."""
    payload, level = dict(command.payload), request.payload["level"]
    says_all = level != "payload" or (payload.get("body_ref") and payload.get("status"))
    if command.outcome != "passed" or (says_all and payload["level"] == level):
        return command.outcome, payload
    message = f"the verdict does not say what passed at level {level}"
    error = {"validator": "", "name": "PluginError", "message": message}
    return "errored", {"effect_id": request.effect_id, "level": level, "errors": [error]}


def _ignored(effect_id: str, reason: str) -> Decision:
    return Decision((Fact("effect.ignored", {"effect_id": effect_id, "reason": reason}),))


def _role_returned(command: RoleReturned, state: SessionState, definition: Definition) -> Decision:
    payload = {"output_ref": command.output_ref, "artifact_refs": list(command.artifact_refs)}
    return _role_ended(command, state, ("role.returned", payload))


def _role_failed(command: RoleFailed, state: SessionState, definition: Definition) -> Decision:
    return _role_ended(command, state, ("role.failed", {"error": dict(command.error)}))


def _role_ended(
    command: RoleReturned | RoleFailed, state: SessionState, ending: tuple[str, dict[str, Any]]
) -> Decision:
    request = state.open_of(command.role_call_id)
    if request is None:
        return _ignored(command.role_call_id, "the role call is no longer open")
    event_type, extra = ending
    refs = {"stage_visit_id": request.payload["visit_id"], "role_call_id": command.role_call_id}
    payload = {"role_call_id": command.role_call_id, "effect_id": request.effect_id, **extra}
    over = (*_asked_in_vain(command.role_call_id, state), *abandoned(state, command.role_call_id))
    return Decision((*command.closing, *over, Fact(event_type, payload, refs)), command.blobs)


def _asked_in_vain(role_call_id: str, state: SessionState) -> tuple[Fact, ...]:
    """What a call asked and nobody answered ends with it, or its session would wait for nothing."""
    pending = [
        approval
        for approval in state.pending.values()
        if approval.payload.get("role_call_id") == role_call_id
    ]
    facts = [
        Fact("approval.superseded", _ending(one, "system", "the call that asked is over"), _refs_of(one))
        for one in pending
    ]
    return (*facts, *goes_on(state, pending, "system")) if pending else ()


def _role_suspended(command: RoleSuspended, state: SessionState, definition: Definition) -> Decision:
    request = state.open_of(command.role_call_id)
    if request is None:
        return _ignored(command.role_call_id, "the role call is no longer open")
    refs = {"stage_visit_id": request.payload["visit_id"], "role_call_id": command.role_call_id}
    payload = {"role_call_id": command.role_call_id, "kind": command.kind, "wait_id": command.wait_id}
    return Decision((*command.closing, Fact("role.suspended", payload, refs)), command.blobs)


def _compiled(command: Compiled, state: SessionState, definition: Definition) -> Decision:
    request = state.open.get(command.effect_id)
    if request is None:
        return _ignored(command.effect_id, "the plan is no longer asked about")
    refs = {"stage_visit_id": request.payload["visit_id"]}
    event_type = "workflow.version_registered" if command.ok else "compile.failed"
    return Decision((Fact(event_type, dict(command.payload), refs),), command.blobs)


def _child_ended(command: ChildEnded, state: SessionState, definition: Definition) -> Decision:
    request = state.children.get(command.effect_id)
    if request is None:
        return _ignored(command.effect_id, "the child session is no longer waited for")
    refs = {"stage_visit_id": request.payload["visit_id"]}
    event_type = "child.completed" if command.ok else "child.failed"
    return Decision((Fact(event_type, dict(command.payload), refs),), command.blobs)


def _child_short(command: ChildShort, state: SessionState, definition: Definition) -> Decision:
    request = state.children.get(command.effect_id)
    if request is None or request.short is not None:
        return NOTHING
    payload = {"effect_id": command.effect_id, "child_id": request.payload["child_id"], **command.exhausted}
    return Decision((Fact("child.exhausted", payload, {"stage_visit_id": request.payload["visit_id"]}),))


def _timers_elapsed(command: TimersElapsed, state: SessionState, definition: Definition) -> Decision:
    """One that has ended by now says nothing, nor does any while the session stops: it is due when that goes on."""
    if state.pausing or state.cancelling or state.status == "paused":
        return NOTHING
    due = [found for one in dict.fromkeys(command.effect_ids) if (found := state.open.get(one)) is not None]
    ends = [(_WAITS_END.get(one.kind), one) for one in due if one.kind != "external" or times_out(state, one)]
    return Decision(
        tuple(
            Fact(end, {"effect_id": one.effect_id}, {"stage_visit_id": one.payload["visit_id"]})
            for end, one in ends
            if end is not None
        )
    )


def _record(command: Record, state: SessionState, definition: Definition) -> Decision:
    if state.open_of(command.role_call_id) is None:
        return _after_its_call(command.role_call_id, state, results=bool(command.results))
    if not command.intent:
        return Decision(command.results, command.blobs)
    refusal = _refuse_intent(state)
    if refusal is not None:
        return Decision(command.results, command.blobs, reply=refusal)
    if command.reserve_tokens is not None:
        return _reserve(command, state, definition)
    return Decision((*command.results, *command.intent), command.blobs)


def _after_its_call(role_call_id: str, state: SessionState, *, results: bool) -> Decision:
    ignored = _ignored(role_call_id, "a call ended after its role call")
    reply = Refusal("cancelled" if state.final else "closed")
    return ignored._replace(facts=ignored.facts if results else (), reply=reply)


def _refuse_intent(state: SessionState) -> Refusal | None:
    if state.cancelling:
        return Refusal("cancelled")
    if state.pausing or state.status == "paused":
        return Refusal("pause")
    return None


def _reserve(command: Record, state: SessionState, definition: Definition) -> Decision:
    tokens = command.reserve_tokens or 0
    spent = exhausted_by(state, definition.limits, wanted_tokens=tokens, elapsed_seconds=command.elapsed_seconds)
    refs = {"role_call_id": command.role_call_id}
    beyond = beyond_plan(state, command.role_call_id, tokens, command.results)
    if beyond is not None:
        return Decision(command.results, command.blobs, reply=Refusal("limit", beyond))
    if spent is not None:
        fact = Fact("budget.exhausted", spent, refs)
        return Decision((*command.results, fact), command.blobs, reply=Refusal("budget", spent["dimension"]))
    call_id = command.intent[-1].payload["callId"]
    reserved = Fact("budget.reserved", {"call_id": call_id, "tokens": tokens}, refs)
    return Decision((*command.results, reserved, *command.intent), command.blobs)


def _ask_approval(command: AskApproval, state: SessionState, definition: Definition) -> Decision:
    asked = dict(command.payload)
    if state.open_of(str(asked.get("role_call_id"))) is None:
        return _after_its_call(str(asked.get("role_call_id")), state, results=bool(command.results))
    call = (asked["role_call_id"], asked["call_id"])
    earlier = state.questions.get(call[0], {}).get(call[1], [])
    known = state.approvals[earlier[-1]] if earlier else None
    if known is not None and known.payload["digest"] == _bound_to(asked, state, len(earlier)):
        return Decision(command.results, command.blobs, reply=known.approval_id)
    refusal = _refuse_intent(state)
    if refusal is not None:
        return Decision(command.results, command.blobs, reply=refusal)
    asked["digest"] = _bound_to(asked, state, len(earlier) + 1)
    approval_id = derive("appr", state.session_id, *call, asked["digest"])
    refs = {"stage_visit_id": asked["visit_id"], "role_call_id": asked.get("role_call_id")}
    facts = list(command.results)
    if known is not None and known.status == "pending":
        facts.append(Fact("approval.superseded", _ending(known, "system", "other arguments"), refs))
        facts += goes_on(state, [known], "system")
    facts.append(Fact("approval.requested", {"approval_id": approval_id, **asked}, refs))
    if command.verdict != "ask":
        ending = {
            "approval_id": approval_id,
            "digest": asked["digest"],
            "by": _decided_by(command, state),
            "kind": command.kind,
        }
        facts.append(Fact(f"approval.{command.verdict}", ending, refs))
    return Decision(tuple(facts), command.blobs, reply=approval_id)


def _bound_to(asked: Mapping[str, Any], state: SessionState, generation: int) -> str:
    place = f"{asked['role_call_id']}/{asked['call_id']}"
    return approval_digest(
        asked["name"], asked["args"], session_id=state.session_id, place=place, generation=generation
    )


def _decided_by(command: AskApproval, state: SessionState) -> str:
    """Who let it happen without being asked: who switched yolo on, who gave the grant, else the rule itself."""
    asked = command.payload
    if command.kind == "yolo":
        return str(state.created.get("by", "operator"))
    grant = find_grant(state.grants, asked["name"], asked["tier"]) if command.kind == "grant" else None
    return str(asked["rule"] if grant is None else grant["by"])


def _ending(approval: Approval, kind: str, reason: str) -> dict[str, Any]:
    return {
        "approval_id": approval.approval_id,
        "digest": approval.payload["digest"],
        "by": kind,
        "kind": kind,
        "reason": reason,
    }


def _unanswered(command: Unanswered, state: SessionState, definition: Definition) -> Decision:
    approval = state.approvals.get(command.approval_id)
    if approval is None or approval.status != "pending" or state.final:
        return NOTHING
    if command.deny:
        reason = "; ".join((f"nobody may be asked in this run ({command.why})", *command.flaws))
        ending = _ending(approval, "on_ask", reason)
        denied = Fact("approval.denied", ending, _refs_of(approval))
        return Decision((denied, *goes_on(state, [approval], "on_ask")))
    told = approval.awaited and not command.flaws
    if told or state.status == "paused" or state.pausing or state.cancelling:
        return NOTHING  # it stays pending, and is asked about again when the session goes on
    said = {"flaws": list(command.flaws)} if command.flaws else {}
    return Decision((Fact("session.awaiting", {"approval_ids": [approval.approval_id], **said}),))


def _refs_of(approval: Approval) -> dict[str, Any]:
    refs = {"stage_visit_id": approval.payload["visit_id"]}
    if approval.payload.get("role_call_id"):
        refs["role_call_id"] = approval.payload["role_call_id"]
    return refs


_RULES: dict[type, Callable[[Any, SessionState, Definition], Decision]] = {
    Start: _start,
    Resume: _resume,
    Migrate: _migrate,
    Received: _received,
    PauseNow: _pause_now,
    CancelNow: _cancel_now,
    PluginsFailed: _plugins_failed,
    ContextReady: _context_ready,
    EffectFailed: _effect_failed,
    Validated: _validated,
    RoleReturned: _role_returned,
    RoleFailed: _role_failed,
    RoleSuspended: _role_suspended,
    Compiled: _compiled,
    ChildEnded: _child_ended,
    ChildShort: _child_short,
    TimersElapsed: _timers_elapsed,
    Record: _record,
    AskApproval: _ask_approval,
    Unanswered: _unanswered,
}
