"""The documents that ``workflows`` prints, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "PlanCheck", "schemas"]


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


DOCUMENTS: tuple[type[Document], ...] = (PlanCheck,)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
