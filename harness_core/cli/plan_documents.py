"""The documents that ``workflows`` prints, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "PlanCheck", "WorkflowVersion", "Workflows", "schemas"]


class PlanFinding(Document):
    """One thing that is wrong with a plan, or that deserves a warning."""

    severity: Literal["error", "warning"] = Field(description="An error refuses the plan.")
    code: str = Field(description="Stable dotted code.")
    path: str = Field(description="JSON pointer into the plan; empty when all of it is meant.")
    step: str | None = Field(description="The step it is about.")
    message: str = Field(description="What is wrong.")
    hint: str | None = Field(description="What to do next.")


class PlanCheck(Document):
    """What became of a plan that was checked; it is not registered by that."""

    schema_: Literal["harness.plan_check/1"] = Field(alias="schema")
    stage: str = Field(description="The stage that it was checked for: its tools, and the session's models.")
    ok: bool = Field(description="Whether it could be registered and run.")
    workflow_version_id: str | None = Field(description="wfv_ and 32 digits; the same plan has the same id anywhere.")
    lwir_hash: str | None = Field(description="SHA-256 of its canonical form.")
    max_step_executions: int | None = Field(description="How many executions of steps it takes at most.")
    findings: list[PlanFinding] = Field(description="All of the first phase that found an error, and the warnings.")
    lock: dict[str, Any] | None = Field(description="What it was checked against: tools, models, engines, versions.")
    plan: dict[str, Any] | None = Field(description="The plan; of a sketch, what was made of it.")


class VersionSession(Document):
    """A session that registered a version: it ran it, or planned it only."""

    id: str = Field(description="The session.")
    status: str = Field(description="Its state.")
    created_at: str = Field(description="When it began, UTC.")


class VersionItem(Document):
    """A plan that was registered."""

    workflow_version_id: str = Field(description="wfv_ and 32 digits; the same plan has the same id anywhere.")
    workflow: str = Field(description="The workflow's name, as the plan says it.")
    steps: int = Field(description="How many steps it has, those of branches not counted.")
    sessions: list[VersionSession] = Field(description="Where it was registered, the newest first.")


class DefinedWorkflow(Document):
    """A workflow that the project or a plugin defines."""

    name: str = Field(description="Its name.")
    description: str | None = Field(description="What it is for.")
    source: str = Field(description="Where it is defined: a place in a file, or the plugin with its version.")
    problem: str | None = Field(description="Why it cannot be used; null when it can.")


class Workflows(Document):
    """The workflows of a project, and the plans that its sessions registered."""

    schema_: Literal["harness.workflows/1"] = Field(alias="schema")
    workflows: list[DefinedWorkflow] = Field(description="What stages.yaml defines and plugins offer, by name.")
    versions: list[VersionItem] = Field(description="The plans, the newest first.")


class WorkflowVersion(VersionItem):
    """A registered plan, whole."""

    schema_: Literal["harness.workflow_version/1"] = Field(alias="schema")
    max_step_executions: int | None = Field(description="How many executions of steps it takes at most.")
    plan: dict[str, Any] = Field(description="The plan.")
    lock: dict[str, Any] = Field(description="What it was checked against when it was last registered.")


DOCUMENTS: tuple[type[Document], ...] = (PlanCheck, Workflows, WorkflowVersion)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
