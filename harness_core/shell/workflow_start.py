"""A workflow by name, or a registered version of a plan, and an input in; what a session plans or runs of it out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import attrs

from harness_core.kernel.commands import Start
from harness_core.settings.problems import nearest
from harness_hookspecs.errors import ConfigError, NotFound, ValidationFailed
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical
from harness_hookspecs.store import Store

from .config.effective import EffectiveConfig
from .definitions import workflow_wire
from .schemas import data_findings
from .session_parts import SessionParts

__all__ = ["ID_PREFIX", "Goal", "begun_with", "checked_goal", "spec_of_plan", "spec_of_version", "spec_of_workflow"]

Goal = Literal["plan", "run"]
ID_PREFIX: Final = "wfv_"
"""What the id of a version begins with; no workflow has such a name."""


_SHOWN_CHARACTERS: Final = 400


def spec_of_workflow(name: str, goal: Goal, given: Any, parts: SessionParts, config: EffectiveConfig) -> dict[str, Any]:
    """What a session is begun with that plans a workflow of the configuration, and runs the plan where that is wanted.

    Raises:
        NotFound: ``workflow.unknown``: there is none of that name.
        ConfigError: ``config.no_model``: nobody fits a model that it names.
        ValidationFailed: ``workflow.invalid_input``: the input is none that it takes.
    """
    defined = config.stages.workflows
    if name not in defined:
        known = ", ".join(defined) or "none, stages.yaml defines them under workflows"
        message = f"there is no workflow {name}; workflows: {known}"
        raise NotFound(message, code="workflow.unknown", hint=nearest(name, defined))
    stage = parts.definition.initial
    workflow = workflow_wire(name, parts, config, stage=stage)
    _check(given, workflow)
    return {"goal": "plan" if goal == "plan" else "start", "workflow": workflow, "input": given, "stage": stage}


def spec_of_version(
    version: Mapping[str, Any], given: Any, parts: SessionParts, store: Store, config: EffectiveConfig
) -> dict[str, Any]:
    """What a session is begun with that runs a version: for the workflow that it was planned for, as that is defined
    now or, where it is no more, as it was then; else for itself.

    Raises:
        ConfigError: ``config.no_model``: nobody fits a model that the workflow names.
        ValidationFailed: ``workflow.invalid_input``: the input is none that it takes.
        StoreError: Its content is not there any more.
    """
    plan = read_canonical(store.blob(version["plan_ref"]))
    ref, stage = version.get("definition_ref"), parts.definition.initial
    itself = _of_itself(plan, parts)
    workflow = itself if ref is None else read_canonical(store.blob(ref))
    name = workflow["workflowId"]
    if workflow["definitionHash"] != itself["definitionHash"] and name in config.stages.workflows:
        workflow = workflow_wire(name, parts, config, stage=stage)  # what it may do was perhaps taken back since
    _check(given, workflow)
    return {"goal": "run", "workflow": workflow, "input": given, "stage": stage, "plan": plan}


def spec_of_plan(plan: Mapping[str, Any], given: Any, parts: SessionParts, *, stage: str) -> dict[str, Any]:
    """What a session is begun with that runs a sound plan for itself, in the place of that stage.

    Raises:
        ValidationFailed: ``workflow.invalid_input``: the input is none that it takes.
    """
    workflow = _of_itself(plan, parts)
    _check(given, workflow)
    return {"goal": "run", "workflow": workflow, "input": given, "stage": stage, "plan": plan}


def _of_itself(plan: Mapping[str, Any], parts: SessionParts) -> dict[str, Any]:
    """The contract of a plan that was written for none: what it says of itself."""
    permissions, name = plan["permissions"], plan["metadata"]["name"]
    tools = parts.toolbox.named([one.replace(".", "_") for one in permissions["tools"]])
    wire = {
        "workflowId": name,
        "name": name,
        "inputSchema": plan["input"]["schema"],
        "outputSchema": plan["output"]["schema"],
        "modelSlots": {slot: {"capabilities": []} for slot in permissions["models"]},
        "permissions": permissions,
        "planner": {"maxRepairs": 0},
        "workers": {},
        "memory": [],
        "limits": plan.get("limits", {}),
    }
    return {**wire, "definitionHash": digest(wire), "tools": [tool.reference() for tool in tools.values()]}


def _check(given: Any, workflow: Mapping[str, Any]) -> None:
    findings = data_findings(workflow["inputSchema"], given)
    if findings:
        said = "; ".join(f"{one['path'] or '/'}: {one['message']}" for one in findings)
        message = f"this is no input of the workflow {workflow['name']}: {said}"
        hint = f"it takes {_shown(canonical(workflow['inputSchema']).decode())}"
        raise ValidationFailed(message, code="workflow.invalid_input", hint=hint, findings=findings)


def _shown(schema: str) -> str:
    """As much of the schema as a line has room for."""
    return schema if len(schema) <= _SHOWN_CHARACTERS else f"{schema[:_SHOWN_CHARACTERS]}..."


def checked_goal(goal: str, name: str) -> Goal:
    """What is wanted of a workflow; a version is planned already.

    Raises:
        ConfigError: ``config.goal``.
    """
    if goal not in get_args(Goal):
        raise ConfigError(f"the goal is plan or run, not {goal!r}", code="config.goal")
    if goal == "plan" and name.startswith(ID_PREFIX):
        message = f"{name} is a version, which is planned already"
        raise ConfigError(message, code="config.goal", hint="run it, or plan the workflow by its name")
    return "plan" if goal == "plan" else "run"


def begun_with(command: Start, spec: Mapping[str, Any]) -> Start:
    """The command that begins the session, with what it plans or runs."""
    content = canonical(spec)
    ref = hashlib.sha256(content).hexdigest()
    created = {**command.created, "workflow_ref": ref}
    return attrs.evolve(command, created=created, blobs={**command.blobs, ref: content})
