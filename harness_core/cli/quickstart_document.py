"""The document of ``contrib/quickstart.py --json``, as a model; its JSON Schema is published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from harness_core.settings.schemas import published

from .documents import Document

__all__ = ["Quickstart", "schemas"]


class Quickstart(Document):
    """What the quickstart made; when something stops it, `harness.error/1` takes its place."""

    schema_: Literal["harness.quickstart/1"] = Field(alias="schema")
    project: str | None = Field(description="The example's folder; null with --no-run.")
    session: str | None = Field(description="The id of the session that was run; null with --no-run.")
    status: str = Field(description="The session's status; `installed` with --no-run.")
    seconds: float = Field(description="Seconds that the job took, without the set-up.")


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema by the document's id."""
    name = "harness.quickstart/1"
    return {name: published(name, Quickstart.model_json_schema())}
