"""The bodies of the standard artifact types: what a role's output must be, as frozen models with bounds on everything.

The bounds of :class:`ReleaseNotes` are small on purpose: the longest reply they allow, with the names of three files,
is 160 tokens of SmolLM2 at two characters a token, and English has nearly five.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["ImplementationArtifact", "ReleaseNotes", "Review", "TextArtifact"]

Line120: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=120)]
Line300: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=300)]
Paragraph: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1_000)]
# Plain words: kept to them, a small model writes a sentence, and without them line breaks and stray JSON.
_Plain: TypeAlias = Annotated[
    str,
    StringConstraints(strict=True, pattern=r"^[A-Z][A-Za-z0-9 ,.:;'`()_/+-]*$"),
    Field(examples=["Counts lines too"]),
]
Plain40: TypeAlias = Annotated[_Plain, StringConstraints(min_length=4, max_length=40)]
Plain48: TypeAlias = Annotated[_Plain, StringConstraints(min_length=4, max_length=48)]
Plain100: TypeAlias = Annotated[_Plain, StringConstraints(min_length=10, max_length=100)]
FilePath: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=255)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # a stage uses one of them


class ImplementationArtifact(_Body):
    """What a coder did."""

    summary: Paragraph
    modified_files: Annotated[tuple[FilePath, ...], Field(max_length=200)]
    risks: Annotated[tuple[Line300, ...], Field(max_length=20)]
    commands_executed: Annotated[tuple[Line300, ...], Field(max_length=50)]
    next_recommendation: Annotated[str, StringConstraints(strict=True, max_length=1_000)]


class ReleaseNotes(_Body):
    """What a release brings, and which of the changed files show it; a file that stands twice counts once."""

    summary: Plain100
    highlights: Annotated[tuple[Plain48, ...], Field(min_length=1, max_length=2)]
    files: Annotated[tuple[FilePath, ...], Field(max_length=4)]
    risks: Annotated[tuple[Plain40, ...], Field(max_length=1)]


class Review(_Body):
    """A judgement of another artifact; rules read ``artifact.verdict``."""

    verdict: Literal["approve", "revise", "reject"]
    findings: Annotated[tuple[Line120, ...], Field(max_length=5)]
    summary: Line120


class TextArtifact(_Body):
    """Free text, still an object."""

    text: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=16_000)]
