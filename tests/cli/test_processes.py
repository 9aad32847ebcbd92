"""Sessions in processes of their own: signals, and pause, cancel and follow from another one."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from tests.reference import HARNESS, Site, write_site

ANSWER = {"json": {"text": "Done."}, "usage": {"input_tokens": 1, "output_tokens": 1}}
REPLIES = [
    {"when": {"contains": "QUICK"}, "delay_ms": 600, **ANSWER},
    {"when": {"contains": "LATER"}, "delay_ms": 4_000, **ANSWER},  # two commands have come and gone by then
    {"when": {"contains": "ENDLESS"}, "delay_ms": 60_000, **ANSWER},
]
STAGES = {"stages": {"only": {"role": "worker", "on_success": "completed"}}}
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A model that answers late; a cancel waits for it a fifth of a second only."""
    found = write_site(tmp_path, stages=STAGES, replies=REPLIES, harness={"run": {"cancel_grace_sec": 0.2}})
    return found.enter(monkeypatch)


@pytest.fixture
def start(site: Site, usual_signals: None) -> Iterator[Start]:
    """Starts the command; returns when its model has been asked. What is ignored here is ignored there."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*HARNESS, *words], cwd=site.project, env=site.process_env(), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        assert process.stderr is not None
        if words[0] in ("run", "resume"):
            assert any("attempt 1 of 1, context" in line or "goes on" in line for line in process.stderr)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def _ended(process: subprocess.Popen[str]) -> tuple[int, Any]:
    out, _ = process.communicate(timeout=30)
    return process.returncode, json.loads(out)


def _document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    main([*words, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_first_signal_saves_the_session_as_paused_and_it_goes_on_later(
    number: signal.Signals, code: int, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("run", "QUICK", "--json")
    process.send_signal(number)
    exit_code, document = _ended(process)
    assert (exit_code, document["status"]) == (code, "paused")
    done = _document(capsys, "resume", "@last")
    assert (done["id"], done["status"]) == (document["id"], "completed")
    assert _document(capsys, "events", "verify", "@last")["equal"]


def test_a_terminal_whose_end_is_told_twice_leaves_the_session_paused(start: Start) -> None:
    """The shell tells its jobs, and the kernel tells them again when the shell ends."""
    process = start("run", "QUICK", "--json")
    process.send_signal(signal.SIGHUP)
    assert process.stderr is not None
    assert any("stopping" in line for line in process.stderr)
    process.send_signal(signal.SIGHUP)
    exit_code, document = _ended(process)
    assert (exit_code, document["status"]) == (129, "paused")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_from_the_start_stays_ignored(number: signal.Signals, start: Start) -> None:
    """As a script has it for what it starts with ``&``, and ``nohup`` for what is to outlive its terminal."""
    signal.signal(number, signal.SIG_IGN)
    process = start("run", "QUICK", "--json")
    process.send_signal(number)
    exit_code, document = _ended(process)
    assert (exit_code, document["status"]) == (0, "completed")


@pytest.mark.usefixtures("usual_signals")
def test_a_terminal_that_is_closed_leaves_the_session_paused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing can be printed any more; the exit says what happened."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(HARNESS[0], [*HARNESS, "run", "ENDLESS"], site.process_env())
    shown = b""
    while b"attempt 1 of 1, context" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    assert _document(capsys, "sessions", "show", "@last")["status"] == "paused"


def test_the_second_signal_ends_the_process_at_once_and_the_log_is_whole(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("run", "ENDLESS", "--json")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # two alike could be taken for one
    exit_code, document = _ended(process)
    assert (exit_code, document["code"]) in {(143, "terminated"), (130, "interrupted")}  # whichever came second
    assert _document(capsys, "events", "verify", "@last")["equal"]
    assert _document(capsys, "sessions", "show", "@last")["status"] == "active"


@pytest.mark.req("B-139")
def test_pause_and_cancel_reach_a_session_of_another_process(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    process = start("run", "LATER", "--json")
    assert main(["resume", "@last"]) == 5
    assert main(["pause", "@last"]) == 0
    exit_code, document = _ended(process)
    assert (exit_code, document["status"]) == (10, "paused")
    # Nobody runs it now: it is ended here.
    assert _document(capsys, "cancel", "@last")["status"] == "cancelled"


@pytest.mark.req("B-119")
def test_following_a_session_prints_its_events_as_they_come_until_it_ends(start: Start) -> None:
    process = start("run", "ENDLESS", "--json")
    follower = start("events", "@last", "--follow", "--json")
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["type"] == "session.created"
    assert main(["cancel", "@last"]) == 0
    assert _ended(process)[1]["status"] == "cancelled"
    lines = [json.loads(line) for line in follower.stdout]
    follower.wait(30)
    assert [line["seq"] for line in lines] == list(range(2, len(lines) + 2))
    # A result that comes after the end may still be noted as ignored.
    assert "session.cancelled" in [line["type"] for line in lines[-2:]]
    assert follower.returncode == 0
