"""The keys of the set in tools.yaml: how much it reads and shows, as a frozen model."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["FilesystemSettings"]

_SMALLER: Final[dict[str, Any]] = {"x-untrusted": "tighten", "x-tighten": "smaller"}


class FilesystemSettings(BaseModel):
    """Limits; what is beyond them is left out and marked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file_limit_bytes: Annotated[int, Field(ge=1_024, le=1_073_741_824)] = Field(
        8_388_608,
        description="Files larger than this are read only so far, not searched and not changed, in bytes.",
        json_schema_extra=_SMALLER,
    )
    result_limit_bytes: Annotated[int, Field(ge=256, le=16_777_216)] = Field(
        65_536, description="How much text one call shows, in bytes.", json_schema_extra=_SMALLER
    )
