"""Settings of the store: the YAML beside ``store: {plugin: postgres}`` goes in, a frozen value comes out.

There is no place for a password: it stands in the password file, the service file or the environment of libpq.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Settings"]


class Settings(BaseModel):
    """Settings of the store ``postgres``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_name: str = Field(
        default="harness",
        pattern="^[a-z_][a-z0-9_]{0,62}$",
        description="The schema that holds the log, made when it is not there; each log has one of its own.",
        json_schema_extra={"x-untrusted": "no"},
    )
    service: str | None = Field(
        default=None,
        description="The section of the service file that says where the server is. Without it: what the environment "
        "of libpq says (PGHOST, PGDATABASE, ...).",
        json_schema_extra={"x-untrusted": "no"},
    )
    synchronous: Literal["FULL", "NORMAL"] = Field(
        default="FULL",
        description="FULL keeps every acknowledged event through a crash of the server. NORMAL may lose the last ones "
        "then, never the log, and is faster.",
        json_schema_extra={"x-untrusted": "no"},
    )
