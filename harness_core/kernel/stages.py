"""State in, the facts that follow from it by the stage machine out; nothing when something outside is awaited."""

from __future__ import annotations

from typing import Any

import attrs

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.executor import Finish
from harness_hookspecs.kit.canonical import canonical, digest

from .approvals import artifact_digest
from .asking import ASKED, ASKED_OF_WORLD, ask, ask_beside, deliver
from .children import begin_children
from .commands import Advance
from .definition import Definition, StagePlan
from .facts import Decision, Fact, derive
from .retry import RetryDecision, retry_decision
from .routing import routing_findings
from .state import Failure, SessionState, Visit
from .transitions import session_failed, transition, visit_failed

__all__ = ["advance", "kernel_findings"]

NOTHING = Decision()


def advance(state: SessionState, definition: Definition, command: Advance, executor_state: Any) -> Decision:
    """What follows now; ``asking.ASKED`` when that is nothing, and only the end of a call can change it. Called after
    each folded batch until it has nothing more to say.

    Args:
        state: Read only.
        definition: The session's stages, rules and plugins.
        command: Which effects are under way, and whether the executor was asked in this state of it.
        executor_state: ``S`` of the open attempt, folded from its events; ``None`` before its context is there.
    """
    if state.final or not state.status:
        return NOTHING
    if state.cancelling or state.pausing:
        return _wind_down(state, command)
    if state.status in ("created", "paused"):
        return NOTHING
    visit = state.visit
    if state.target is not None or visit is None:
        return _go_to(state, definition, state.target or definition.initial)
    return _go_on(state, definition, visit, command, executor_state)


def _go_on(
    state: SessionState, definition: Definition, visit: Visit, command: Advance, executor_state: Any
) -> Decision:
    if visit.stage not in definition.stages:  # the configuration was migrated
        return Decision((visit_failed("routing.unknown_stage", f"there is no stage {visit.stage} any more", visit),))
    if state.children and (begun := begin_children(state, definition.limits)).facts:
        return begun
    waiting = next((one for one in state.open.values() if one.payload.get("visit_id") == visit.visit_id), None)
    if waiting is not None:
        if waiting.kind not in ASKED_OF_WORLD:
            return NOTHING
        found = ask_beside(state, definition, command, executor_state)
        return deliver(state, definition, visit, executor_state) if found is ASKED and state.kept else found
    if visit.failure is not None:
        return _after_failure(state, definition, visit)
    return _next_step(state, definition, visit, executor_state)


def _wind_down(state: SessionState, command: Advance) -> Decision:
    if command.running:
        return NOTHING
    if state.cancelling:
        return Decision((Fact("session.cancelled", {"reason": state.cancelling}),))
    return Decision((Fact("session.paused", {"reason": state.pausing}),))


def _go_to(state: SessionState, definition: Definition, target: str) -> Decision:
    if target in ("completed", "end"):
        refs = [artifact["ref"] for artifact in state.artifacts]
        return Decision((Fact("session.completed", {"artifact_refs": refs}),))
    if target == "cancelled":
        return Decision((Fact("session.cancelled", {"reason": "transition"}),))
    if target == "failed":
        return Decision((session_failed(state.visit),))
    stage = definition.stages.get(target)
    if stage is None:
        return Decision((visit_failed("routing.unknown_stage", f"there is no stage {target}", state.visit),))
    if state.visits >= definition.limits.max_visits:
        message = f"the session entered {state.visits} stages, the limit is {definition.limits.max_visits}"
        hint = "raise run.max_visits, or see why its rules lead in a circle"
        return Decision((visit_failed("limits.max_visits", message, state.visit, hint=hint),))
    return Decision((_enter(state, stage),))


def _enter(state: SessionState, stage: StagePlan) -> Fact:
    visit_id = derive("stg", state.session_id, state.visits)
    payload = {
        "stage": stage.name,
        "visit_id": visit_id,
        "visit_index": state.visits_of.get(stage.name, 0),
        "persona": stage.persona,
        "executor": stage.executor,
        "model": stage.model.name,
        "max_attempts": stage.retry.max_attempts,
    }
    return Fact("stage.entered", payload, {"stage_visit_id": visit_id})


