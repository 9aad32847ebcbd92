"""Phase 11: a plan and its limits go in; what it can run at most comes out, and where that is more than is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from harness_hookspecs.compiler import Surroundings
from harness_hookspecs.workflow import Limits, PlanFinding

from .findings import Place, finding
from .plans import Plan

__all__ = ["MOST_EXECUTIONS", "check_bounds", "most_executions"]

MOST_EXECUTIONS = 1_000_000
"""What a plan that says nothing may run; the largest that it could say."""


def most_executions(plan: Plan) -> int:
    """The static upper bound: each step as often as it may be visited, times the branches it lies in.

    Each visit of a parallel step has all its branches again. Attempts are no executions of their own.
    """
    total = 0
    of_body: dict[str | None, int] = {None: 1}
    for one in plan.all:  # a body stands behind its parallel step
        visits = of_body[one.parent] * one.max_visits
        total += visits
        if one.uses == "parallel":
            of_body[one.id] = visits * int(one.settings["maxBranches"])
    return total


def check_bounds(plan: Plan, surroundings: Surroundings) -> Iterator[PlanFinding]:
    """Hold the bound to every limit, and the plan's limits to those of who lets it run."""
    most, mine = most_executions(plan), plan.workflow.limits
    ceilings = [one for one in (surroundings.limits, _of_definition(surroundings)) if one is not None]
    allowed = [one.max_step_executions for one in (mine, *ceilings) if one is not None and one.max_step_executions]
    limit = min(allowed, default=MOST_EXECUTIONS)
    if most > limit:
        message = f"The plan could run {most} steps; the limit is {limit}."
        hint = "lower maxVisits or maxBranches" + (", or raise limits.maxStepExecutions" if mine is not None else "")
        yield finding("limits.too_many_executions", Place(("limits",) if mine else ()), None, message, hint)
    for ceiling in ceilings if mine is not None else ():
        yield from _above(mine, ceiling)
    yield from _turns(plan, surroundings.max_turns)


def _turns(plan: Plan, allowed: int | None) -> Iterator[PlanFinding]:
    for one in plan.all if allowed is not None else ():
        wanted = one.settings.get("maxTurns") if one.uses == "ai.generate" else None
        if wanted is not None and wanted > allowed:
            message = f"maxTurns {wanted} of {one.id} is above {allowed}, which is allowed at most."
            yield finding("limits.exceeded", one.place / "with" / "maxTurns", one.id, message, f"set it to {allowed}")


def _of_definition(surroundings: Surroundings) -> Limits | None:
    return None if surroundings.definition is None else surroundings.definition.limits


def _above(mine: Limits | None, ceiling: Limits) -> Iterator[PlanFinding]:
    names = {"max_step_executions": "maxStepExecutions", "max_tokens": "maxTokens", "timeout_ms": "timeoutMs"}
    for name, on_wire in names.items():
        wanted, allowed = getattr(mine, name), getattr(ceiling, name)
        if wanted is not None and allowed is not None and wanted > allowed:
            message = f"{on_wire} {wanted} is above {allowed}, which is allowed at most."
            yield finding("limits.exceeded", Place(("limits", on_wire)), None, message, f"set it to {allowed}")
