"""The document about what two sessions did differently, as a model; its JSON Schema is published."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from .documents import Document
from .look_documents import ArtifactItem, Move
from .session_documents import Status, schemas_of

__all__ = ["DOCUMENTS", "SessionDiff", "schemas"]

T = TypeVar("T", bound=Document)


class Side(Document):
    """One of the two sessions."""

    id: str = Field(description="The session.")
    title: str = Field(description="The beginning of what was asked.")
    status: Status = Field(description="Its state.")
    stage: str | None = Field(description="The stage it is in, or was in last.")
    seconds: float = Field(description="From its first event to its last; no difference.")


class ChangedLeaf(Document):
    """A value that differs."""

    key: str = Field(description="Which; of a setting its file and its key.")
    a: Any = Field(description="In the first session; null where it is not set.")
    b: Any = Field(description="In the second.")


class StageVisit(Document):
    """One visit of a stage."""

    seq: int = Field(description="The event that entered it.")
    stage: str = Field(description="The stage.")
    visit: int = Field(description="Which visit of it, from 0.")
    persona: str = Field(description="The persona.")
    model: str = Field(description="The model's name.")
    attempts: int = Field(description="How many attempts it took.")
    status: str | None = Field(description="How it was left; null where it was not.")


class ToolCallDone(Document):
    """One tool call."""

    seq: int = Field(description="The event that started it.")
    stage: str = Field(description="The stage.")
    tool: str = Field(description="The tool.")
    args: Any = Field(description="Its arguments.")
    outcome: Literal["succeeded", "failed", "open"] = Field(description="How it ended.")
    code: str | None = Field(description="Why it failed.")
    result_hash: str | None = Field(description="SHA-256 of its result as canonical JSON.")


class Pair(Document, Generic[T]):
    """Two things that are about the same, and differ; null on the side that has none."""

    a: T | None = Field(description="In the first session.")
    b: T | None = Field(description="In the second.")


class Aligned(Document, Generic[T]):
    """Two lists beside each other, in order."""

    same: int = Field(description="How many are the same in both.")
    differ: list[Pair[T]] = Field(description="The others.")


class SessionDiff(Document):
    """What two sessions did differently; ids, times and durations are no difference."""

    schema_: Literal["harness.session_diff/1"] = Field(alias="schema")
    a: Side = Field(description="The first session.")
    b: Side = Field(description="The second.")
    equal: bool = Field(description="Whether both ended alike and nothing below differs.")
    asked: list[ChangedLeaf] = Field(description="What was asked for, in which project, under which flags.")
    settings: list[ChangedLeaf] = Field(description="The settings that each is pinned to, and its plugins.")
    stages: Aligned[StageVisit] = Field(description="Stage visits.")
    transitions: Aligned[Move] = Field(description="Rules that were taken, retries and skips.")
    artifacts: Aligned[ArtifactItem] = Field(description="Accepted artifacts.")
    tool_calls: Aligned[ToolCallDone] = Field(description="Tool calls.")
    usage: list[ChangedLeaf] = Field(description="Tokens and model calls.")


DOCUMENTS: tuple[type[Document], ...] = (SessionDiff,)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
