"""One approval, several places to answer it from: one answer stands, and everybody else is told whose it was."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from harness_core import Host
from tests.reference import HARNESS, POLICIES, Site, calls, notes, one_stage, payloads, says, types_of, write_site

# A pseudo-terminal is forked here, while threads of hosts before may still end; the child runs another program at once.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

ASKS = {**POLICIES, "approver": ["policy", "terminal"]}
TIMEOUT_SECONDS = 20


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    replies = [calls(("network", {"note": "asked"})), says("done")]
    return write_site(tmp_path, stages=one_stage(), replies=replies, policies=ASKS).enter(monkeypatch)


class Terminal:
    """A person's terminal with the command running in it."""

    def __init__(self, site: Site, *words: str) -> None:
        self.screen = io.StringIO()
        self.child = pexpect.spawn(
            sys.executable, [*HARNESS[1:], "--plain", *words], cwd=str(site.project), dimensions=(40, 160),
            env=site.process_env(TERM="dumb"), timeout=TIMEOUT_SECONDS, encoding="utf-8",
        )  # fmt: skip
        self.child.logfile_read = self.screen

    def sees(self, text: str) -> None:
        self.child.expect_exact(text)

    def types(self, text: str) -> None:
        self.child.sendline(text)

    def ends(self) -> int:
        """Its exit code, once it has ended."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        code: int | None = self.child.exitstatus
        assert code is not None
        return code


@pytest.fixture
def asked(site: Site, usual_signals: None) -> Iterator[Terminal]:
    """A run in a terminal whose person is being asked."""
    terminal = Terminal(site, "run", "Go.", "--on-ask", "ask")
    terminal.sees("Approval needed")
    terminal.sees("> ")
    yield terminal
    terminal.child.close(force=True)


def command(site: Site, *words: str) -> tuple[int, Any]:
    """The command in another process."""
    done = subprocess.run(
        [*HARNESS, *words, "--json"], cwd=site.project, env=site.process_env(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


def only_approval(site: Site) -> str:
    code, listed = command(site, "approvals")
    assert (code, len(listed["items"])) == (0, 1)
    return str(listed["items"][0]["id"])


@pytest.mark.inv("I-23")
def test_an_answer_from_elsewhere_ends_the_question_and_names_who_gave_it(site: Site, asked: Terminal) -> None:
    approval = only_approval(site)
    code, answered = command(site, "approvals", "answer", approval, "--approve")
    assert (code, answered["stands"]) == (0, True)
    asked.sees(f"Answered elsewhere: answered by {answered['by']}")
    assert asked.ends() == 0
    told = asked.screen.getvalue()
    after = [told.index(what) for what in ("Answered elsewhere", " granted by ", "effects_network started")]
    assert after == sorted(after)  # the question is closed first
    with Host.open(site.project) as host:
        assert "role.suspended" not in types_of(host.events("@last"))  # and the call went on where it was
    assert notes(site) == ["asked"]
    code, late = command(site, "approvals", "answer", approval, "--deny")
    assert (code, late["stands"]) == (1, False)
    assert late["by"] == answered["by"]


@pytest.mark.inv("I-23")
def test_the_answer_typed_first_stands_and_the_other_terminal_is_told(site: Site, asked: Terminal) -> None:
    approval = only_approval(site)
    asked.types("n too risky")
    assert asked.ends() == 0  # the role goes on without it
    code, late = command(site, "approvals", "answer", approval, "--approve")
    assert (code, late["stands"]) == (1, False)
    assert notes(site) == []
    with Host.open(site.project) as host:
        [denied] = payloads(host.events("@last"), "approval.denied")
        assert late["by"] == denied["by"]
        assert denied["say"] == "too risky"


@pytest.mark.inv("I-23")
def test_a_question_left_open_is_answered_later_from_anywhere(site: Site, asked: Terminal) -> None:
    approval = only_approval(site)
    asked.types("q")
    asked.sees("Left open")
    assert asked.ends() == 10
    assert command(site, "approvals", "answer", approval, "--approve")[0] == 0
    code, document = command(site, "resume", "@last")
    assert (code, document["status"]) == (0, "completed")
    assert notes(site) == ["asked"]


@pytest.mark.inv("I-20")
def test_ctrl_c_at_the_question_leaves_it_open(site: Site, asked: Terminal) -> None:
    asked.child.sendintr()
    asked.sees("Not answered: the session stops.")
    assert asked.ends() == 130
    assert "elsewhere" not in asked.screen.getvalue()
    with Host.open(site.project) as host:
        assert host.session("@last")["status"] == "awaiting_approval"
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"])
        assert host.resume("@last")["status"] == "completed"
    assert notes(site) == ["asked"]


@pytest.mark.inv("I-23", "I-20")
def test_a_terminal_that_is_killed_while_it_asks_leaves_the_question_open(site: Site, asked: Terminal) -> None:
    asked.child.kill(9)
    asked.child.wait()
    again = Terminal(site, "resume", "@last", "--on-ask", "ask")
    again.sees("Approval needed")
    again.sees("> ")
    again.types("y")
    assert again.ends() == 0
    screen = again.screen.getvalue()
    assert screen.startswith("session ")
    assert len(re.findall(r"session [0-9a-f]{8}-", screen)) == 1  # in full; a short id may begin alike
    assert notes(site) == ["asked"]


@pytest.mark.inv("I-23")
def test_of_two_people_who_answer_what_nobody_runs_one_is_told_who_was_first(site: Site) -> None:
    assert command(site, "run", "Go.", "--on-ask", "suspend")[0] == 10
    approval = only_approval(site)
    people = [
        subprocess.Popen(
            [*HARNESS, "approvals", "answer", approval, verdict, "--json"], cwd=site.project,
            env=site.process_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )
        for verdict in ("--approve", "--deny")
    ]  # fmt: skip
    told = [json.loads(person.communicate(timeout=TIMEOUT_SECONDS)[0]) for person in people]
    assert [person.returncode for person in people] == [0 if one["stands"] else 1 for one in told]
    [first] = [one for one in told if one["stands"]]
    [second] = [one for one in told if not one["stands"]]
    assert second["by"] == first["by"]
    assert first["by"].endswith(f"(pid {people[told.index(first)].pid})")  # two of one name are told apart
    code, document = command(site, "resume", "@last")
    assert (code, document["status"]) == (0, "completed")
    assert notes(site) == (["asked"] if first["decision"] == "approve" else [])
