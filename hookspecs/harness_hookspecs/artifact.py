"""Kind ``artifact``: a role's output in, a validated body and its status out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from .validator import Finding

__all__ = ["ArtifactStatus", "ArtifactType", "Narrows", "ParsedArtifact"]

ArtifactStatus = Literal["success", "failure", "partial", "rejected"]
"""The envelope field that rules read as ``artifact.status`` (B-63)."""


class ParsedArtifact(NamedTuple):
    """A body that satisfies its type, its status, and what was changed to get there (warnings, recorded)."""

    body: Mapping[str, Any]
    status: ArtifactStatus
    warnings: Sequence[Finding] = ()


class ArtifactType(Protocol):
    """What an offer of kind ``artifact`` builds; one per name."""

    @property
    def name(self) -> str:
        """The name in ``stages.yaml``."""

    @property
    def validators(self) -> Sequence[str]:
        """Names of semantic checks it wants, as validator-standard knows them (``changed_files``)."""

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema 2020-12 of the body, every string and list bounded."""

    def parse(self, output: Any) -> ParsedArtifact:
        """Check and normalise an output.

        Raises:
            ValidationFailed: ``payload.invalid`` with ``facts["findings"]``, each with a JSON pointer.
        """


@runtime_checkable
class Narrows(Protocol):
    """An artifact type whose schema can be made tighter by what is known of this visit."""

    def narrow(self, schema: Mapping[str, Any], facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema that allows less, for example an enum of the changed files; goes to provider and manifest.

        ``facts`` has what the context's sources found and ``reply_tokens``, the longest reply of the stage's model
        (``None`` where it is not bounded).
        """