def _next_step(state: SessionState, definition: Definition, visit: Visit, executor_state: Any) -> Decision:
    stage = definition.stages[visit.stage]
    if "routing" not in visit.passed:
        return _validation(state, definition, "routing", routing_findings(stage))
    if visit.pack_ref is None:
        return _request(state, "context.requested", "context", {})
    if visit.artifact_id is None:
        return _execute(state, definition, visit, executor_state)
    for level in ("payload", "semantic"):
        if level not in visit.passed:
            return _validation(state, definition, level, [])
    if "approval" not in visit.passed:
        return _gate(state, definition, stage, visit)
    if not visit.accepted:
        return _accept(visit)
    return transition(definition, stage, visit)


def _request(state: SessionState, event_type: str, kind: str, extra: dict[str, Any]) -> Decision:
    visit = state.visit
    assert visit is not None
    effect_id = derive("eff", state.session_id, visit.visit_id, visit.attempt, kind)
    payload = {
        "effect_id": effect_id,
        "effect_class": "keyed",
        "visit_id": visit.visit_id,
        "attempt": visit.attempt,
        **extra,
    }
    return Decision((Fact(event_type, payload, {"stage_visit_id": visit.visit_id}),))


def _validation(state: SessionState, definition: Definition, level: str, findings: list[dict[str, Any]]) -> Decision:
    judges = definition.validators.get(level, ())
    requested = _request(
        state,
        "validation.requested",
        f"validation:{level}",
        {"level": level, "validators": ["kernel", *judges] if level in ("routing", "approval") else list(judges)},
    )
    if findings:
        return _ended(requested, "validation.failed", findings)
    # All but one of the checks may have nobody to ask; a payload without a judge is asked for and errs (I-24).
    if not judges and level != "payload":
        return _ended(requested, "validation.passed", [])
    return requested


def _ended(requested: Decision, event_type: str, findings: list[dict[str, Any]]) -> Decision:
    request = requested.facts[0]
    payload = {"effect_id": request.payload["effect_id"], "level": request.payload["level"], "findings": findings}
    return Decision((request, Fact(event_type, payload, request.refs)))


def _execute(state: SessionState, definition: Definition, visit: Visit, executor_state: Any) -> Decision:
    found = ask(state, definition, visit, executor_state)
    if isinstance(found, Finish):
        return _finish(state, definition.stages[visit.stage], found)
    return _attempt_over(state, definition, found) if isinstance(found, HarnessError) else found


def _finish(state: SessionState, stage: StagePlan, request: Finish) -> Decision:
    visit = state.visit
    assert visit is not None
    output_ref = digest(request.output)
    payload = {
        "artifact_id": derive("art", state.session_id, visit.visit_id, visit.attempt),
        "type": stage.artifact,
        "visit_id": visit.visit_id,
        "attempt": visit.attempt,
        "output_ref": output_ref,
    }
    fact = Fact("artifact.proposed", payload, {"stage_visit_id": visit.visit_id})
    return Decision((fact,), {output_ref: canonical(request.output)})


def _attempt_over(state: SessionState, definition: Definition, error: HarnessError) -> Decision:
    """Meet a failed attempt; the outcome it came from is in the log already, so no event says it again."""
    visit = state.visit
    assert visit is not None
    failed = (one["error"] for one in reversed(visit.outcomes) if not one["ok"])
    # Of many calls some fail and are got over: only the error that is passed on says more of this end.
    last: dict[str, Any] = next((one for one in failed if one.get("code") in (None, error.code)), {})
    failure = Failure.told(error.code, error.message, last, error.hint)
    return _after_failure(state, definition, attrs.evolve(visit, failure=failure))


def kernel_findings(level: str, state: SessionState, definition: Definition) -> list[dict[str, Any]]:
    """What the kernel itself has against a level that every validator lets pass.

    It looks before they are asked; while they judge, the configuration may become another one.
    """
    visit = state.visit
    stage = definition.stages.get(visit.stage) if visit is not None else None
    if visit is None or stage is None:
        return []
    if level == "routing":
        return routing_findings(stage)
    if level == "approval" and stage.gate and _gate_status(state, visit) not in ("granted", "bypassed"):
        message = f"stage {stage.name} asks for an approval now, and nobody was asked"
        return [{"code": "approval.not_asked", "severity": "error", "path": "", "message": message}]
    return []


