"""``harness run`` on a terminal: a person is asked there, and Ctrl-C leaves the question open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from harness_core.cli.main import main
from tests.reference import HARNESS, REFERENCE, Site, write_reference

ASKING = {"tiers": {"T2": "auto"}, "approver": ["policy", "terminal"]}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The reference session, whose T3 call a person at the terminal may allow."""
    return write_reference(tmp_path, policies=ASKING).enter(monkeypatch)


@pytest.fixture
def terminal(site: Site, usual_signals: None) -> Iterator[Callable[..., Any]]:
    """Starts the command on a terminal."""
    started: list[Any] = []

    def begin(*words: str) -> Any:
        child = pexpect.spawn(
            HARNESS[0], [*HARNESS[1:], *words], cwd=str(site.project), env=site.process_env(), encoding="utf-8",
            timeout=30, dimensions=(40, 120),
        )  # fmt: skip
        started.append(child)
        return child

    yield begin
    for child in started:
        child.close(force=True)


def _end(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


@pytest.mark.inv("I-38")
def test_a_person_is_asked_and_ctrl_c_leaves_the_question_open(
    terminal: Callable[..., Any], site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    child = terminal("run", REFERENCE)
    child.expect("effects_network")
    child.expect("\n> ")
    child.sendintr()
    assert _end(child) == 130
    assert main(["sessions", "show", "@last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "awaiting_approval"
    assert not any(line["tool"] == "effects_network" for line in site.effects())
    child = terminal("resume", "@last")
    child.expect("\n> ")
    child.sendline("y")
    assert _end(child) == 0
    assert [line["tool"] for line in site.effects()].count("effects_network") == 1
