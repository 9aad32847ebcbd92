"""``harness demo``: the main job from nothing, without a network, and the same job again by ``harness run``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness_core import Host
from harness_core.cli.demo import TEXT
from harness_core.cli.main import main
from harness_core.shell.example import make
from harness_core.shell.example.make import made_alone
from harness_core.shell.ports import make_ports

# Read by every Python below it: each way to a network that is not a local socket ends in an error.
NO_NETWORK = """
import socket, sys

def refuse(*arguments):
    raise AssertionError("the network was used")

connect = socket.socket.connect
socket.socket.connect = lambda one, to: connect(one, to) if one.family == socket.AF_UNIX else refuse()
socket.getaddrinfo = refuse
print("no network", file=sys.stderr)
"""


class Ran(NamedTuple):
    """How a command went; ``document`` is what stood on standard output."""

    exit_code: int
    document: dict[str, Any]
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own empty folders; the person stands in one more, which is no project."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path


@pytest.fixture
def command(home: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with ``--json``."""

    def run(*words: str) -> Ran:
        capfd.readouterr()
        code = main([*words, "--json"])
        out, err = capfd.readouterr()
        return Ran(code, json.loads(out), err)

    return run


def events(project: Path, session: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    with Host.open(project) as host:
        return [(event.type, json.loads(event.payload)) for event in host.events(session["id"])]


@pytest.mark.req("B-77")
def test_the_demonstration_does_the_main_job_without_a_network(home: Path) -> None:
    (home / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    call = [sys.executable, "-m", "harness_core.cli.main", "demo", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home), *filter(None, sys.path)])}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False, timeout=60)
    print(done.stderr)
    assert (done.returncode, "no network" in done.stderr) == (0, True)
    session = json.loads(done.stdout)
    project = home / "cache" / "harness" / "demo"
    assert (session["schema"], session["status"]) == ("harness.session/1", "completed")
    assert session["project"] == str(project)
    assert (project / "RELEASE_NOTES.md").read_text(encoding="utf-8").startswith("# tally 1.1\n")
    happened = events(project, session)
    [answer] = [payload for name, payload in happened if name == "approval.granted"]
    assert (answer["kind"], answer["scope"]) == ("policy", "once")
    [refused] = [payload for name, payload in happened if name == "validation.failed"]
    assert (refused["level"], refused["findings"][0]["message"]) == ("semantic", "LICENSE was not changed")


def test_a_run_in_the_same_folder_is_the_same_job(home: Path, command: Command) -> None:
    project = home / "new" / "demo"
    demonstrated = command("demo", str(project))
    ran = command("--project", str(project), "run", TEXT)
    assert (demonstrated.exit_code, ran.exit_code) == (0, 0)
    assert f"project {project}" in demonstrated.err
    one, two = (events(project, ran.document) for ran in (demonstrated, ran))
    assert [name for name, _ in one] == [name for name, _ in two]
    assert demonstrated.document["artifacts"] == ran.document["artifacts"]


def test_the_demonstration_is_repeated_in_its_folder_and_keeps_what_a_person_changed(command: Command) -> None:
    first = command("demo", "here").document
    replies = Path("here/.harness/replies.yaml")
    replies.write_text(replies.read_text().replace("when asked to", "if wanted"), encoding="utf-8")
    changed = replies.read_text()
    Path("here/.harness/models.yaml").unlink()
    second = command("demo", "here").document
    assert (first["status"], second["status"]) == ("completed", "completed")
    assert first["id"] != second["id"]
    assert replies.read_text() == changed


def test_settings_that_a_person_changed_are_not_trusted_by_a_demonstration(command: Command) -> None:
    assert command("demo", "here").exit_code == 0
    policies = Path("here/.harness/policies.yaml")
    policies.write_text(policies.read_text().replace("T4: deny", "T4: auto"), encoding="utf-8")
    ran = command("demo", "here")
    assert (ran.exit_code, ran.document["code"]) == (3, "config.untrusted")


def test_a_demonstration_that_another_process_makes_is_waited_for(
    home: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports, here = make_ports("threads"), Path("here").resolve()
    (here / ".harness").mkdir(parents=True)  # half made
    with made_alone(here, ports, home / "state" / "harness"), monkeypatch.context() as patch:
        patch.setattr(make, "_TIMEOUT_SECONDS", 0.0)
        ran = command("demo", "here")
        assert (ran.exit_code, ran.document["code"]) == (5, "demo.locked")
        (here / ".harness").rmdir()
    assert command("demo", "here").exit_code == 0


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_folder_that_holds_something_else_is_left_alone(command: Command, kind: str) -> None:
    taken = Path("taken")
    if kind == "folder":
        taken.mkdir()
        (taken / "mine").write_text("mine")
    else:
        taken.write_text("mine")
    ran = command("demo", "taken")
    assert (ran.exit_code, ran.document["code"]) == (3, "demo.folder_taken")
    assert ran.err.count(str(taken.resolve())) == 1
    assert not (taken / ".harness").exists()


def test_without_git_the_demonstration_says_what_to_install(
    home: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    ran = command("demo")
    assert (ran.exit_code, ran.document["code"]) == (4, "git.not_found")
    assert "install git" in ran.document["hint"]


def test_the_demonstration_lies_in_no_other_repository(command: Command) -> None:
    subprocess.run(["git", "init", "--quiet", "."], check=True)
    assert command("demo", "inside").exit_code == 0
    assert Path("inside/.git").is_dir()
