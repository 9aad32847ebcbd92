"""The frozen description a session runs under: stages, rules, limits; made by the shell from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:  # the models of every task and message come with an executor's protocol
    from harness_hookspecs.executor import Executor
    from harness_hookspecs.rules import Program, Rules

__all__ = ["RESERVED_TARGETS", "Definition", "Limits", "ModelPlan", "RetryPolicy", "RulePlan", "StagePlan"]

RESERVED_TARGETS = ("retry", "failed", "completed", "cancelled", "end")
"""Targets that are not stages (B-50); ``end`` is ``completed``."""

Strategy = Literal["retry", "fail_safe", "fail_fast", "corrective"]


@attrs.frozen
class RulePlan:
    """One transition: the condition, where to, and the place it was written."""

    text: str
    program: Program
    targets: tuple[str, ...]
    origin: str


@attrs.frozen
class RetryPolicy:
    """How a failed attempt is met. ``temperature_backoff`` lowers the temperature by half at each retry."""

    strategy: Strategy
    max_attempts: int
    inject_failure_reason: bool
    temperature_backoff: bool


@attrs.frozen
class ModelPlan:
    """A model entry as far as the kernel judges it."""

    name: str
    provider: str
    capabilities: frozenset[str]
    context_tokens: int
    params: Mapping[str, Any]
    denied_by: str | None = None  # the policy line that forbids its provider here


@attrs.frozen
class StagePlan:
    """A stage as configured, with everything inherited filled in."""

    name: str
    persona: str
    executor: str
    model: ModelPlan
    requirements: frozenset[str]
    artifact: str
    allowed_tools: tuple[str, ...]
    gate: bool  # whether the accepted artifact needs an approval
    retry: RetryPolicy
    transitions: tuple[RulePlan, ...]
    system: str | None
    prompt: str
    max_turns: int
    context_tokens: int
    timeout_seconds: float | None = None  # of one attempt's role call
    max_artifact_bytes: int = 1_048_576
    plan: Any = None  # for an executor that runs plans
    definition: Any = None  # of the workflow that its plans are for, in wire form
    goal: Literal["run", "plan"] = "run"  # plan: the plan is registered, and not run
    plan_form: Literal["plan", "sketch"] = "plan"  # what its planner writes
    slots: Mapping[str, str] = {}  # model that the definition's plans may name -> who answers
    workflows: tuple[Any, ...] = ()  # the definitions that an orchestration may use, in wire form


@attrs.frozen
class Limits:
    """Bounds that always exist (B-05)."""

    max_visits: int
    budget_tokens: int
    budget_calls: int
    budget_seconds: float
    requests_per_attempt: int = 100_000  # what an executor may ask for before its attempt fails
    max_children: int = 10  # child sessions of a session that may be active at once
    max_depth: int = 3  # how deep child sessions may nest


@attrs.frozen
class Definition:
    """Everything ``decide`` and ``react`` may look at beside the state."""

    initial: str
    stages: Mapping[str, StagePlan]
    limits: Limits
    executors: Mapping[str, Executor]
    rules: Rules
    validators: Mapping[str, tuple[str, ...]]  # level -> names of the validators that will judge
