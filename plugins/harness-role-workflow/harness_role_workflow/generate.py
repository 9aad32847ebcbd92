"""An ``ai.generate`` step and the context go in, its validated output comes out."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.kit.step_output import schema_of
from harness_hookspecs.messages import Message
from harness_hookspecs.role import ExecuteStepTask, RoleContext
from harness_hookspecs.workflow import AiGenerateStep

from .answer import asked_for
from .conversation import opening
from .prompt import prompt_parts, prompt_text, system_texts
from .settings import WorkflowRoleSettings
from .turns import Bounds, answered

__all__ = ["generate"]

_OF_STAGE = "max_turns of the stage where it sets one, else run.max_turns"
"""A stage's own number is never above ``run.max_turns``."""


def generate(task: ExecuteStepTask, step: AiGenerateStep, ctx: RoleContext, settings: WorkflowRoleSettings) -> Any:
    """Have the model work until its answer meets the step's output contract.

    Returns:
        The output.

    Raises:
        RoleError: As :func:`.turns.answered` says.
        Suspend: As a call of the context raised it.
    """
    schema = schema_of(step.output, ctx.response_schema)
    given = step.with_.max_turns
    limit = "plugins.settings.workflow.max_turns" if given is None else _OF_STAGE
    bounds = Bounds(given or settings.max_turns, settings.equal_failures, limit)
    return answered(_opening(task, step, ctx, schema), step.output, schema, ctx, bounds)


def _opening(task: ExecuteStepTask, step: AiGenerateStep, ctx: RoleContext, schema: Any) -> tuple[Message, Message]:
    parts = prompt_parts(
        "worker.ai-generate",
        system=system_texts(ctx, step.with_.system),
        skills=ctx.skills,
        memory=ctx.memory_mounts,
        scratch=ctx.scratch_mounts,
        tools=ctx.tools,
    )
    return opening(prompt_text(parts), step.with_.prompt, task.step_input, asked_for(step.output, schema))
