"""What a stage's model is to read is gathered from the world, and what cannot be is said once, with the place."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from tests.reference import one_stage, says

TWICE = {"strategy": "retry", "max_attempts": 2}


def sourced(*sources: dict[str, Any], **stage: Any) -> dict[str, Any]:
    return one_stage(context={"sources": list(sources)}, **stage)


@pytest.mark.parametrize("source", [{"kind": "tree"}, {"kind": "files", "glob": "*.txt"}])
def test_a_file_whose_name_is_not_utf8_is_told_to_the_model(play: Any, source: dict[str, str]) -> None:
    session = play(says("done"), stages=sourced(source))
    (session.site.project / os.fsdecode(b"n\xff.txt")).write_text("content", encoding="utf-8")
    assert session.run()["status"] == "completed"
    assert "bytes:n%FF.txt" in str(session.host.prompt("@last"))


def test_a_source_that_is_not_there_is_looked_for_once_and_named_with_its_place(play: Any) -> None:
    session = play(says("done"), stages=sourced({"kind": "git_log"}, retry=TWICE))
    failure = session.run()["failure"]
    assert session.types().count("context.failed") == 1
    assert failure["code"] == "context.source_missing"
    assert "context source 1 (git_log, .harness/stages.yaml:" in failure["message"]
    assert "git init" in failure["hint"]


@pytest.mark.req("A-31", "B-139")
def test_a_cancel_reaches_what_is_gathered(play: Any) -> None:
    session = play(says("done"), stages=sourced({"kind": "git_log"}, retry=TWICE))
    project = session.site.project
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    commit = ["commit", "-q", "--allow-empty", "-m", "m"]
    for words in (["init", "-q"], commit, commit):
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)
    os.mkfifo(project / ".git" / "refs" / "tags" / "stuck")  # git waits for somebody to write there
    found = session.host.start("Go.")
    session.until("context.requested")
    session.host.cancel(found)
    assert session.host.wait(found, timeout_seconds=20)["status"] == "cancelled"
