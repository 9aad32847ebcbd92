"""A ``code.run`` step: its input goes in, what its source returns comes out, run by an engine and without a model."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.engine import Engine
from harness_hookspecs.kit.code_step import CodePlace, run_code
from harness_hookspecs.role import ExecuteStepTask, RoleContext
from harness_hookspecs.workflow import CodeRunStep

__all__ = ["run_step"]


def run_step(task: ExecuteStepTask, step: CodeRunStep, ctx: RoleContext, engine: Engine) -> Any:
    """Run the step's source once; see :func:`harness_hookspecs.kit.code_step.run_code` for what it may raise."""
    ctx.abort_signal.raise_if_cancelled()
    where = task.step_context
    place = CodePlace(ctx.scope.run_id, where.step_path, where.visit_index)
    return run_code(engine, step, task.step_input, tools=ctx.tools, place=place, cancel=ctx.abort_signal)
