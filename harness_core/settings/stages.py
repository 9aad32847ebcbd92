"""stages.yaml: the stages, what each may do and where each leads, and the personas, as a frozen model."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator

from harness_hookspecs.offer import WORKFLOW_NAME
from harness_hookspecs.value import FrozenDict, JsonObject, Table
from harness_hookspecs.workflow_definition import WorkflowDefinition

from .base import OK, Glob, Name, Seconds, Settings, Tokens

__all__ = [
    "RESERVED",
    "STAGE_NAME",
    "Approvals",
    "ContextSettings",
    "ContextSource",
    "OutputLimits",
    "Persona",
    "Retry",
    "Stage",
    "StagesSettings",
    "TransitionRule",
    "runs_plans",
]

RESERVED: Final = ("retry", "failed", "completed", "cancelled", "end")
"""Targets that are not stages; no stage may have such a name."""

STAGE_NAME: Final = r"[a-z][a-z0-9_-]{0,63}"


def _stage_name(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f'"{name}" cannot be a stage: it is a reserved target ({", ".join(RESERVED)})')
    if not re.fullmatch(STAGE_NAME, name):
        raise ValueError(f'"{name}" is not a stage name: a lower-case letter, then letters, digits, _ and -')
    return name


def _workflow_name(name: str) -> str:
    if not re.fullmatch(WORKFLOW_NAME, name):
        said = "a lower-case letter, then such letters, digits, ., _ and -"
        more = "; what begins with wfv_ is the id of a version" if name.startswith("wfv_") else ""
        raise ValueError(f'"{name}" is not a workflow name: {said}{more}')
    return name


WorkflowName = Annotated[str, AfterValidator(_workflow_name)]
StageName = Annotated[str, AfterValidator(_stage_name)]
Targets = Name | tuple[Name, ...]
Requirement = Literal["required", "deny", "policy"]


class Approvals(Settings):
    """What this stage asks for beyond the policies; it can only be stricter than they are."""

    tool_tier_0: Requirement = Field(
        "policy", description="Inference: required asks, deny refuses, policy leaves it to policies.yaml."
    )
    tool_tier_1: Requirement = Field("policy", description="Reading tools: required, deny or policy.")
    tool_tier_2: Requirement = Field("policy", description="Reversible changes: required, deny or policy.")
    tool_tier_3: Requirement = Field(
        "policy", description="Network and other outside effects: required, deny or policy."
    )
    tool_tier_4: Requirement = Field("policy", description="Destructive changes: required, deny or policy.")
    artifact: Literal["required", "policy"] = Field(
        "policy", description="Whether the result must be accepted before the stage is left."
    )


class Retry(Settings):
    """What happens when an attempt of the stage fails, before any transition is looked at."""

    strategy: Literal["retry", "corrective", "fail_safe", "fail_fast"] = Field(
        "retry",
        description=(
            "retry tries again, corrective tells the reason too, fail_safe skips the stage and goes on, "
            "fail_fast ends the session."
        ),
    )
    max_attempts: Annotated[int, Field(ge=1, le=20)] = Field(
        1, description="Attempts of one visit in all, the first included."
    )
    inject_failure_reason: bool = Field(
        False, description="Whether the next attempt reads why the last one failed; corrective always does."
    )
    temperature_backoff: bool = Field(False, description="Whether each further attempt samples at a lower temperature.")

    @property
    def tells_reason(self) -> bool:
        """Whether the next attempt reads why the last one failed."""
        return self.inject_failure_reason or self.strategy == "corrective"


class TransitionRule(Settings):
    """Where to go when the expression holds; without one the rule always applies."""

    when: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        None, description="A CEL expression over artifact, retries and the like; absent: always."
    )
    goto: Targets = Field(
        description="A stage, or retry, failed, completed, cancelled, end; of a list the first whose routing is valid."
    )


class ContextSource(Settings):
    """One thing that goes into the context of the stage."""

    kind: Literal["files", "artifact", "text", "tree", "tool", "git_log", "git_diff"] = Field(
        description=(
            "files by glob, an earlier artifact by stage, a fixed text, a listing of the workspace (tree), the result "
            "of a reading tool, or the subjects (git_log) or the changes (git_diff) of a range of commits."
        )
    )
    glob: Glob | None = Field(None, description="For files and tree: which files of the workspace, with ** and *.")
    stage: Name | None = Field(None, description="For artifact: the stage whose latest accepted artifact is taken.")
    text: str | None = Field(None, description="For text: the text itself.")
    tool: Name | None = Field(None, description="For tool: the tool that is called, T0 or T1 only.")
    args: JsonObject | None = Field(None, description="For tool: its arguments.")
    range: Name | None = Field(
        None,
        description="For git_log and git_diff: BASE..HEAD; absent: since the last tag, everything where none is.",
    )
    layer: Literal["L1", "L2", "L3", "L4"] | None = Field(
        None,
        description="Its layer; absent: L1 for text, artifact and git_log, L2 for git_diff, L3 otherwise.",
    )
    max_tokens: Tokens | None = Field(
        None, description="What it may take of the context, in tokens; the rest is cut and marked."
    )


class ContextSettings(Settings):
    """What the model of this stage gets to read."""

    max_tokens: Tokens | None = Field(
        None, description="Size of the prompt, in tokens; absent: the model's context less the reply and the reserve."
    )
    sources: tuple[ContextSource, ...] = Field((), description="What is gathered besides the task, in this order.")


class OutputLimits(Settings):
    """How large the answer may be."""

    max_tokens: Tokens | None = Field(
        None, description="Tokens of one reply; absent: the model's inference.max_output_tokens."
    )
    max_bytes: Annotated[int, Field(ge=64, le=67_108_864)] | None = Field(
        None, description="Size of the artifact, in bytes; a larger one is refused. Absent: 1 MiB."
    )


class Stage(Settings):
    """One stage: what is to be made, by whom, with what, and where it leads."""

    role: Name = Field(
        description="The persona that does the work; one that stands in `roles` brings its own settings."
    )
    executor: Name = Field(
        "agent", description="How the work is done: agent, workflow, orchestrate, task, or what a plugin offers."
    )
    plan: JsonObject | None = Field(
        None, description="For an executor that runs plans: the plan itself, a document of apiVersion harness.lwir/v1."
    )
    workflow: Name | None = Field(
        None,
        description="In place of plan: the workflow, by name, that a plan is written for and that is then run.",
    )
    workflows: tuple[Name, ...] | None = Field(
        None,
        description="For the executor orchestrate: the workflows it may use, by name; absent: all that are defined.",
    )
    artifact: Name = Field("text", description="Type of the result, by the name under which a plugin offers it.")
    task: str | None = Field(
        None, description="What is to be done here, said to the model besides the person's own words."
    )
    model: Name | None = Field(None, description="The model by name; absent: the persona's, else the default.")
    requirements: tuple[Name, ...] = Field(
        (), description="Capabilities the model must have; what is missing is refused before any inference."
    )
    allowed_tools: tuple[Name, ...] = Field((), description="Tool sets and tools that may be used; nothing else may.")
    approvals: Approvals = Field(Approvals(), description="What this stage asks for beyond the policies.")
    retry: Retry = Field(Retry(), description="What happens when an attempt fails.")
    context: ContextSettings = Field(ContextSettings(), description="What the model gets to read.")
    output: OutputLimits = Field(OutputLimits(), description="How large the answer may be.")
    timeout_sec: Seconds | None = Field(
        None, description="How long one attempt may take, in seconds; absent: what is left of the budget."
    )
    max_turns: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Model turns of one attempt; absent: run.max_turns, and never more than that."
    )
    transitions: tuple[TransitionRule, ...] = Field(
        (), description="Where it leads, from top to bottom; the first that holds wins."
    )
    on_success: Targets | None = Field(None, description='Short for a last rule artifact.status == "success".')
    on_failure: Targets | None = Field(None, description='Short for a last rule artifact.status != "success".')


def runs_plans(stage: Stage) -> bool:
    """Whether its executor is the one that runs plans, whatever plugin it is named with."""
    return stage.executor.rpartition(":")[2] == "workflow"


class Persona(Settings):
    """Who a stage's role is: what it is told, what it may use, what it answers with."""

    extends: Name | None = Field(None, description="The persona whose settings hold where this one says nothing.")
    model: Name | None = Field(None, description="The model by name; absent: the default.")
    prompt: str | None = Field(None, description="The developer's text that stands first in its prompt.")
    tools: tuple[Name, ...] | None = Field(
        None, description="Tools it may use at most; a stage's allowed_tools still has to name them."
    )
    output: OutputLimits | None = Field(None, description="How large its answers may be; a stage comes before it.")


