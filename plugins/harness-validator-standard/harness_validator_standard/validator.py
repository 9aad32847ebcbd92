"""The two validators: a subject goes in and a verdict comes out, after a look at the workspace where one is needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness_hookspecs.errors import NotFound, Refused, ValidationFailed
from harness_hookspecs.host import CancelToken, ValidatorHost
from harness_hookspecs.kit.paths import decode_path
from harness_hookspecs.validator import Finding, Level, Subject, Verdict
from harness_hookspecs.value import thaw

from .files import is_inside, judged, named_files
from .repository import Repository

__all__ = ["ChangedFilesValidator", "PayloadValidator"]

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class PayloadValidator:
    """The output is what its artifact type says; the body it gives is the normalised one."""

    level: Level = "payload"

    def __init__(self, host: ValidatorHost) -> None:
        self._host = host

    def validate(self, subject: Subject, cancel: CancelToken) -> Verdict:
        """Judge; raises ``NotFound`` for a type that is not registered."""
        artifact = self._host.artifact_type(subject.artifact_type or "")
        try:
            parsed = artifact.parse(thaw(subject.output))
        except ValidationFailed as error:
            return Verdict(passed=False, findings=tuple(_told(error)))
        return Verdict(passed=True, findings=tuple(parsed.warnings), body=parsed.body)


def _told(error: ValidationFailed) -> Iterable[Finding]:
    found = error.facts.get("findings") or [{"path": error.where or "", "message": error.message}]
    for one in found:
        code = str(one.get("code") or "payload.invalid")
        yield Finding(code=code, severity="error", path=str(one.get("path") or ""), message=str(one.get("message")))


class ChangedFilesValidator:
    """Every file the artifact names exists in the project and is among those that were changed.

    It looks at the repository itself: between the commits the visit's context was made of, else at the working tree.
    Where there is no repository it goes by the facts of the context, and without these by existence alone, with a
    warning.
    """

    level: Level = "semantic"

    def __init__(self, host: ValidatorHost) -> None:
        self._host = host
        self._files = host.ports.files(host.project_dir)

    def validate(self, subject: Subject, cancel: CancelToken) -> Verdict:
        """Judge; an artifact type that does not want this check passes without findings.

        Raises:
            ValidationFailed: ``semantic.repository`` when git does not answer.
        """
        wanted = self._host.artifact_type(subject.artifact_type or "").validators
        named = list(named_files(subject.output))
        if "changed_files" not in wanted or not named:
            return Verdict(passed=True)
        facts = subject.facts if isinstance(subject.facts, Mapping) else {}
        repository = Repository.of(self._host, cancel)
        if repository is None:
            return self._without_repository(named, facts)
        span = _span(facts)
        paths = [one.path for one in named if is_inside(one.path)]
        known = repository.in_commit(span[1], paths) if span else frozenset()
        changed = {field: self._changed(repository, field, span, facts) for field in {one.field for one in named}}
        findings = [judged(one, changed[one.field], lambda path: path in known or self._exists(path)) for one in named]
        return _verdict(findings)

    def _changed(
        self, repository: Repository, field: str, span: tuple[str, str] | None, facts: Mapping[str, Any]
    ) -> frozenset[str]:
        """``files`` speak of the range that was given, ``modified_files`` of the role's own work as well."""
        if span is not None:
            between = repository.between(*span)
            return between | repository.uncommitted() if field == "modified_files" else between
        return repository.uncommitted() | (_told_changes(facts) or frozenset())

    def _without_repository(self, named: list[Any], facts: Mapping[str, Any]) -> Verdict:
        told = _told_changes(facts)
        if told is not None:
            return _verdict([judged(one, told, self._exists) for one in named])
        found = [judged(one, frozenset(), self._exists) for one in named]
        foreign = [one for one in found if one is not None and one.code == "semantic.foreign_file"]
        message = "Only existence was checked: there is no git repository and no list of changed files"
        unknown = Finding(code="semantic.changes_unknown", severity="warning", message=message)
        return _verdict([*foreign, unknown])

    def _exists(self, path: str) -> bool:
        try:
            facts = self._files.facts(path)
        except (Refused, NotFound, OSError):  # outside of the project, below what is no folder, too long a name
            return False
        return facts is not None and facts.kind in {"file", "symlink"}


def _told_changes(facts: Mapping[str, Any]) -> frozenset[str] | None:
    given = facts.get("changed_files")
    return frozenset(map(decode_path, given)) if isinstance(given, (list, tuple)) else None


def _span(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    base, head = facts.get("base"), facts.get("head")
    if isinstance(base, str) and isinstance(head, str) and _COMMIT.fullmatch(base) and _COMMIT.fullmatch(head):
        return base, head
    return None


def _verdict(findings: Iterable[Finding | None]) -> Verdict:
    found = tuple(finding for finding in findings if finding is not None)
    return Verdict(passed=all(finding.severity != "error" for finding in found), findings=found)
