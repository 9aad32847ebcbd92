"""Names that are not UTF-8: a project may have one, and what repeats one is strict JSON all the same."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_core.cli.session_text import project_names
from harness_core.shell.config.folders import command_word
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.kit.paths import encode_path
from tests.reference import Site, one_stage, says, write_site

ODD = os.fsdecode(b"b\xff")
Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def harness(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with ``--json``; gives its exit code and its one document, which a strict parser has read."""

    def run(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*words, "--json"])
        return code, loads(capsys.readouterr().out)

    return run


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project, and with it all folders of the person, below one whose name is not UTF-8."""
    stages = one_stage(context={"sources": [{"kind": "tree"}]})
    return write_site(tmp_path / ODD, stages=stages, replies=[says("done", when={"turn": 1})]).enter(monkeypatch)


LOOKS = {
    "trust": ("harness.trust/1", ["trust"]),
    "config check": ("harness.config_check/1", ["config", "check"]),
    "config show": ("harness.config/1", ["config", "show"]),
    "sessions show": ("harness.session/1", ["sessions", "show"]),
    "replay": ("harness.replay/1", ["replay"]),
    "context show": ("harness.context/1", ["context", "show", "@last", "work#0"]),
    "doctor": ("harness.doctor/1", ["doctor"]),
    "init": ("harness.init/1", ["init", "--force"]),
    "plugins list": ("harness.plugins/1", ["plugins", "list"]),
    "events verify": ("harness.verify/1", ["events", "verify"]),
}


@pytest.mark.parametrize(("schema", "words"), LOOKS.values(), ids=LOOKS)
def test_a_project_whose_name_is_not_utf8_is_run_and_looked_at(
    odd: Site, harness: Command, schema: str, words: list[str]
) -> None:
    code, session = harness("run", "Go.")
    project = encode_path(odd.project)
    assert (code, session["status"], session["project"]) == (0, "completed", project)
    code, document = harness(*words)
    assert (code, document["schema"]) == (0, schema)
    assert document.get("project", project) == project


def test_sessions_belong_to_the_project_of_exactly_that_name(
    odd: Site, harness: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = harness("run", "Go.")
    _, mine = harness("sessions")
    assert [one["id"] for one in mine["items"]] == [session["id"]]
    other = odd.project.with_name(os.fsdecode(b"project\xfe"))
    (other / ".harness").mkdir(parents=True)
    monkeypatch.chdir(other)
    _, others = harness("sessions")
    assert (others["items"], others["hidden"]["other_projects"]) == ([], 1)


def test_a_table_calls_such_a_project_by_the_name_of_its_folder() -> None:
    items = [{"project": project} for project in ("bytes:/a/b%FF", "/a/c")]
    assert project_names(items) == {"bytes:/a/b%FF": "bytes:b%FF", "/a/c": "c"}


def test_trust_in_such_a_project_is_asked_for_by_a_word_that_a_shell_takes(odd: Site, harness: Command) -> None:
    odd.project.joinpath(".harness", "policies.yaml").write_text("tiers: {T3: auto}\n", encoding="utf-8")
    code, error = harness("run", "Go.")
    assert (code, error["code"]) == (3, "config.untrusted")
    assert error["hint"].endswith(f"harness trust {command_word(odd.project)}")
    assert encode_path(odd.project) in error["message"]
    assert harness("trust")[0] == 0
    with Host.open(odd.project) as host:
        assert host.run("Go.")["status"] == "completed"


@pytest.mark.parametrize("name", ["a", "a b", "a'b", "\u00fc"])
def test_a_folder_is_a_word_of_a_command(name: str) -> None:
    assert shlex.split(command_word(Path(name))) == [name]


def test_a_folder_that_is_not_utf8_is_a_word_of_a_command_too() -> None:
    assert command_word(Path("/a b'") / ODD) == r"$'/a\040b\047/b\377'"


def test_the_demonstration_may_be_made_in_such_a_folder(odd: Site, harness: Command) -> None:
    code, session = harness("demo", f"{ODD}/x")
    assert (code, session["status"]) == (0, "completed")
    assert session["project"].endswith("/project/b%FF/x")


REFUSED = {
    "a session": ["sessions", "show", "\udcff"],
    "a session long enough": ["sessions", "show", "\udcff\udcff\udcff\udcff"],
    "a context": ["context", "show", "@last", "\udcff"],
    "a reference": ["artifacts", "get", "\udcff\udcff\udcff\udcff"],
    "a key": ["config", "explain", "\udcff"],
    "a project": ["--project", "/tmp/\udcff", "sessions"],
    "an option": ["sessions", "--\udcff"],
    "a command": ["\udcff"],
    "a plugin": ["plugins", "inspect", "\udcff"],
    "a model": ["models", "probe", "\udcff"],
    "an event": ["events", "trace", "\udcff\udcff\udcff\udcff"],
    "the events of a session": ["events", "show", "\udcff\udcff\udcff\udcff"],
    "an approval": ["approvals", "show", "\udcff\udcff\udcff\udcff"],
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_a_refusal_that_repeats_a_word_which_is_not_utf8_is_strict_json(
    odd: Site, harness: Command, words: list[str]
) -> None:
    assert main(["run", "Go."]) == 0
    code, error = harness(*words)
    assert (code in (2, 4), error["schema"]) == (True, "harness.error/1")