def _gate_id(state: SessionState, visit: Visit) -> str:
    return derive("appr", state.session_id, visit.artifact_id)


def _gate_status(state: SessionState, visit: Visit) -> str | None:
    approval = state.approvals.get(_gate_id(state, visit))
    return None if approval is None else approval.status


def _gate(state: SessionState, definition: Definition, stage: StagePlan, visit: Visit) -> Decision:
    """The fourth level: a person's or a policy's approval where the stage asks for one, then what validators add."""
    if not stage.gate:
        return _validation(state, definition, "approval", [])
    approval_id = _gate_id(state, visit)
    approval = state.approvals.get(approval_id)
    if approval is None:
        return Decision((_gate_question(state, stage, visit, approval_id),))
    if approval.status == "pending":
        return NOTHING
    if approval.status in ("granted", "bypassed"):
        return _validation(state, definition, "approval", [])
    ended = approval.ended or {}
    reason = ended.get("say") or ended.get("reason") or "the artifact was not approved"
    code = "approval.denied_unattended" if ended.get("kind") == "on_ask" else "approval.denied"
    finding = {"code": code, "severity": "error", "path": "", "message": reason}
    return _validation(state, definition, "approval", [finding])


def _gate_question(state: SessionState, stage: StagePlan, visit: Visit, approval_id: str) -> Fact:
    payload = {
        "approval_id": approval_id,
        "subject": "artifact",
        "name": stage.artifact,
        "tier": "T0",
        "args": {"body_ref": visit.body_ref},
        "digest": artifact_digest(
            stage.artifact,
            visit.body_ref,
            session_id=state.session_id,
            visit_id=visit.visit_id,
            attempt=visit.attempt,
        ),
        "rule": f"stages.{stage.name}.approvals.artifact",
        "visit_id": visit.visit_id,
        "persona": visit.persona,
        "preview_ref": visit.body_ref,
    }
    return Fact("approval.requested", payload, {"stage_visit_id": visit.visit_id})


def _accept(visit: Visit) -> Decision:
    payload = {
        "artifact_id": visit.artifact_id,
        "type": visit.artifact_type,
        "status": visit.status or "success",
        "body_ref": visit.body_ref or visit.output_ref,
        "warnings": [finding for finding in visit.warnings if finding.get("severity") == "warning"],
    }
    return Decision((Fact("artifact.accepted", payload, {"stage_visit_id": visit.visit_id}),))


def _after_failure(state: SessionState, definition: Definition, visit: Visit) -> Decision:
    stage = definition.stages[visit.stage]
    failure = visit.failure
    assert failure is not None
    if visit.artifact_id is not None and visit.status != "rejected":
        payload = {
            "artifact_id": visit.artifact_id,
            "level": _level_of(visit),
            "findings": failure.findings,
        }
        return Decision((Fact("artifact.rejected", payload, {"stage_visit_id": visit.visit_id}),))
    if failure.code in ("validation.routing", "approval.denied_unattended"):
        return Decision((session_failed(visit),))
    decision = retry_decision(stage.retry, visit, stage.model.params.get("temperature"))
    if decision.kind == "retry":
        return Decision((_retry(stage, visit, decision),))
    if decision.kind == "terminate":
        return Decision((session_failed(visit),))
    if decision.kind == "skip" and not visit.skipped:
        payload = {"stage": visit.stage, "visit_id": visit.visit_id, "reason": failure.message}
        return Decision((Fact("stage.skipped", payload, {"stage_visit_id": visit.visit_id}),))
    return transition(definition, stage, visit)


def _level_of(visit: Visit) -> str:
    """The level at which the artifact was refused."""
    return next(level for level in ("payload", "semantic", "approval") if level not in visit.passed)


def _retry(stage: StagePlan, visit: Visit, decision: RetryDecision) -> Fact:
    assert visit.failure is not None
    payload: dict[str, Any] = {
        "visit_id": visit.visit_id,
        "attempt": decision.attempt,
        "strategy": stage.retry.strategy,
        "code": visit.failure.code,
        "reason": visit.failure.message,
        "inject": decision.inject,
    }
    if decision.temperature is not None:
        payload["temperature"] = decision.temperature
    return Fact("retry.scheduled", payload, {"stage_visit_id": visit.visit_id})
