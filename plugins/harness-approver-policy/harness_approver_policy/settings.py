"""The rules, set under ``plugins.settings.policy``, as frozen models."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

__all__ = ["PolicyRule", "PolicySettings"]

Glob = Annotated[str, Field(min_length=1, max_length=1_024)]
Pointer = Annotated[str, StringConstraints(pattern=r"^(/([^~/]|~0|~1)*)+$", max_length=1_024)]
Tier = Literal["T0", "T1", "T2", "T3", "T4"]

_CONDITIONS = ("tool", "tier", "stage", "persona", "args")


class PolicyRule(BaseModel):
    """One rule; it decides when all that it names fits."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # built with the settings

    subject: Literal["tool", "artifact", "inference"] = Field("tool", description="What is to be allowed.")
    tool: Glob | None = Field(None, description="Tool, or artifact type or model, with * and ?.")
    tier: Tier | None = Field(
        None, description="The tier of the effect. A rule that approves and names no tier covers T0 to T3."
    )
    stage: Glob | None = Field(None, description="Stage, with * and ?.")
    persona: Glob | None = Field(None, description="Persona, with * and ?.")
    args: Mapping[Pointer, Glob] = Field(
        {}, description="JSON pointer into the arguments to a glob that its value must fit, all of them."
    )
    decision: Literal["approve", "deny"] = Field(description="What is answered.")
    say: str | None = Field(None, max_length=4_096, description="What the role is told with the answer.")
    where: str | None = Field(
        None, max_length=1_024, description="Where the rule stands, for the log; absent: its place in the list."
    )

    @model_validator(mode="after")
    def _approves_something(self) -> Self:
        if self.decision == "approve" and not any(getattr(self, name) for name in _CONDITIONS):
            raise ValueError(f"a rule that approves names at least one of {', '.join(_CONDITIONS)}")
        return self


class PolicySettings(BaseModel):
    """All rules."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: tuple[PolicyRule, ...] = Field(
        (),
        description="Rules from top to bottom; the first that fits decides.",
        json_schema_extra={"x-untrusted": "no"},
    )
