"""The bodies of the standard artifact types: what a role's output must be, as frozen models with bounds on everything.

The bounds of :class:`ReleaseNotes` are small on purpose: the longest reply they allow is one that a small local model
can finish.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["ImplementationArtifact", "ReleaseNotes", "Review", "TextArtifact"]

Line60: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=60)]
Line120: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=120)]
Line300: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=300)]
Paragraph: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1_000)]
FilePath: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=255)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImplementationArtifact(_Body):
    """What a coder did."""

    summary: Paragraph
    modified_files: Annotated[tuple[FilePath, ...], Field(max_length=200)]
    risks: Annotated[tuple[Line300, ...], Field(max_length=20)]
    commands_executed: Annotated[tuple[Line300, ...], Field(max_length=50)]
    next_recommendation: Annotated[str, StringConstraints(strict=True, max_length=1_000)]


class ReleaseNotes(_Body):
    """What a release brings, and which of the changed files show it; a file that stands twice counts once."""

    summary: Line120
    highlights: Annotated[tuple[Line60, ...], Field(max_length=2)]
    files: Annotated[tuple[FilePath, ...], Field(max_length=4)]
    risks: Annotated[tuple[Line60, ...], Field(max_length=1)]


class Review(_Body):
    """A judgement of another artifact; rules read ``artifact.verdict``."""

    verdict: Literal["approve", "revise", "reject"]
    findings: Annotated[tuple[Line120, ...], Field(max_length=5)]
    summary: Line120


class TextArtifact(_Body):
    """Free text, still an object."""

    text: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=16_000)]
