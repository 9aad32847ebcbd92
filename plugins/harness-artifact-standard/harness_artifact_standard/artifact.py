"""A pydantic model as an artifact type: a role's output goes in, a body with a status comes out, or what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError

from harness_hookspecs.artifact import ArtifactStatus, ParsedArtifact
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.validator import Finding
from harness_hookspecs.value import explain

from .models import ImplementationArtifact, ReleaseNotes, Review, TextArtifact
from .schema import narrowed_to, plain_schema

__all__ = ["ModelArtifact", "standard_type"]

CHARACTERS_PER_TOKEN: Final = 3
"""English takes about four, so a text of this length ends before the reply does, which would leave half a JSON."""


class ModelArtifact(NamedTuple):
    """An artifact type made of a model.

    Attributes:
        name: The name in ``stages.yaml``.
        model: The body.
        validators: The semantic checks it wants.
        sets: Fields in which an entry that stands twice counts once.
        narrowed: The field whose entries must be among the changed files of the visit.
        free_text: The field that takes the whole reply, bounded by what a reply may hold.
    """

    name: str
    model: type[BaseModel]
    validators: Sequence[str] = ()
    sets: tuple[str, ...] = ()
    narrowed: str | None = None
    free_text: str | None = None

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the body, without references."""
        return plain_schema(self.model)

    def narrow(self, schema: Mapping[str, Any], facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema with the files that may be named and the text that fits a reply, where the visit knows them."""
        tight = copy.deepcopy(dict(schema))
        changed, reply_tokens = facts.get("changed_files"), facts.get("reply_tokens")
        if self.narrowed is not None and isinstance(changed, (list, tuple)):
            tight = narrowed_to(tight, self.narrowed, changed)
        if self.free_text is not None and isinstance(reply_tokens, int):
            field = tight["properties"][self.free_text]
            field["maxLength"] = min(field["maxLength"], max(1, reply_tokens * CHARACTERS_PER_TOKEN))
        return tight

    def parse(self, output: Any) -> ParsedArtifact:
        """Check and normalise; see :class:`harness_hookspecs.artifact.ArtifactType`."""
        if not isinstance(output, Mapping):
            kind = "text" if isinstance(output, str) else type(output).__name__
            raise _invalid(self.name, [_error("payload.not_object", "", f"This is {kind}, not an object")])
        given, warnings = self._without_repetition(output)
        try:
            body = self.model.model_validate(given)
        except ValidationError as error:
            found = explain(error, self.name, given).facts["findings"]
            errors = [_error(f"payload.{one['code']}", one["path"], one["message"]) for one in found]
            raise _invalid(self.name, errors) from error
        status: ArtifactStatus = body.status if hasattr(body, "status") else "success"
        return ParsedArtifact(body.model_dump(mode="json"), status, tuple(warnings))

    def _without_repetition(self, output: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
        given = dict(output)
        warnings = []
        for field in self.sets:
            entries = given.get(field)
            if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries):
                continue
            given[field] = list(dict.fromkeys(entries))
            repeated = sorted({entry for entry in entries if list(entries).count(entry) > 1})
            if repeated:
                message = f"Named more than once and merged: {', '.join(repeated)}"
                code = "artifact.duplicates_merged"
                warnings.append(Finding(code=code, severity="warning", path=f"/{field}", message=message))
        return given, warnings


def _error(code: str, path: str, message: str) -> dict[str, Any]:
    return Finding(code=code, severity="error", path=path, message=message).to_wire()


def _invalid(name: str, findings: list[dict[str, Any]]) -> ValidationFailed:
    first = findings[0]
    message = f"This is no artifact of type {name}: {first['message']}."
    return ValidationFailed(message, code="payload.invalid", where=first["path"] or None, findings=findings)


_STANDARD: Final = (
    ModelArtifact("implementation", ImplementationArtifact, ("changed_files",), sets=("modified_files",)),
    ModelArtifact("release_notes", ReleaseNotes, ("changed_files",), sets=("files",), narrowed="files"),
    ModelArtifact("review", Review),
    ModelArtifact("text", TextArtifact, free_text="text"),
)


def standard_type(name: str) -> ModelArtifact:
    """The standard type of that name; raises ``KeyError`` for another one."""
    return {one.name: one for one in _STANDARD}[name]
