"""What people are told to type next: each command that is offered has something to show, and hints stand alone."""

from __future__ import annotations

import shlex
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_core.kernel.projections.context import find_visit
from harness_hookspecs.errors import NotFound
from tests.reference import Site, one_stage, says, trust, write_site

PROBE = {"bind": {"worker.ai-generate": "role-probe:raising"}}


def _site(root: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Site:
    given = {"stages": one_stage(), "replies": [says("done")], **more}
    return write_site(root, **given).enter(monkeypatch)


def _offered(text: str) -> list[list[str]]:
    """The commands that a session's text offers, as words."""
    _, _, after = text.partition("\nnext  ")
    return [shlex.split(line.partition("#")[0])[1:] for line in after.splitlines()]


NO_CONTEXT = {"stages": one_stage(requirements=["telepathy"])}
NO_QUESTION = {"harness": PROBE, "stages": one_stage(on_failure="failed", retry={"strategy": "fail_fast"})}
NO_ANSWER = {"replies": [], "stages": one_stage(on_failure="failed", retry={"strategy": "fail_fast"})}


@pytest.mark.parametrize(
    ("site", "look"),
    [(NO_CONTEXT, None), (NO_QUESTION, ["context", "show"]), (NO_ANSWER, ["prompt", "show"])],
    ids=["no context", "no question", "no answer"],
)
def test_what_a_failed_session_offers_to_look_at_is_there(
    site: Any,
    look: list[str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _site(tmp_path, monkeypatch, **site)
    assert main(["run", "x"]) != 0
    ran = _offered(capsys.readouterr().out)
    assert main(["sessions", "show", "@last"]) == 0
    assert _offered(capsys.readouterr().out) == ran
    for words in ran:
        assert main(words) == 0, words
    assert [words[:2] for words in ran[2:]] == ([look] if look else [])


def test_a_prompt_that_is_none_is_answered_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _site(tmp_path, monkeypatch, **NO_CONTEXT)
    main(["run", "x"])
    capsys.readouterr()
    assert main(["prompt", "show", "@last"]) == 4
    said, hint = capsys.readouterr().err.splitlines()
    assert said == "harness: no model was asked"
    assert hint.startswith("  harness events ")


def test_the_hint_of_a_failed_run_is_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _site(tmp_path, monkeypatch, **NO_ANSWER)
    main(["run", "x"])
    how, hint, following, *_ = capsys.readouterr().out.splitlines()
    assert how.startswith("session ") and "failed: script.exhausted: " in how
    assert hint == "  Add a reply, or one with a fitting when."
    assert following.startswith("next  ")


def test_a_listing_of_all_projects_names_the_project_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = _site(tmp_path, monkeypatch)
    main(["run", "x"])
    other = tmp_path / "other"
    shutil.copytree(site.project, other)
    trust(site._replace(project=other))
    monkeypatch.chdir(other)
    main(["run", "x"])
    capsys.readouterr()
    assert main(["sessions", "--all"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["id", "project"]
    assert [row.split()[1] for row in rows] == ["other", "project"]
    assert main(["sessions"]) == 0
    assert "project" not in capsys.readouterr().out.splitlines()[0]


def test_a_context_without_a_visit_is_the_only_one_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _site(tmp_path, monkeypatch)
    assert main(["run", "x"]) == 0
    template = files("harness_core.shell.config.templates").joinpath("compression.yaml").read_text("utf-8")
    named = next(line.split("harness ")[1].split() for line in template.splitlines() if "  harness " in line)
    shown = []
    for words in (named, [*named, "@last"], [*named, "@last", "work#0"]):
        capsys.readouterr()
        assert main(words) == 0, words
        shown.append(capsys.readouterr().out)
    assert shown[0].startswith("work#0  visit ")
    assert shown == [shown[0]] * 3


def test_a_session_that_came_to_no_stage_has_no_context() -> None:
    with pytest.raises(NotFound) as caught:
        find_visit([], "")
    assert (caught.value.message, caught.value.hint) == ("the session has no visit", "its visits: none yet")
    assert caught.value.facts["visits"] == []


BEGIN = 'start one: harness run "TEXT"'
ELSEWHERE = "1 session of other projects: harness sessions --all lists them, --project DIR looks there; "


@pytest.mark.parametrize("words", [["report"], ["events"], ["sessions", "show", "@last"]], ids=" ".join)
def test_who_asks_for_the_last_of_no_sessions_is_told_where_there_are_some(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = _site(tmp_path, monkeypatch)
    bare = tmp_path / "bare"
    bare.mkdir()

    def said(folder: Path) -> list[str]:
        monkeypatch.chdir(folder)
        capsys.readouterr()
        assert main(words) == 4
        return capsys.readouterr().err.splitlines()

    assert said(site.project) == ["harness: there is no session yet", f"  {BEGIN}"]
    assert said(bare) == ["harness: there is no session yet", "  harness init makes a project here"]
    monkeypatch.chdir(site.project)
    main(["run", "x"])
    assert said(bare) == [
        "harness: there is no project here, and so no session of it",
        f"  {ELSEWHERE}harness init makes a project here",
    ]
    (bare / ".harness").mkdir()
    assert said(bare) == ["harness: this project has no session yet", f"  {ELSEWHERE}{BEGIN}"]
