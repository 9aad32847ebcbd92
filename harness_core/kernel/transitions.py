"""A finished or given-up visit and the rules in, the transition or the session's end out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from harness_hookspecs.errors import RuleError

from .definition import Definition, StagePlan
from .facts import Decision, Fact
from .guard import guarded
from .retry import next_temperature
from .routing import first_open_target
from .state import Visit

__all__ = ["session_failed", "transition", "visit_failed"]


def transition(definition: Definition, stage: StagePlan, visit: Visit) -> Decision:
    values = _values(visit)
    for index, rule in enumerate(stage.transitions):
        holds, error = guarded(definition.rules.condition, rule.program, values, what="the rule engine")
        if error is None and not isinstance(holds, bool):
            error = RuleError(f"{rule.text} is neither true nor false")
        if error is not None:
            return Decision((visit_failed("rule.error", f"{rule.origin}: {error.message}", visit),))
        if holds:
            return _take(definition, stage, visit, (index, _shown(values, rule.program.roots)))
    if visit.failure is not None:
        return Decision((_no_rule_for_failure(visit),))
    message = f"no transition of stage {visit.stage} fits artifact.status = {visit.status!r}, retries = {visit.retries}"
    return Decision((visit_failed("transition.none", message, visit),))


def _values(visit: Visit) -> dict[str, Any]:
    status = "skipped" if visit.skipped else (visit.status or "failure")
    artifact = {"status": status, "type": visit.artifact_type or "", "body": visit.body or {}}
    # The failed attempt that ends the visit counts too: with max_attempts 3 a rule can see retries == 3 (K-23).
    failed = visit.retries + (1 if visit.failure is not None else 0)
    return {"artifact": artifact, "retries": failed, "stage": visit.stage, "visit": {"index": visit.index}}


def _shown(values: dict[str, Any], roots: Collection[str]) -> dict[str, Any]:
    """What a rule read, for the log; the artifact's body stands there already, in its validation."""
    artifact = {name: value for name, value in values["artifact"].items() if name != "body"}
    return {root: values[root] for root in sorted(roots) if root in values} | (
        {"artifact": artifact} if "artifact" in roots else {}
    )


def _take(definition: Definition, stage: StagePlan, visit: Visit, match: tuple[int, dict[str, Any]]) -> Decision:
    index, used = match
    rule = stage.transitions[index]
    target = first_open_target(definition, rule.targets)
    refs = {"stage_visit_id": visit.visit_id}
    taken = Fact(
        "transition.taken",
        {
            "visit_id": visit.visit_id,
            "source": visit.stage,
            "target": target,
            "rule": rule.text,
            "rule_index": index,
            "values": used,
        },
        refs,
    )
    if target == "retry":
        return _retry_by_rule(stage, visit, taken)
    left = {
        "stage": visit.stage,
        "visit_id": visit.visit_id,
        "status": "skipped" if visit.skipped else (visit.status or "failure"),
        "attempts": visit.attempt,
    }
    # A rule that ends the session as failed keeps why the last attempt failed: the exit code follows from it.
    ending = (_no_rule_for_failure(visit),) if target == "failed" and visit.failure is not None else ()
    return Decision((taken, Fact("stage.left", left, refs), *ending))


def _retry_by_rule(stage: StagePlan, visit: Visit, taken: Fact) -> Decision:
    """``goto: retry`` asks for another attempt and still counts against ``max_attempts`` (K-11)."""
    if visit.attempt >= stage.retry.max_attempts:
        return Decision((_no_rule_for_failure(visit),))
    payload: dict[str, Any] = {
        "visit_id": visit.visit_id,
        "attempt": visit.attempt + 1,
        "strategy": stage.retry.strategy,
        "code": visit.failure.code if visit.failure else "transition.retry",
        "reason": visit.failure.message if visit.failure else f"rule: {taken.payload['rule']}",
        "inject": stage.retry.inject_failure_reason,
    }
    temperature = next_temperature(stage.retry, visit, stage.model.params.get("temperature"))
    if temperature is not None:
        payload["temperature"] = temperature
    return Decision((taken, Fact("retry.scheduled", payload, {"stage_visit_id": visit.visit_id})))


def _no_rule_for_failure(visit: Visit) -> Fact:
    failure = visit.failure
    if failure is None:
        return visit_failed("retry.exhausted", f"stage {visit.stage} used its {visit.attempt} attempts", visit)
    code = failure.code
    if code.startswith("validation.") or code in ("role.output_invalid", "validator_error"):
        code = "artifact.invalid_after_retries"
    message = f"stage {visit.stage}, attempt {visit.attempt} of {visit.max_attempts}: {failure.message}"
    return visit_failed(code, message, visit)


def session_failed(visit: Visit | None) -> Fact:
    failure = visit.failure if visit is not None else None
    if failure is None:
        return visit_failed("transition.failed", "a transition rule ended the session as failed", visit)
    code = failure.code
    if code == "validation.routing":
        code = next((str(finding["code"]) for finding in failure.findings if finding["severity"] == "error"), code)
    return visit_failed(code, failure.message, visit)


def visit_failed(code: str, message: str, visit: Visit | None, *, hint: str | None = None) -> Fact:
    payload: dict[str, Any] = {"code": code, "message": message}
    if visit is not None:
        payload["stage"] = visit.stage
        if visit.failure is not None:
            payload["findings"] = visit.failure.findings
            hint = hint or visit.failure.hint
    if hint:
        payload["hint"] = hint
    return Fact("session.failed", payload)
