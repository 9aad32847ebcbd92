"""A session that waits for an event, as people and scripts meet it: what is said, what may be typed and what not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from tests.acceptance.test_workflows import MODELS, plan_of, planned
from tests.reference import Site, write_site

DAY_MS = 86_400_000
WAITS = [
    {"id": "w", "uses": "wait", "with": {"event": "paid", "limitMs": DAY_MS}},
    {"id": "v", "uses": "wait", "needs": ["w"], "with": {"event": "sent"}},
]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    plan = plan_of(WAITS, {"text": "{{ steps.w.output }}"})
    return write_site(tmp_path, stages=planned(plan), models=MODELS, replies=[]).enter(monkeypatch)


def harness(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    number = main([*words, "--json"])
    return number, json.loads(capsys.readouterr().out)


@pytest.mark.inv("I-20")
def test_who_runs_it_is_told_what_it_waits_for_and_how_to_deliver_it(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "Go."]) == 10
    told = capsys.readouterr()
    document = harness(capsys, "sessions", "show", "@last")[1]
    [waiting] = document["waiting"]
    name, until = document["id"][-8:], waiting["until"][:19].replace("T", " ")
    assert f"waits for event paid until {until} UTC" in told.out
    assert f"next  harness sessions deliver {name} paid --data JSON" in told.out
    assert f"harness resume {name}" in told.out
    assert "waits for the event paid, at most 86400 s" in told.err
    assert main(["sessions", "show", "@last"]) == 0
    assert "event paid, until" in capsys.readouterr().out
    assert main(["sessions"]) == 0
    assert "event paid" in capsys.readouterr().out


def test_a_delivery_is_told_of_and_the_session_goes_on_with_it(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parked = harness(capsys, "run", "Go.")[1]
    given = ("sessions", "deliver", "@last", "paid", "--id", "7")
    assert main([*given, "--data", '"twelve"']) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"delivered paid to {parked['id'][-8:]}\nnext: harness resume {parked['id'][-8:]}")
    assert main([*given, "--data", '"twelve"']) == 0
    assert "was delivered to" in capsys.readouterr().out
    number, document = harness(capsys, "sessions", "deliver", "@last", "sent", "--data", "null")
    assert (number, document["schema"], document["repeated"], document["waited_for"]) == (
        0, "harness.delivery/1", False, False,
    )  # fmt: skip
    assert harness(capsys, *given, "--data", "13")[1]["code"] == "event.other_delivery"
    number, document = harness(capsys, "resume", "@last")
    assert (number, document["status"]) == (0, "completed")
    assert main(["report", "@last"]) == 0
    assert "events" in capsys.readouterr().out
    assert harness(capsys, "report", "@last")[1]["events"]["asked"] == 2
    main(["events", "@last", "--type", "external.*"])
    assert capsys.readouterr().out.count("external.delivered") == 2
    assert harness(capsys, "sessions", "deliver", "@last", "paid", "--data", "1")[1]["code"] == "state.final"


def test_what_it_brings_may_come_from_a_file_or_from_stdin(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness(capsys, "run", "Go.")
    file = tmp_path / "paid.json"
    file.write_text('"from a file"')
    assert harness(capsys, "sessions", "deliver", "@last", "paid", "--input", str(file))[0] == 0
    stdin = io.TextIOWrapper(io.BytesIO(b'{"a": 1}'))
    monkeypatch.setattr("sys.stdin", stdin)
    assert harness(capsys, "sessions", "deliver", "@last", "sent", "--input", "-")[0] == 0
    document = harness(capsys, "resume", "@last")[1]
    assert document["status"] == "completed"


@pytest.mark.parametrize(("words", "number", "said"), [
    (("payd",), 4, 'did you mean "paid"?'),
    (("paid", "--data", "twelve"), 2, "a text stands in double quotes"),
    (("paid", "--data", '{"a": 1, "a": 2}'), 2, "no JSON document"),
    (("paid", "--data", "1", "--input", "-"), 2, "not by both"),
    (("paid", "--input", "nowhere.json"), 2, "cannot be read"),
    (("Paid",), 3, "no name of an event"),
    (("paid", "--id", "two words"), 3, "no id of a delivery"),
    (("paid", "--data", json.dumps("x" * 300_000)), 14, "the limit is 262144"),
])  # fmt: skip
def test_what_cannot_be_delivered_is_said_with_what_to_do(
    site: Site, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], number: int, said: str
) -> None:
    harness(capsys, "run", "Go.")
    assert main(["sessions", "deliver", "@last", *words]) == number
    assert said in capsys.readouterr().err
