"""The quickstart's job with a scripted model, whose replies no grammar keeps to anything: the checks have to do it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from first_run import EXAMPLE, TEXT, Setup, make_repository
from harness_core import Host
from harness_core.cli.main import main

NOTES: dict[str, Any] = {
    "summary": "It counts lines too.",
    "highlights": ["Count the lines of a text when asked to"],
    "files": ["README.md", "tally.py"],
    "risks": [],
}
CHANGED = ["README.md", "tally.py", "test_tally.py"]

Run = Callable[..., "Session"]


class Session:
    """A finished session: its document, and its events by type."""

    def __init__(self, host: Host, document: Mapping[str, Any]) -> None:
        self.document = document
        self.events = [(event.type, json.loads(event.payload)) for event in host.events(document["id"])]
        self.notes = [json.loads(host.artifact(ref)) for ref in document["artifacts"]]
        self.prompts = [host.prompt(document["id"], role="worker.ai-generate")]

    def all(self, name: str) -> list[dict[str, Any]]:
        """The payloads of a type."""
        return [payload for type_, payload in self.events if type_ == name]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The quickstart's project, as it makes it."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    setup = Setup(tmp_path / "venv", print)
    make_repository(setup)
    shutil.copytree(EXAMPLE / ".harness", setup.project / ".harness")
    return setup.project


@pytest.fixture
def run(project: Path) -> Run:
    """Runs the job with notes for each stage, in order of its attempts; ``diff=False`` tells it of commits only."""

    def run_one(*drafts: Any, diff: bool = True) -> Session:
        folder = project / ".harness"
        replies = [{"when": {"stage": "draft", "attempt": n}, "json": one} for n, one in enumerate(drafts, start=1)]
        replies.append({"when": {"stage": "review"}, "json": NOTES})
        script = {"schema": "harness.script/1", "replies": replies}
        (folder / "replies.yaml").write_text(json.dumps(script), encoding="utf-8")
        model = "default: scripted\nmodels: {scripted: {provider: scripted, script: .harness/replies.yaml}}\n"
        (folder / "models.yaml").write_text(model, encoding="utf-8")
        stages = (folder / "stages.yaml").read_text(encoding="utf-8")
        if not diff:
            stages = re.sub(r" *- \{kind: git_diff.*\n", "", stages)
        (folder / "stages.yaml").write_text(stages, encoding="utf-8")
        assert main(["trust", str(project)]) == 0
        with Host.open(project) as host:
            return Session(host, host.run(TEXT))

    return run_one


def test_the_job_ends_with_release_notes_made_of_the_repository(run: Run) -> None:
    session = run(NOTES)
    assert (session.document["status"], session.notes) == ("completed", [NOTES, NOTES])
    assert [taken["target"] for taken in session.all("transition.taken")] == ["review", "completed"]
    assert {taken["rule"] for taken in session.all("transition.taken")} == {'artifact.status == "success"'}
    assert session.all("stage.entered")[0]["max_attempts"] == 2


def test_the_model_reads_the_log_and_the_changes_and_may_name_changed_files_only(run: Run) -> None:
    [prompt] = run(NOTES).prompts
    text = json.dumps(prompt, ensure_ascii=False)
    for said in ("- Fix empty texts: they have no words", "+++ b/tally.py", "Result of draft", TEXT):
        assert said in text
    assert prompt["response_schema"]["properties"]["files"]["items"]["enum"] == CHANGED


def test_without_a_tag_the_whole_history_is_told_from_the_first_commit_on(run: Run, project: Path) -> None:
    git = ["git", "-C", str(project)]
    tags = subprocess.run([*git, "tag"], check=True, capture_output=True, text=True).stdout.split()
    subjects = subprocess.run([*git, "log", "--format=%s"], check=True, capture_output=True, text=True).stdout
    subprocess.run([*git, "tag", "--delete", *tags], check=True, capture_output=True)
    session = run({**NOTES, "files": ["LICENSE", "tally.py"]})  # LICENSE came with the first commit
    assert session.document["status"] == "completed"
    text = json.dumps(session.prompts[0], ensure_ascii=False)
    assert subjects.splitlines()[-1] in text
    assert "LICENSE" in session.prompts[0]["response_schema"]["properties"]["files"]["items"]["enum"]


WRONG = {
    "a file that is not there": ("src/magic.py", "semantic.foreign_file"),
    "a file outside": ("../secret", "semantic.foreign_file"),
    "a file that was not changed": ("LICENSE", "semantic.untouched_file"),
}


@pytest.mark.req("B-69")
@pytest.mark.parametrize(("file", "code"), WRONG.values(), ids=WRONG)
def test_a_file_that_was_not_changed_fails_the_check_against_the_repository(run: Run, file: str, code: str) -> None:
    session = run({**NOTES, "files": ["tally.py", file]}, {**NOTES, "files": [file]}, diff=False)
    failed = session.all("validation.failed")
    assert [(one["level"], one["findings"][0]["code"]) for one in failed] == [("semantic", code)] * 2
    assert [one["findings"][0]["path"] for one in failed] == ["/files/1", "/files/0"]
    assert "README.md, tally.py, test_tally.py" in failed[0]["findings"][0]["hint"]
    assert (session.document["status"], session.notes) == ("failed", [])


@pytest.mark.parametrize("file", ["src/magic.py", "LICENSE"])
def test_where_the_changed_files_are_known_such_an_answer_is_refused_at_once(run: Run, file: str) -> None:
    session = run({**NOTES, "files": [file]}, {**NOTES, "files": [file]})
    assert session.document["status"] == "failed"
    assert file in session.document["failure"]["message"]
    assert session.notes == []


@pytest.mark.req("B-69")
def test_the_second_attempt_is_told_what_was_wrong(run: Run) -> None:
    session = run({**NOTES, "files": ["LICENSE"]}, NOTES, diff=False)
    assert (session.document["status"], len(session.notes)) == ("completed", 2)
    [retried] = session.all("retry.scheduled")
    assert "LICENSE was not changed" in json.dumps(retried)


def test_a_file_that_is_named_twice_is_merged_and_leaves_a_warning(run: Run) -> None:
    session = run({**NOTES, "files": ["tally.py", "tally.py"]})
    assert session.document["status"] == "completed"
    assert session.notes[0]["files"] == ["tally.py"]
    warnings = [finding for passed in session.all("validation.passed") for finding in passed.get("findings", ())]
    assert [(one["code"], one["severity"]) for one in warnings] == [("artifact.duplicates_merged", "warning")]
    assert "tally.py" in warnings[0]["message"]
