"""Workflows by name as ``stages.yaml`` defines them: what each takes and gives, and what its plans may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from harness_hookspecs.kit.frozen import FrozenDict
from harness_hookspecs.mount import MountMode, MountPath
from harness_hookspecs.value import JsonObject

from .base import Name, Settings, Tier, Tokens

__all__ = [
    "WORKFLOW_NAME", "BashNetworkOf", "BashOf", "LimitsOf", "MemoryOf", "PermissionsOf", "PlannerOf", "Slot",
    "WorkersOf", "WorkflowDefinition",
]  # fmt: skip

WORKFLOW_NAME: Final = r"(?!wfv_)[a-z][a-z0-9._-]{0,99}"
"""How a workflow may be called: its plans have the same name, and what begins with wfv_ is the id of a version."""


class Slot(Settings):
    """A model that plans of the workflow may name: who answers is its ``bind``, else the entry of models.yaml that is
    called as it is, else the model of the stage."""

    bind: Name | None = Field(None, description="The entry of models.yaml that answers.")
    capabilities: tuple[Name, ...] = Field((), description="What it must be able to do.")
    description: str | None = Field(None, description="What it is for, as the planner is told it.")


class PlannerOf(Settings):
    """Who writes the plans."""

    system: str | None = Field(None, description="What the planner is told first.")
    form: Literal["plan", "sketch"] = Field(
        "plan",
        description="What they write: plans, or sketches, the short form for small models that plans are made of.",
    )
    max_repairs: Annotated[int, Field(ge=0, le=20)] = Field(
        2, description="How often the planner may mend a plan that was refused."
    )


class WorkersOf(Settings):
    """Who does the steps."""

    system: str | None = Field(None, description="What the workers are told first.")


class PermissionsOf(Settings):
    """What plans may ask for at most, beside the models and tools that the workflow names."""

    secrets: tuple[Name, ...] | None = Field(None, description="Secrets, by name; absent: plans are held to none.")
    network: tuple[Name, ...] | None = Field(None, description="Hosts; absent: plans are held to none.")
    max_tier: Tier | None = Field(None, description="The highest tier of a tool; absent: what policies allow.")


class LimitsOf(Settings):
    """How far one run may go."""

    max_step_executions: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Executions of steps, visits and branches counted."
    )
    max_tokens: Tokens | None = Field(None, description="Tokens that a plan may say it needs.")
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How long a plan may say it takes, in milliseconds."
    )


class BashNetworkOf(Settings):
    """What bash may reach."""

    allow: tuple[Name, ...] = Field(description="Prefixes of URLs.")
    methods: tuple[Name, ...] = Field(description="Methods of HTTP.")
    deny_private_ranges: bool = Field(True, description="Whether private ranges of addresses stay closed.")


class BashOf(Settings):
    """What bash may do."""

    network: BashNetworkOf | None = Field(None, description="What it may reach; absent: nothing.")
    languages: tuple[Name, ...] | None = Field(None, description="What it may run, beside its own.")
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How long one call may take, in milliseconds."
    )


class MemoryOf(Settings):
    """A memory store at a path."""

    path: MountPath = Field(description="Where it is.")
    mode: MountMode = Field(description="Whether it may be written.")
    purpose: str = Field(description="What a role reads about it.")
    store_id: Name = Field(description="Which store it is.")


class WorkflowDefinition(Settings):
    """A workflow: the contract of its plans, which a model writes when one is needed."""

    description: str | None = Field(None, description="What it is for, as who may run it is told.")
    input: JsonObject | bool = Field(True, description="JSON Schema of what it is given.")
    output: JsonObject | bool = Field(True, description="JSON Schema of what it gives.")
    models: Annotated[Mapping[Name, Slot], AfterValidator(FrozenDict)] = Field(
        {}, description="The models its plans may use; absent: that of the stage."
    )
    tools: tuple[Name, ...] = Field((), description="Tool sets and tools its plans may use.")
    planner: PlannerOf = Field(PlannerOf(), description="Who writes its plans.")
    workers: WorkersOf = Field(WorkersOf(), description="Who does its steps.")
    permissions: PermissionsOf = Field(PermissionsOf(), description="What its plans may ask for at most.")
    limits: LimitsOf = Field(LimitsOf(), description="How far one run may go.")
    bash: BashOf | None = Field(None, description="What bash may do in its runs.")
    memory: tuple[MemoryOf, ...] = Field((), description="Memory stores that its runs have.")
