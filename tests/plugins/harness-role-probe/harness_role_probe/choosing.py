"""Two roles as a team writes them: each takes the tasks that it is there for and leaves the rest to the default."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import DelegateToDefault, ExecuteStepResult, PlanResult, PlanTask, RoleContext
from harness_hookspecs.role import RoleTask
from harness_hookspecs.workflow import CodeRunStep

__all__ = ["OwnPlans", "OwnWords"]


class OwnPlans:
    """Plans by itself; every other kind of task is the default's (A-15)."""

    def run(self, task: RoleTask, ctx: RoleContext) -> Any:
        """Give the one plan it knows, or delegate."""
        if isinstance(task, PlanTask):
            return PlanResult(lwir={"plannedFor": task.workflow_snapshot.name})
        return DelegateToDefault()


class OwnWords:
    """Answers steps by itself; code steps are the default's (A-16)."""

    def run(self, task: RoleTask, ctx: RoleContext) -> Any:
        """Say which step it is, or delegate."""
        step = getattr(task, "step", None)
        if step is None or isinstance(step, CodeRunStep):
            return DelegateToDefault()
        return ExecuteStepResult(output=f"my own words for {step.id}", artifact_refs=())
