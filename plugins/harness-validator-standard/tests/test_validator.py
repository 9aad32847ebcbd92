from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.validator import ValidatorContract
from harness_hookspecs.contracts.waiting import FakeToken
from harness_hookspecs.errors import NotFound, ValidationFailed
from harness_hookspecs.host import Completed
from harness_hookspecs.validator import Finding, Subject, Validator, Verdict
from harness_validator_standard import harness_provide_validators


class NotesType:
    """An artifact type with one title and files."""

    name = "notes"
    validators: tuple[str, ...] = ("changed_files",)

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object"}

    def parse(self, output: Any) -> ParsedArtifact:
        if not isinstance(output, dict) or not isinstance(output.get("title"), str):
            finding = {"code": "payload.missing", "severity": "error", "path": "/title", "message": "Field required"}
            raise ValidationFailed("no notes", code="payload.invalid", findings=[finding])
        warning = Finding(code="artifact.trimmed", severity="warning", path="/title", message="trimmed")
        return ParsedArtifact({**output, "title": output["title"].strip()}, "success", (warning,))


class PlainType(NotesType):
    name = "plain"
    validators = ()


class BadType(NotesType):
    name = "bad"

    def parse(self, output: Any) -> ParsedArtifact:
        raise ValidationFailed("just no", where="/x")


TYPES = {"notes": NotesType(), "plain": PlainType(), "bad": BadType()}


def validator(name: str, host: FakeHost) -> Validator:
    offers = {offer.name: offer for offer in harness_provide_validators()}
    assert {offer.kind for offer in offers.values()} == {"validator"}
    built: Validator = offers[name].build(None, host)
    return built


def subject(output: Any, *, level: str = "semantic", kind: str = "notes", **facts: Any) -> Subject:
    return Subject(
        level=level,
        session_id="s", stage="notes", persona="writer", attempt=1, artifact_type=kind, output=output, facts=facts,
    )  # fmt: skip


class TestPayload(ValidatorContract):
    def subject(self) -> Validator:
        return validator("payload", FakeHost(self.folder, artifact_types=TYPES))

    def accepted(self) -> Subject:
        return self.about({"title": " a "}, artifact_type="notes")

    def rejected(self) -> Subject:
        return self.about({"title": 1}, artifact_type="notes")


class TestChangedFiles(ValidatorContract):
    def subject(self) -> Validator:
        return validator("changed_files", FakeHost(self.folder, artifact_types=TYPES))

    def accepted(self) -> Subject:
        return self.about({"title": "a", "files": ["a.py"]}, artifact_type="notes", facts={"changed_files": ["a.py"]})

    def rejected(self) -> Subject:
        return self.about({"title": "a", "files": ["b.py"]}, artifact_type="notes", facts={"changed_files": ["a.py"]})


# ------------------------------------------------------------------------------------------------- payload


@pytest.mark.req("B-60")
@pytest.mark.inv("I-24")
@pytest.mark.parametrize("output", ["It is all done.", None, [], {}, {"title": 7}])
def test_what_is_not_the_artifact_does_not_pass(tmp_path: Path, output: Any) -> None:
    host = FakeHost(tmp_path, artifact_types=TYPES)
    verdict = validator("payload", host).validate(subject(output, level="payload"), FakeToken())
    assert (verdict.passed, verdict.body) == (False, None)
    assert [(finding.code, finding.path) for finding in verdict.findings] == [("payload.missing", "/title")]


def test_the_body_is_the_normalised_one_and_warnings_are_kept(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, artifact_types=TYPES)
    verdict = validator("payload", host).validate(subject({"title": " a "}, level="payload"), FakeToken())
    assert (verdict.passed, verdict.body) == (True, {"title": "a"})
    assert [finding.code for finding in verdict.findings] == ["artifact.trimmed"]


def test_a_type_that_says_little_still_rejects(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, artifact_types=TYPES)
    verdict = validator("payload", host).validate(subject({}, level="payload", kind="bad"), FakeToken())
    assert verdict == Verdict(
        passed=False,
        findings=(Finding(code="payload.invalid", severity="error", path="/x", message="just no"),),
    )


@pytest.mark.inv("I-24")
def test_an_unknown_type_is_an_error_and_no_pass(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, artifact_types=TYPES)
    for name in ("payload", "changed_files"):
        judge = validator(name, host)
        with pytest.raises(NotFound):
            judge.validate(subject({}, level=judge.level, kind="gone"), FakeToken())


# ------------------------------------------------------------------------------------------- changed files


