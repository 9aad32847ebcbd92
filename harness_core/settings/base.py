"""The common ground of all settings: the frozen pydantic base, the trust marks and the small named types."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

__all__ = [
    "NO",
    "OK",
    "Choice",
    "Count",
    "Glob",
    "Mode",
    "Name",
    "Seconds",
    "Settings",
    "Share",
    "Tier",
    "Tokens",
    "tighten",
]

NO: Final[JsonDict] = {"x-untrusted": "no"}
"""A project that is not trusted may not set it; also what holds where nothing is said."""

OK: Final[JsonDict] = {"x-untrusted": "ok"}
"""A project that is not trusted may set it: it cannot reach further than what the user allows anyway."""


def tighten(
    comparator: Literal["smaller", "mode", "tier", "superset", "subset", "false", "true", "explicit", "rules"],
) -> JsonDict:
    """Mark a leaf that a project which is not trusted may only make stricter.

    Args:
        comparator: What stricter means: a smaller number, a later mode, a higher tier, a longer or a shorter
            list, switched off, switched on, ``explicit`` over ``open``, or more denying rules in front.
    """
    return {"x-untrusted": "tighten", "x-tighten": comparator}


class Settings(BaseModel):
    """A part of the configuration: frozen, and every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Choice(BaseModel):
    """A part that chooses a plugin's offer and holds that offer's own keys beside the choice."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False, defer_build=True)

    @property
    def own(self) -> Mapping[str, Any]:
        """The keys that belong to the chosen offer; checked against its manifest when the files are read."""
        return dict(self.model_extra or {})


Mode = Literal["auto", "prompt", "deny"]
Tier = Literal["T0", "T1", "T2", "T3", "T4"]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Glob = Annotated[str, Field(min_length=1, max_length=1024)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]
Share = Annotated[int, Field(ge=1, le=100)]