def _built_in_stages() -> dict[str, Stage]:
    return {"main": Stage(role="assistant", on_success="completed", on_failure="failed")}


class StagesSettings(Settings):
    """The whole of stages.yaml."""

    initial: Name | None = Field(
        None,
        description="The stage where a session begins; may be absent when there is only one.",
        json_schema_extra=OK,
    )
    stages: Annotated[Mapping[StageName, Stage], AfterValidator(FrozenDict)] = Field(
        default_factory=_built_in_stages,
        description="The stages by name; absent: one stage `main` that answers.",
        json_schema_extra={**OK, "propertyNames": {"pattern": f"^{STAGE_NAME}$"}},
    )
    workflows: Annotated[Mapping[WorkflowName, WorkflowDefinition], AfterValidator(FrozenDict)] = Field(
        {},
        description="Workflows that may be planned and run, by name.",
        json_schema_extra={"propertyNames": {"pattern": f"^{WORKFLOW_NAME}$"}},
    )
    roles: Table[Persona] = Field({}, description="Personas by name.", json_schema_extra=OK)

    @field_validator("stages")
    @classmethod
    def _there_is_one(cls, stages: Mapping[str, Stage]) -> Mapping[str, Stage]:
        if not stages:
            raise ValueError("there is no stage")
        return stages

    def initial_name(self) -> str:
        """Give the name of the stage where a session begins."""
        return self.initial if self.initial is not None else next(iter(self.stages))