class Repository:
    """A repository with two commits: a.py changed, b.py untouched, old.py deleted, new ü.md added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.write({"a.py": "1", "b.py": "1", "old.py": "1", "docs/c.md": "1"})
        self.base = self.commit()
        (folder / "old.py").unlink()
        self.write({"a.py": "2", "new ü.md": "2"})
        self.head = self.commit()

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "m")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path, artifact_types=TYPES)


@pytest.fixture
def repository(host: FakeHost) -> Repository:
    return Repository(host.project_dir)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> tuple[FakeHost, Repository]:
    """A host and its repository for tests that only look."""
    host = FakeHost(tmp_path_factory.mktemp("unchanged"), artifact_types=TYPES)
    return host, Repository(host.project_dir)


def codes(host: FakeHost, body: Mapping[str, Any], **facts: Any) -> list[tuple[str, str]]:
    verdict = validator("changed_files", host).validate(subject({"title": "t", **body}, **facts), FakeToken())
    errors = [finding for finding in verdict.findings if finding.severity == "error"]
    assert verdict.passed == (not errors)
    return [(finding.code.removeprefix("semantic."), finding.path) for finding in verdict.findings]


@pytest.mark.req("B-69")
@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("a.py", None),
        ("./a.py", None),
        ("docs/../a.py", None),
        ("new ü.md", None),
        ("old.py", None),
        ("b.py", "untouched_file"),
        ("docs/c.md", "untouched_file"),
        ("docs", "foreign_file"),
        ("c.py", "foreign_file"),
        ("A.py", "foreign_file"),
        ("../project/a.py", "foreign_file"),
        ("/etc/passwd", "foreign_file"),
        ("--version", "foreign_file"),
        (":(top)a.py", "foreign_file"),
        ("*.py", "foreign_file"),
        ("b.py/x", "foreign_file"),
        ("", "foreign_file"),
        (".", "foreign_file"),
        ("a.py\0", "foreign_file"),
        ("x" * 5_000, "foreign_file"),
    ],
)
def test_a_named_file_was_changed(unchanged: tuple[FakeHost, Repository], named: str, code: str | None) -> None:
    host, repository = unchanged
    found = codes(host, {"files": ["a.py", named]}, base=repository.base, head=repository.head)
    assert found == ([] if code is None else [(code, "/files/1")])


@pytest.mark.req("B-69")
def test_the_repository_is_asked_and_not_the_facts_alone(host: FakeHost, repository: Repository) -> None:
    lie = ["b.py", "gone.py"]
    found = codes(host, {"files": lie}, base=repository.base, head=repository.head, changed_files=lie)
    assert found == [("untouched_file", "/files/0"), ("foreign_file", "/files/1")]


def test_modified_files_are_looked_for_in_the_working_tree(host: FakeHost, repository: Repository) -> None:
    repository.write({"b.py": "2", "fresh.py": "1", ".gitignore": "*.tmp\n", "x.tmp": "1"})
    named = ["b.py", "fresh.py", "a.py", "docs/c.md", "x.tmp"]
    assert codes(host, {"modified_files": named}) == [
        ("untouched_file", "/modified_files/2"),
        ("untouched_file", "/modified_files/3"),
        ("untouched_file", "/modified_files/4"),
    ]
    span = {"base": repository.base, "head": repository.head}
    assert codes(host, {"modified_files": named[:4]}, **span) == [("untouched_file", "/modified_files/3")]
    assert codes(host, {"files": ["b.py"]}, **span) == [("untouched_file", "/files/0")]


def test_before_the_first_commit_every_file_is_new(host: FakeHost) -> None:
    subprocess.run(["git", "init", "-q"], cwd=host.project_dir, check=True)
    (host.project_dir / "a.py").write_text("1", encoding="utf-8")
    assert codes(host, {"modified_files": ["a.py", "b.py"]}) == [("foreign_file", "/modified_files/1")]


def test_a_project_inside_a_repository_names_files_either_way(host: FakeHost) -> None:
    Repository(host.project_dir.parent)
    host.project_dir = host.project_dir.parent / "docs"
    repository = Repository.__new__(Repository)
    repository.folder = host.project_dir.parent
    base = repository.git("rev-parse", "HEAD")
    repository.write({"docs/c.md": "3"})
    head = repository.commit()
    assert codes(host, {"files": ["c.md", "docs/c.md"]}, base=base, head=head) == []
    assert codes(host, {"files": ["a.py", "d.md"]}, base=base, head=head) == [
        ("untouched_file", "/files/0"),
        ("foreign_file", "/files/1"),
    ]


def test_without_a_repository_the_facts_or_existence_must_do(host: FakeHost) -> None:
    (host.project_dir / "a.py").write_text("1", encoding="utf-8")
    body = {"files": ["a.py", "b.py"]}
    assert codes(host, body, changed_files=["b.py"]) == [("untouched_file", "/files/0")]
    assert codes(host, body) == [("foreign_file", "/files/1"), ("changes_unknown", "")]
    assert codes(host, {"files": ["a.py"]}) == [("changes_unknown", "")]


def test_a_commit_that_is_not_there_is_an_error_and_no_pass(host: FakeHost, repository: Repository) -> None:
    with pytest.raises(ValidationFailed) as caught:
        codes(host, {"files": ["a.py"]}, base="0" * 40, head=repository.head)
    assert caught.value.code == "semantic.repository"


def test_a_type_that_does_not_want_the_check_passes_without_it(host: FakeHost) -> None:
    judge = validator("changed_files", host)
    assert judge.validate(subject({"files": ["gone.py"]}, kind="plain"), FakeToken()) == Verdict(passed=True)


def test_nothing_of_the_repository_is_run(host: FakeHost, repository: Repository, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.trap.textconv", "core.pager"):
        repository.git("config", name, str(trap))
    for name in ("clean", "process", "smudge"):
        repository.git("config", f"filter.trap.{name}", str(trap))
    repository.git("config", "filter.trap.required", "true")
    repository.write({".gitattributes": "* diff=trap filter=trap\n", "a.py": "3"})
    assert codes(host, {"modified_files": ["a.py"]}) == []
    assert not (tmp_path / "sprung").exists()
    repository.git("config", "filter.a=b.clean", str(trap))  # git itself could not be told to leave this one out
    with pytest.raises(ValidationFailed):
        codes(host, {"modified_files": ["a.py"]})


def test_a_submodule_is_not_looked_into(host: FakeHost, repository: Repository, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    Repository(inner)
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "part")
    repository.commit()
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    repository.git("-C", "part", "config", "filter.trap.clean", str(trap))
    repository.write({"part/.gitattributes": "* filter=trap\n", "part/a.py": "3", "a.py": "3"})
    assert codes(host, {"modified_files": ["a.py"]}) == []
    assert not (tmp_path / "sprung").exists()


def test_a_foreign_file_comes_with_what_was_changed(host: FakeHost, repository: Repository) -> None:
    judge = validator("changed_files", host)
    facts = {"base": repository.base, "head": repository.head}
    verdict = judge.validate(subject({"title": "t", "files": ["new u.md", "zzz"]}, **facts), FakeToken())
    assert [finding.hint for finding in verdict.findings] == ["changed: new ü.md", "changed: a.py, new ü.md, old.py"]


@pytest.mark.req("B-69")
def test_a_name_that_is_not_utf8_is_judged_and_told_as_the_tools_write_it(
    host: FakeHost, repository: Repository
) -> None:
    repository.write({os.fsdecode(b"n\xff.txt"): "1"})
    span = {"base": repository.head, "head": repository.commit()}
    judge = validator("changed_files", host)
    verdict = judge.validate(subject({"title": "t", "files": ["bytes:n%FF.txt", "zzz"]}, **span), FakeToken())
    [finding] = verdict.findings
    assert (finding.path, finding.hint) == ("/files/1", "changed: bytes:n%FF.txt")


@pytest.mark.req("B-69")
def test_without_a_repository_such_a_name_is_found_among_the_facts(host: FakeHost) -> None:
    assert codes(host, {"files": ["bytes:n%FF.txt"]}, changed_files=["bytes:n%FF.txt"]) == []


STOPPED = {
    "killed": Completed(-9, b"", b"", timed_out=False, truncated=False),
    "too slow": Completed(-15, b"", b"", timed_out=True, truncated=False),
    "cut off": Completed(0, b"", b"", timed_out=False, truncated=True),
}


@pytest.mark.req("B-69")
@pytest.mark.parametrize("answer", STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("asked", ["--show-prefix", "config", "--quiet", "diff"])
def test_git_that_was_stopped_has_not_said_no(
    host: FakeHost, repository: Repository, monkeypatch: pytest.MonkeyPatch, asked: str, answer: Completed
) -> None:
    run = type(host.ports.processes).run

    def stopped(self: Any, argv: list[str], **more: Any) -> Completed:
        return answer if asked in argv and (asked != "config" or "--get-regexp" in argv) else run(self, argv, **more)

    monkeypatch.setattr(type(host.ports.processes), "run", stopped)
    with pytest.raises(ValidationFailed) as caught:
        codes(host, {"modified_files": ["a.py"]})
    assert (caught.value.code, "gave no answer: it " in caught.value.message) == ("semantic.repository", True)
