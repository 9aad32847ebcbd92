"""Settings of the store: the YAML beside ``store: {plugin: memory}`` goes in, a frozen value comes out."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Settings"]


class Settings(BaseModel):
    """Settings of the store ``memory``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(
        default=None,
        description="Stores of one name share one log for as long as the process lives. Without a name: a new one.",
        json_schema_extra={"x-untrusted": "no"},
    )
