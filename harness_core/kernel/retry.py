"""A failed attempt in, a value that says what happens next out."""

from __future__ import annotations

from typing import Literal

import attrs

from .definition import RetryPolicy
from .state import MIGRATED, Visit

__all__ = ["DETERMINISTIC_CODES", "RetryDecision", "next_temperature", "retry_decision"]

DETERMINISTIC_CODES = frozenset(
    {
        "approval.denied_unattended",
        "context.source_missing",
        "engine.not_available",
        "executor.not_available",
        "executor.no_workflows",
        "executor.stalled",
        "executor.too_many_calls",
        "plugin.bound_broken",
        "plugin.raised",
        "plugin.schema_invalid",
        "plugin.schema_too_complex",
        "plugin.schema_unresolvable",
        "provider.model_file",
        "role.delegation_loop",
        "role.not_available",
        "role.result_kind_mismatch",
        "script.exhausted",
        "script.invalid",
        "workflow.invalid_plan",
        "workflow.no_plan",
        "workflow.not_available",
    }
)
"""Failures that another attempt would only repeat."""

DEFAULT_TEMPERATURE = 0.8
"""llama.cpp's default, taken as the start of a backoff where a model sets none."""


@attrs.frozen
class RetryDecision:
    """What the policy says."""

    kind: Literal["retry", "give_up", "skip", "terminate"]
    attempt: int = 0
    inject: bool = False
    temperature: float | None = None


def retry_decision(policy: RetryPolicy, visit: Visit, base_temperature: float | None) -> RetryDecision:
    """Decide; ``corrective`` is retry with the reason in the next context (B-130).

    The temperature is halved at each retry when the policy backs off: 0.8, 0.4, 0.2.
    """
    assert visit.failure is not None
    if visit.failure.code == MIGRATED:  # whatever the policy is: the person wants it to go on
        return RetryDecision("retry", attempt=visit.attempt + 1)
    if policy.strategy == "fail_fast":
        return RetryDecision("terminate")
    if policy.strategy == "fail_safe":
        return RetryDecision("skip")
    if visit.attempt >= policy.max_attempts or visit.failure.code in DETERMINISTIC_CODES:
        return RetryDecision("give_up")
    return RetryDecision(
        "retry",
        attempt=visit.attempt + 1,
        inject=policy.inject_failure_reason or policy.strategy == "corrective",
        temperature=next_temperature(policy, visit, base_temperature),
    )


def next_temperature(policy: RetryPolicy, visit: Visit, base_temperature: float | None) -> float | None:
    """That of the attempt after this one; ``None`` without backoff: it stays as it is."""
    if not policy.temperature_backoff:
        return None
    current = visit.temperature if visit.temperature is not None else base_temperature
    return round((DEFAULT_TEMPERATURE if current is None else current) / 2, 4)
