"""Workflows by name as ``stages.yaml`` defines them: what each takes and gives, and what its plans may use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness_hookspecs.value import JsonObject, Table

from .base import Name, Settings

__all__ = ["PlannerOf", "Slot", "WorkersOf", "WorkflowDefinition"]


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


class WorkflowDefinition(Settings):
    """A workflow: the contract of its plans, which a model writes when one is needed."""

    description: str | None = Field(None, description="What it is for, as who may run it is told.")
    input: JsonObject | bool = Field(True, description="JSON Schema of what it is given.")
    output: JsonObject | bool = Field(True, description="JSON Schema of what it gives.")
    models: Table[Slot] = Field({}, description="The models its plans may use; absent: that of the stage.")
    tools: tuple[Name, ...] = Field((), description="Tool sets and tools its plans may use.")
    planner: PlannerOf = Field(PlannerOf(), description="Who writes its plans.")
    workers: WorkersOf = Field(WorkersOf(), description="Who does its steps.")
