"""Settings of the store: the YAML beside ``store: {plugin: sqlite}`` goes in, a frozen value comes out."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Settings"]


class Settings(BaseModel):
    """Settings of the store ``sqlite``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        default=None,
        description="The file; relative paths start at the data directory. Without it: harness.db there.",
        json_schema_extra={"x-untrusted": "no"},
    )
    synchronous: Literal["FULL", "NORMAL"] = Field(
        default="FULL",
        description="FULL keeps every acknowledged event through a power loss. NORMAL may lose the last ones then, "
        "never the file, and is many times faster.",
        json_schema_extra={"x-untrusted": "no"},
    )
