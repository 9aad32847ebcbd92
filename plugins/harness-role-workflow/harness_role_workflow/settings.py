"""The keys of the role harness ``workflow``: how long a model may try, as a frozen model."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["WorkflowRoleSettings"]

_SMALLER: Final[dict[str, Any]] = {"x-untrusted": "tighten", "x-tighten": "smaller"}


class WorkflowRoleSettings(BaseModel):
    """Bounds of one role call."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_turns: Annotated[int, Field(ge=1, le=100)] = Field(
        20, description="Model calls of a step that sets no maxTurns of its own.", json_schema_extra=_SMALLER
    )
    equal_failures: Annotated[int, Field(ge=1, le=20)] = Field(
        3,
        description="How often the same tool call may fail, or the same answer be wrong, before the step fails.",
        json_schema_extra=_SMALLER,
    )
