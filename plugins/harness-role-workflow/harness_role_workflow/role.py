"""The role harness ``workflow``: a task and a context go in, the task's result comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.host import RoleHost
from harness_hookspecs.role import (
    BoundTool,
    ExecuteStepResult,
    ExecuteStepTask,
    ExecutorRole,
    FixStepTask,
    OrchestrateResult,
    OrchestrateTask,
    PlanResult,
    PlanTask,
    PromptPart,
    RoleContext,
    RoleResult,
    RoleTask,
)
from harness_hookspecs.workflow import AiGenerateStep, CodeRunStep, DecisionStep, ToolCallStep

from .addenda import ADDENDA
from .code_run import run_step
from .decision import decide
from .fix import fix
from .generate import generate
from .orchestrate import orchestrate
from .plan import plan
from .prompt import PROMPT_TEMPLATE_VERSION, label_text, prompt_parts
from .settings import WorkflowRoleSettings
from .tool_call import call_tool

__all__ = ["WorkflowRole"]


class WorkflowRole:
    """The default role harness; it never delegates.

    Args:
        settings: Its bounds.
        host: Hands over what runs steps without a model: the rules engine, and engines of code.
    """

    def __init__(self, settings: WorkflowRoleSettings | None = None, host: RoleHost | None = None) -> None:
        self._settings, self._host = settings or WorkflowRoleSettings(), host

    def run(self, task: RoleTask, ctx: RoleContext) -> RoleResult:
        """Run one task; see :class:`harness_hookspecs.role.RoleHarness`.

        Raises:
            RoleError: ``role.parallel`` or ``role.wait`` for a step of the runtime's own, ``role.not_available`` for
                what this version does not do, or as the module of the task's kind or of the step's type says.
            PluginError: ``engine.not_available``: nothing that is installed runs the code of a step.
        """
        if isinstance(task, OrchestrateTask):
            return OrchestrateResult(output=orchestrate(task, ctx, self._settings))
        if isinstance(task, PlanTask):
            return PlanResult(lwir=plan(task, ctx, self._settings))
        if isinstance(task, FixStepTask):
            return fix(task, ctx, self._settings)
        return ExecuteStepResult(output=self._output(task, ctx), artifact_refs=())

    def _output(self, task: ExecuteStepTask, ctx: RoleContext) -> Any:
        step = task.step
        if isinstance(step, AiGenerateStep):
            return generate(task, step, ctx, self._settings)
        if isinstance(step, ToolCallStep):
            return call_tool(task, step, ctx)
        if isinstance(step, DecisionStep):
            return decide(task, step, self._given("decision").rules())
        if isinstance(step, CodeRunStep):
            return run_step(task, step, ctx, self._given("code.run").engine(step.with_.engine))
        message = f"A {step.uses} step is no task of a role: fan-out and waiting belong to the runtime."
        raise RoleError(message, code=f"role.{step.uses}", step=step.id)

    def _given(self, what: str) -> RoleHost:
        if self._host is None:
            raise _not_available(what, "it was built without a host")
        return self._host

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


def _not_available(what: str, why: str) -> RoleError:
    message = f"This version of harness-role-workflow does not do {what}: {why}."
    return RoleError(message, code="role.not_available", hint="bind another role harness to it in harness.yaml")
