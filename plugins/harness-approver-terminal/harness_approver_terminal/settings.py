"""The keys under ``plugins.settings.terminal``, as a frozen model."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["TerminalSettings"]


class TerminalSettings(BaseModel):
    """Who answers and how much is shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    person: Annotated[str, Field(max_length=128)] = Field(
        "",
        description="Who answers, for the log; empty: the user of the operating system.",
        json_schema_extra={"x-untrusted": "no"},
    )
    preview_lines: Annotated[int, Field(ge=5, le=10_000)] = Field(
        60,
        description="So many lines of a change are shown before the question.",
        json_schema_extra={"x-untrusted": "ok"},
    )
