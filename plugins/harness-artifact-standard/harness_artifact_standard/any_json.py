"""The artifact type ``json``: any value goes in, a body comes out; for what a workflow gives, which its plan checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness_hookspecs.artifact import ParsedArtifact

__all__ = ["JsonArtifact"]


class JsonArtifact(NamedTuple):
    """Any JSON value: an object is its own body, anything else stands in one under ``value``."""

    name: str = "json"
    validators: Sequence[str] = ()

    def schema(self) -> Mapping[str, Any]:
        """Everything is allowed."""
        return {}

    def parse(self, output: Any) -> ParsedArtifact:
        """Nothing can be wrong with it."""
        body = {"value": output} if not isinstance(output, Mapping) else dict(output)
        return ParsedArtifact(body, "success")
