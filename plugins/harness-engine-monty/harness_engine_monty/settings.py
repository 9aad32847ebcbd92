"""The settings of the engine ``monty``, as a frozen model."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

__all__ = ["MontySettings"]

_SMALLER: Final[JsonDict] = {"x-untrusted": "tighten", "x-tighten": "smaller"}


class MontySettings(BaseModel):
    """Bounds beside those of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_processes: Annotated[int, Field(ge=1, le=256)] = Field(
        32,
        description="Worker processes at once, of some 10 MB each; a further run waits for one. Code whose tool runs "
        "code takes two.",
        json_schema_extra=_SMALLER,
    )
    runs_per_process: Annotated[int, Field(ge=1, le=100_000)] = Field(
        100,
        description="Runs after which a worker process is begun anew; 1: each run has a process of its own.",
        json_schema_extra=_SMALLER,
    )
    max_depth: Annotated[int, Field(ge=10, le=1000)] = Field(
        500, description="How deep calls within the code may nest.", json_schema_extra=_SMALLER
    )
    max_calls: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        10_000,
        description="Tool calls of one run, imports of modules that are not there counted in.",
        json_schema_extra=_SMALLER,
    )
