"""The workflows of an orchestrate task in, the tools that the host gives its role for them out (A-23).

No plugin has them: each call of one begins a child session, and its result is what that came to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import RoleError, ToolError, ValidationFailed
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.role import OrchestrateTask, RoleTask
from harness_hookspecs.tool import ToolContext, ToolResult, ToolSpec
from harness_hookspecs.workflow import WorkflowDefinitionSnapshot

from .schemas import data_findings
from .toolbox import OF_HOST, Tool, tool_of_host

__all__ = ["ChildCall", "ChildTools", "child_tools", "provided_tools"]

Goal = Literal["plan", "run", "start"]

_SET: Final = "workflows"
_OWN: Final = "workflow_"
"""What the name of a workflow's own tool begins with."""

_MAX_NAME_CHARACTERS: Final = 64
_GOALS: Final[Mapping[str, Goal]] = {"plan_workflow": "plan", "run_workflow": "run", "start_workflow": "start"}
_TEXTS: Final[Mapping[str, str]] = {
    "plan_workflow": "Plans a workflow for an input of the kind it is meant for; gives {workflowVersionId}, which "
    "run_workflow takes as often as you like.",
    "run_workflow": "Runs a planned version of a workflow on an input; gives its output.",
    "start_workflow": "Plans a workflow for an input and runs it on that; gives {workflowVersionId, runId, output}.",
}


@attrs.frozen
class ChildCall:
    """What a call asks of a child session."""

    goal: Goal
    workflow: WorkflowDefinitionSnapshot
    input: Any
    version: Mapping[str, Any] | None = None  # to run: its id, its plan and the definition it was planned for

    def spec(self, stage: str, read_blob: Callable[[str], bytes]) -> dict[str, Any]:
        """What the child is begun with by a call in that stage, as it is recorded."""
        found = {"goal": self.goal, "workflow": self.workflow.to_wire(), "input": self.input, "stage": stage}
        if self.version is None:
            return found
        return {**found, "plan": read_canonical(read_blob(self.version["plan_ref"]))}


@attrs.frozen
class ChildTools:
    """The tools of one orchestration."""

    tools: Mapping[str, Tool]
    workflows: Mapping[str, WorkflowDefinitionSnapshot]
    of_tool: Mapping[str, str]  # a workflow's own tool -> the workflow

    def call(self, name: str, args: Mapping[str, Any], state: SessionState) -> ChildCall:
        """Read the arguments of a call, which satisfy the schema of its tool.

        Raises:
            ToolError: ``workflow.unknown_version``: no child of this session has registered it.
            ValidationFailed: ``tool.invalid_args``: the input does not fit the workflow's input schema.
        """
        if name in self.of_tool:
            workflow = self.workflows[self.of_tool[name]]
            given, at = (args, "") if _is_object(workflow) else (args["input"], "/input")
            return _checked(ChildCall("start", workflow, given), at)
        if name == "run_workflow":
            return _checked(self._version(str(args["workflowVersionId"]), args["input"], state), "/input")
        return _checked(ChildCall(_GOALS[name], self.workflows[args["workflowId"]], args["input"]), "/input")

    def _version(self, version_id: str, given: Any, state: SessionState) -> ChildCall:
        version = state.versions.get(version_id)
        workflow = None if version is None else self.workflows.get(version["workflow_id"])
        if version is None or workflow is None:
            known = ", ".join(state.versions) or "none yet"
            message = f"there is no planned version {version_id!r}; versions of this session: {known}"
            raise ToolError(message, code="workflow.unknown_version", hint="plan_workflow gives one")
        return ChildCall("run", workflow, given, {"id": version_id, **version})


def _checked(call: ChildCall, at: str) -> ChildCall:
    """A call whose input fits; else each fault with the pointer to where it stands in the arguments."""
    found = data_findings(call.workflow.input_schema, call.input)
    findings = [{**one, "path": f"{at}{one['path']}"} for one in found]
    if findings:
        message = "; ".join(f"{one['path'] or '/'}: {one['message']}" for one in findings)
        raise ValidationFailed(message, code="tool.invalid_args", findings=findings)
    return call


