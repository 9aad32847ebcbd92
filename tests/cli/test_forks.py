"""``harness sessions fork`` and ``sessions tree``: documents, exits, and the words a person reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from tests.reference import Site, calls, change_log, says, write_site

STAGES = {
    "initial": "first",
    "stages": {
        "first": {"role": "worker", "task": "Plan.", "on_success": "second"},
        "second": {"role": "worker", "task": "Do it.", "allowed_tools": ["effects"], "on_success": "completed"},
    },
}
REPLIES = (
    says("A plan.", when={"stage": "first"}),
    calls(("network", {"note": "n"}), when={"stage": "second", "turn": 1}),
    says("Done.", when={"stage": "second"}),
)
Command = Callable[..., Any]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A session of two stages that was answered with yes, over."""
    found = write_site(tmp_path, stages=STAGES, replies=REPLIES).enter(monkeypatch)
    assert main(["run", "x", "--yolo", "--set", "run.max_visits=7", "--json"]) == 0
    return found


@pytest.fixture
def harness(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json: its exit, its document that fits its schema, and what people were told."""

    def run(*words: str) -> Any:
        capsys.readouterr()
        code = main([*words, "--json"])
        out, err = capsys.readouterr()
        document = json.loads(out)
        Draft202012Validator(published_schema(document["schema"])).validate(document)
        return code, document, err

    return run


def test_a_fork_runs_and_exits_as_a_run_does(
    harness: Command, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = harness("sessions", "show")[1]
    at = str(parent["last_seq"])
    code, waiting, told = harness("sessions", "fork", "@last", "--at", at, "--on-ask", "suspend")
    assert (code, waiting["schema"], waiting["parent_id"]) == (10, "harness.session/1", parent["id"])
    assert f"forked from session {parent['id'][-8:]} at event" in told
    assert "goes on with second" in told
    assert main(["sessions", "show", waiting["id"]]) == 0
    assert f"parent      {parent['id']}" in capsys.readouterr().out
    assert harness("sessions", "fork", parent["id"], "--at", at, "--on-ask", "deny")[0] == 11
    code, done, told = harness("sessions", "fork", parent["id"], "--at", at, "--yolo")
    assert (code, done["status"]) == (0, "completed")
    assert "YOLO" in told
    assert harness("sessions", "fork", parent["id"], "--at", at, "--yolo", "--budget", "calls=1")[0] == 12
    assert harness("sessions", "show", parent["id"])[1] == parent


def test_flags_of_the_parent_hold_in_the_fork_but_for_those_that_are_set(harness: Command, site: Site) -> None:
    parent = harness("sessions", "show")[1]["id"]
    fork = ("sessions", "fork", parent, "--at", "3", "--yolo")
    same, other = harness(*fork)[1], harness(*fork, "--set", "run.max_visits=1")[1]
    assert (same["status"], other["status"]) == ("completed", "failed")
    assert other["failure"]["code"] == "limits.max_visits"
    told = [harness("events", one["id"], "--type", "session.forked")[1] for one in (same, other)]
    assert [one["payload"]["changes"] for one in told] == [
        [], [{"key": "harness.run.max_visits", "old": 7, "new": 1}],
    ]  # fmt: skip


def test_a_fork_whose_own_log_says_something_else_of_its_parent_is_not_drawn(harness: Command, site: Site) -> None:
    parent = harness("sessions", "show")[1]
    assert harness("sessions", "fork", "@last", "--at", str(parent["last_seq"]), "--yolo")[0] == 0
    told = "CAST(replace(CAST(payload AS TEXT), '\"asked_seq\":', '\"asked_seq\":1') AS BLOB)"
    change_log(site, f"UPDATE events SET payload = {told} WHERE CAST(payload AS TEXT) LIKE '%asked_seq%'")
    code, said, _ = harness("sessions", "tree", "@last")
    assert (code, said["code"]) == (6, "store.changed")


def test_the_tree_is_a_document_and_a_drawing(
    harness: Command, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = harness("sessions", "show")[1]["id"]
    first = harness("sessions", "fork", parent, "--at", "3", "--yolo")[1]["id"]
    second = harness("sessions", "fork", first, "--at", "9999", "--yolo")
    assert (second[0], second[1]["code"]) == (4, "event.not_found")
    last = harness("sessions", "fork", first, "--at", "40", "--yolo")[1]["id"]
    code, tree, _ = harness("sessions", "tree", first[-8:])
    assert (code, tree["schema"], tree["session_id"]) == (0, "harness.tree/1", first)
    assert [(one["id"], one["depth"]) for one in tree["items"]] == [(parent, 0), (first, 1), (last, 2)]
    assert main(["sessions", "tree", first]) == 0
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["id", parent[-8:], first[-8:], last[-8:]]
    assert main(["sessions", "tree"]) == 0
    assert f"    {last[-8:]} *" in capsys.readouterr().out


WRONG = {
    "sessions fork nope --at 3": (4, "session.not_found"),
    "sessions fork @last --at 9999": (4, "event.not_found"),
    f"sessions fork @last --at {2**80}": (4, "event.not_found"),
    "sessions fork @last --at 0": (2, "usage"),
    "sessions fork @last --at three": (2, "usage"),
    "sessions fork @last": (2, "usage"),
    "sessions fork --at 3": (2, "usage"),
    "sessions fork @last --at 3 --set x": (2, "usage"),
    "sessions fork @last --at 3 --set no.such.key=1": (3, "config.unknown_key"),
    "sessions fork @last --at 3 --set run.max_visits=many": (3, "config.type"),
    "sessions fork @last --at 3 --set default=nobody": (3, "config.unknown_name"),
    "sessions fork @last --at 3 --budget tokens=0": (2, "usage"),
    "sessions fork @last --at 3 --on-ask never": (2, "usage"),
    "sessions fork @last --at 3 --yolo-destructive": (2, "usage"),
    "sessions tree nope": (4, "session.not_found"),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_and_no_session_begins(words: str, harness: Command, site: Site) -> None:
    before = harness("sessions")[1]["items"]
    code, error, told = harness(*words.split())
    assert (code, error["code"]) == WRONG[words]
    assert error["message"] and "Traceback" not in told
    assert harness("sessions")[1]["items"] == before
