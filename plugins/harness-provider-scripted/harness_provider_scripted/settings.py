"""The keys of a scripted entry in models.yaml, as a frozen model."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ScriptedSettings"]


class ScriptedSettings(BaseModel):
    """Where the answers stand."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        description="The script, a YAML file of schema harness.script/1; relative to the project.",
        json_schema_extra={"x-untrusted": "no"},
    )