def provided_tools(task: RoleTask) -> list[str]:
    """Their names, as the manifest has them."""
    return [*OF_HOST, *_own_names(task.available)] if isinstance(task, OrchestrateTask) else []


def child_tools(task: RoleTask, beside: Mapping[str, Tool]) -> ChildTools | None:
    """The tools of an orchestration; ``None`` for any other task.

    Args:
        task: What the role is to do.
        beside: The tools that its stage has; none of them may have one of the names.

    Raises:
        RoleError: ``workflow.tool_name``: tools of the stage, or of other workflows, are called the same; all are
            named.
    """
    if not isinstance(task, OrchestrateTask):
        return None
    workflows = {one.workflow_id: one for one in task.available}
    names = _own_names(task.available)
    specs = [*_common(sorted(workflows)), *(_own(name, workflows[of]) for name, of in names.items())]
    clashes = [*_clashes(sorted(workflows), names), *_taken(specs, beside)]
    if clashes:
        hint = "take the tool out of allowed_tools, or give the workflow another name"
        said = f"the workflows cannot be called here: {'; '.join(clashes)}"
        raise RoleError(said, code="workflow.tool_name", hint=hint)
    return ChildTools({spec.name: tool_of_host(spec, _ByChildren(), _SET) for spec in specs}, workflows, names)


def _clashes(workflow_ids: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Which workflows would have one tool; their names may differ in what a tool's may not have, or far behind."""
    for name in names:
        same = [one for one in workflow_ids if _own_name(one) == name]
        if len(same) > 1:
            yield f"{' and '.join(same)} would have one tool, {name}"


def _taken(specs: Sequence[ToolSpec], beside: Mapping[str, Tool]) -> Iterator[str]:
    return (f"the stage has a tool {spec.name} already" for spec in specs if spec.name in beside)


def _own_names(available: Sequence[WorkflowDefinitionSnapshot]) -> dict[str, str]:
    return {_own_name(one.workflow_id): one.workflow_id for one in available}


def _own_name(workflow_id: str) -> str:
    return (_OWN + re.sub(r"[^a-z0-9]+", "_", workflow_id.lower()).strip("_"))[:_MAX_NAME_CHARACTERS]


def _common(workflow_ids: Sequence[str]) -> Iterator[ToolSpec]:
    which = {"workflowId": {"enum": list(workflow_ids)}}
    version = {"workflowVersionId": {"type": "string"}}
    for name, first in (("plan_workflow", which), ("run_workflow", version), ("start_workflow", which)):
        yield _spec(name, _TEXTS[name], {**first, "input": {}})


def _own(name: str, workflow: WorkflowDefinitionSnapshot) -> ToolSpec:
    """A tool whose arguments are the workflow's input; where that is no object, its one argument is."""
    said = f"{workflow.description.rstrip('.')}. " if workflow.description else ""
    text = f"{said}Plans and runs {workflow.workflow_id}; gives {{workflowVersionId, runId, output}}."
    schema = workflow.input_schema
    if isinstance(schema, Mapping) and _is_object(workflow):
        return ToolSpec(name=name, description=text, input_schema=schema, tier="T0", effect="keyed")
    return _spec(name, text, {"input": schema if isinstance(schema, Mapping) else {}})


def _is_object(workflow: WorkflowDefinitionSnapshot) -> bool:
    schema = workflow.input_schema
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def _spec(name: str, text: str, properties: Mapping[str, Any]) -> ToolSpec:
    """A tool that begins a child is inference and no more: what its child does meets policy there."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description=text, input_schema=schema, tier="T0", effect="keyed")


class _ByChildren:
    """Stands where a tool set would: what these tools do, child sessions do."""

    def specs(self) -> Sequence[ToolSpec]:
        return ()

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        raise ToolError(f"{name} is done by a child session", code="tool.no_result")
