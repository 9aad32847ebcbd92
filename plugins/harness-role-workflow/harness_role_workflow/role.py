"""The role harness ``workflow``: a task and a context go in, the task's result comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness_hookspecs.errors import RoleError
from harness_hookspecs.role import (
    BoundTool,
    ExecuteStepResult,
    ExecuteStepTask,
    ExecutorRole,
    PromptPart,
    RoleContext,
    RoleResult,
    RoleTask,
)
from harness_hookspecs.workflow import AiGenerateStep, ParallelStep

from .addenda import ADDENDA
from .generate import generate
from .prompt import PROMPT_TEMPLATE_VERSION, label_text, prompt_parts
from .settings import WorkflowRoleSettings

__all__ = ["WorkflowRole"]

_COMING: Final[Mapping[str, str]] = {
    "plan": "plans come with harness-executor-workflow",
    "orchestrate": "orchestration comes with harness-executor-orchestrate",
    "fix_step": "the fixer comes with an engine, harness-engine-monty",
    "code.run": "code steps come with an engine, harness-engine-monty",
    "tool.call": "tool steps come with harness-executor-workflow",
    "decision": "decisions come with harness-executor-workflow",
}


class WorkflowRole:
    """The default role harness; it never delegates. Of the steps, ``ai.generate`` is carried out in this version."""

    def __init__(self, settings: WorkflowRoleSettings | None = None) -> None:
        self._settings = settings or WorkflowRoleSettings()

    def run(self, task: RoleTask, ctx: RoleContext) -> RoleResult:
        """Run one task; see :class:`harness_hookspecs.role.RoleHarness`.

        Raises:
            RoleError: ``role.parallel`` for a parallel step, ``role.not_available`` for what this version does not do,
                or as :func:`~harness_role_workflow.generate.generate` says.
        """
        if not isinstance(task, ExecuteStepTask):
            raise _not_available(task.kind)
        step = task.step
        if isinstance(step, ParallelStep):
            message = "A parallel step is no task of a role: fan-out belongs to the runtime."
            raise RoleError(message, code="role.parallel", step=step.id)
        if not isinstance(step, AiGenerateStep):
            raise _not_available(step.uses)
        return ExecuteStepResult(output=generate(task, step, ctx, self._settings), artifact_refs=())

    def prompt_facts(self, role: ExecutorRole) -> Mapping[str, str]:
        """What stands of the prompt in the manifest; see :class:`harness_hookspecs.role.DescribesPrompt`."""
        return {"prompt_template_version": PROMPT_TEMPLATE_VERSION, "addendum_hash": ADDENDA[role].digest}

    def show_prompt(
        self, role: ExecutorRole, system: Sequence[str], tools: Mapping[str, BoundTool]
    ) -> Sequence[PromptPart]:
        """The five parts; see :class:`harness_hookspecs.role.ShowsPrompt`."""
        return prompt_parts(role, system=system, tools=tools)

    def label_prompt(self, role: ExecutorRole, text: str) -> Sequence[PromptPart] | None:
        """Take a system message apart; see :class:`harness_hookspecs.role.ShowsPrompt`."""
        return label_text(role, text)


def _not_available(what: str) -> RoleError:
    message = f"This version of harness-role-workflow does not do {what}: {_COMING[what]}."
    return RoleError(message, code="role.not_available", hint="bind another role harness to it in harness.yaml")
