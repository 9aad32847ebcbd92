"""The keys of the set in tools.yaml, as a frozen model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EffectsSettings"]


class EffectsSettings(BaseModel):
    """Where the lines go, and what the set says of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(
        "",
        description="The file that gets a line for each effect; empty: what HARNESS_EFFECTS_FILE names.",
        json_schema_extra={"x-untrusted": "no"},
    )
    probes: bool = Field(
        True,
        description="Whether the set looks into its file when asked what became of a call; false: it never knows.",
        json_schema_extra={"x-untrusted": "no"},
    )
