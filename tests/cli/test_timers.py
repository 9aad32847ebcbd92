"""A session that waits for a timer, as people and scripts meet it: exits, documents and what may be typed next."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_core.cli.session_text import Beside, next_commands, session_text
from tests.reference import Site, calls, one_stage, says, write_site

HOUR_MS = 3_600_000


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    stages = one_stage(executor="branches", task=f"20 call | {HOUR_MS} call")
    return write_site(tmp_path, stages=stages, replies=[says("done")]).enter(monkeypatch)


def harness(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    number = main([*words, "--json"])
    out = capsys.readouterr().out
    return number, json.loads(out)


@pytest.mark.inv("I-20")
def test_who_runs_it_is_told_until_when_it_waits_and_how_to_go_on(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "Go."]) == 10
    told = capsys.readouterr()
    number, document = harness(capsys, "sessions", "show", "@last")
    [waiting] = document["waiting"]
    until = waiting["until"][:19].replace("T", " ")
    assert (number, waiting["kind"], document["status"]) == (0, "timer", "active")
    assert f"waits for timer until {until} UTC" in told.out
    assert f"harness resume {document['id'][-8:]}    # from {until} UTC on" in told.out
    assert "a timer of 3600 s" in told.err and "a timer is over" in told.err


def test_gone_on_with_before_it_is_due_it_waits_again_and_its_log_stays_as_it_is(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    number, parked = harness(capsys, "run", "Go.")
    asked = datetime.fromisoformat(parked["created_at"])
    assert number == 10
    due = datetime.fromisoformat(parked["waiting"][0]["until"])
    assert timedelta(minutes=59) < due - asked < timedelta(minutes=61)
    assert harness(capsys, "resume", "@last") == (10, parked)
    assert harness(capsys, "sessions")[1]["items"][0]["waiting"] == parked["waiting"]
    assert main(["sessions"]) == 0
    assert "timer until" in capsys.readouterr().out


def test_each_look_at_it_shows_its_timers(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    harness(capsys, "run", "Go.")
    report = harness(capsys, "report", "@last")[1]
    assert (report["timers"]["asked"], report["calls"]) == (2, 1)
    assert main(["report", "@last"]) == 0
    assert "timers" in capsys.readouterr().out
    assert main(["events", "verify", "@last"]) == 0
    assert harness(capsys, "sessions", "tree", "@last")[1]["items"][0]["status"] == "active"
    main(["events", "@last", "--type", "timer.*"])
    assert "timer.requested" in capsys.readouterr().out
    for mode in ("full", "skip-inference", "simulate"):
        assert harness(capsys, "replay", "@last", "--mode", mode)[0] == 0


@pytest.mark.parametrize("verb", ["cancel"])
def test_one_that_nobody_runs_can_be_ended_while_it_waits(
    site: Site, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    harness(capsys, "run", "Go.")
    number, document = harness(capsys, verb, "@last")
    assert (number, document["status"], document["waiting"]) == (0, "cancelled", [])


def test_how_long_a_process_stays_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = one_stage(executor="branches", task="call 250 call")
    replies = [calls(("pure", {"note": "a"})), says("done")]
    write_site(tmp_path, stages=stages, replies=replies).enter(monkeypatch)
    assert harness(capsys, "run", "Go.", "--set", "run.park_after_sec=0")[0] == 10
    assert harness(capsys, "run", "Go.")[0] == 0
    assert main(["config", "explain", "run.park_after_sec"]) == 0
    assert "run.park_after_sec = 10.0" in capsys.readouterr().out


def test_of_very_many_timers_the_first_are_named() -> None:
    waiting = [{"kind": "timer", "id": f"eff_{n:08}", "until": f"2026-01-01T00:{n:02}:00.000Z"} for n in range(25)]
    usage = {"input_tokens": 0, "output_tokens": 0, "known": True}
    document = {
        "id": "01990000-0000-7000-8000-000000000001", "status": "active", "waiting": waiting, "title": "t",
        "parent_id": None, "stage": "work", "project": "p", "created_at": "c", "updated_at": "u", "last_seq": 9,
        "usage": usage, "failure": None, "state_hash": "h",
    }  # fmt: skip
    text = session_text(document, [], beside=Beside())
    assert text.count("timer eff_") == 10 and "15 more" in text
    assert next_commands(document) == ["harness resume 00000001    # from 2026-01-01 00:00:00 UTC on"]
    assert next_commands({**document, "status": "paused"}) == ["harness resume 00000001"]
