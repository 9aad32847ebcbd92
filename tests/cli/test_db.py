"""``harness db``: what the log holds, a copy that is proved, and caches that are made again from the events."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core import Host
from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_core.shell.heads import copy_head
from harness_core.shell.snapshots import fold_on
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft
from tests.reference import Site, calls, change_log, one_stage, says, write_site

Command = Callable[..., Any]
REPLIES = [
    {"when": {"contains": "W-ASKS", "turn": 1}, **calls(("network", {"note": "n"}))},
    says("Done."),
]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A session that is over, and one that waits for an approval."""
    found = write_site(tmp_path, stages=one_stage(), replies=REPLIES).enter(monkeypatch)
    assert main(["run", "x", "--json"]) == 0
    assert main(["run", "W-ASKS", "--on-ask", "suspend", "--json"]) == 10
    return found


@pytest.fixture
def harness(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json; gives its document, which fits its schema."""

    def run(*words: str, exits: int = 0) -> Any:
        capsys.readouterr()
        assert main([*words, "--json"]) == exits
        document = json.loads(capsys.readouterr().out)
        Draft202012Validator(published_schema(document["schema"])).validate(document)
        return document

    return run


def file_of(site: Site) -> Path:
    return Path(site.env["XDG_DATA_HOME"]) / "harness" / "harness.db"


def note(session_id: str, count: int = 1) -> None:
    """Events of which no document is made."""
    drafts = [
        Draft(f"id-{number}", "role.note", 1, "system", "2026-01-01T00:00:00.000Z", b"{}", dumps({"text": "x"}))
        for number in range(count)
    ]
    with Host.open() as host:
        host.store.append(f"session:{session_id}", drafts, expected_seq=None)


# -- stats ---


@pytest.mark.req("B-135")
def test_stats_count_what_is_kept_and_the_room_it_takes(
    site: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    found = harness("db", "stats")
    with Host.open() as host:
        types = [event.type for one in host.sessions() for event in host.events(one["id"])]
    assert found["persisted"] == {
        "events": len(types),
        "projections": 2,
        "artifacts": 1,
        "approvals": types.count("approval.requested"),
        "transitions": 1,
        "summaries": 0,
    }
    assert (found["sessions"], found["removed"]) == (2, 0)
    assert (found["store"], found["file"]) == ("sqlite", str(file_of(site)))
    assert found["size_bytes"] == file_of(site).stat().st_size
    assert found["bytes_per_event"] == round(found["size_bytes"] / len(types), 1)
    assert main(["db", "stats"]) == 0
    text = capsys.readouterr().out
    assert all(f"{name} " in text for name in found["persisted"])


def test_a_log_in_memory_has_no_file_and_no_copy(
    site: Site, harness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write("harness", {"store": {"plugin": "memory"}})
    found = harness("db", "stats")
    assert (found["store"], found["file"], found["size_bytes"], found["bytes_per_event"]) == ("memory", *[None] * 3)
    assert harness("db", "backup", str(tmp_path / "copy.db"), exits=6)["code"] == "store.no_file"
    assert not (tmp_path / "copy.db").exists()
    assert main(["db", "stats"]) == 0
    assert "file" not in capsys.readouterr().out


# -- rebuild ---

GONE = {
    "rows": ("DELETE FROM summaries", "DELETE FROM snapshots WHERE 1"),
    "tables": ("DROP TABLE summaries", "DROP TABLE snapshots"),
}


@pytest.mark.req("B-15")
@pytest.mark.parametrize("what", GONE)
def test_all_that_was_made_of_the_events_is_made_of_them_again(what: str, site: Site, harness: Command) -> None:
    ids = [one["id"] for one in harness("sessions")["items"]]
    before = [harness("sessions", "show", one) for one in ids]
    with closing(sqlite3.connect(file_of(site))) as connection:
        for statement in GONE[what]:
            connection.execute(statement)
        connection.commit()
    assert harness("sessions")["items"] == []
    found = harness("db", "rebuild")
    assert (found["sessions"], found["same"], {one["session_id"] for one in found["changed"]}) == (2, 0, {*ids})
    assert [harness("sessions", "show", one) for one in ids] == before == harness("sessions")["items"]


def test_a_session_that_a_damaged_list_lacks_can_be_looked_at(site: Site, harness: Command) -> None:
    lost, other = (one["id"] for one in harness("sessions")["items"])
    change_log(site, "DELETE FROM summaries WHERE sid = 2")
    assert [one["id"] for one in harness("sessions")["items"]] == [other]
    assert [one["id"] for one in harness("sessions", "tree", lost)["items"]] == [lost]
    assert harness("report", lost, "--tree")["items"][0]["id"] == lost
    assert harness("graph", lost)["session_id"] == lost


def test_a_rebuild_says_what_was_wrong_and_nothing_is_the_second_time(
    site: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("db", "rebuild")
    before = harness("sessions")
    done = before["items"][1]["id"]
    change_log(
        site,
        f"UPDATE summaries SET document = CAST(replace(CAST(document AS TEXT), '{done}', '{done[:-1]}') AS BLOB)"
        " WHERE sid = 1",
        "UPDATE summaries SET document = X'00' WHERE sid = 2",
    )
    found = harness("db", "rebuild")
    assert (found["same"], found["changed"][0]) == (0, {"session_id": done, "keys": ["id"]})
    assert len(found["changed"][1]["keys"]) == len(before["items"][0])
    assert harness("sessions") == before
    again = harness("db", "rebuild")
    assert (again["same"], again["changed"]) == (2, [])
    assert main(["db", "rebuild"]) == 0
    assert "2 sessions: 2 listed as the events say" in capsys.readouterr().out


def test_a_document_that_is_older_than_its_log_was_right_and_is_made_anew(site: Site, harness: Command) -> None:
    shown = harness("sessions", "show", "@last")
    note(shown["id"], 2_100)
    with Host.open() as host:
        kept = {stream: json.loads(summary) for stream, summary in host.store.summaries()}
        for stream in kept:
            host.store.put_snapshot(stream, 1, "another", b"")
    assert kept[f"session:{shown['id']}"]["last_seq"] <= shown["last_seq"]
    found = harness("db", "rebuild")
    assert (found["same"], found["changed"]) == (2, [])
    assert found["snapshots"] == {"dropped": 2, "made": 1}
    assert harness("sessions")["items"][0]["last_seq"] == shown["last_seq"] + 2_100


def test_a_stream_that_is_no_session_is_not_listed(site: Site, harness: Command) -> None:
    with Host.open() as host:
        draft = Draft("i", "role.note", 1, "system", "2026-01-01T00:00:00.000Z", b"{}", b"{}")
        host.store.append("store:main", [draft], expected_seq=0, summary=b"{}")
    found = harness("db", "rebuild")
    assert (found["sessions"], found["removed"]) == (2, ["store:main"])
    assert len(harness("sessions")["items"]) == 2


def test_events_that_cannot_be_read_stop_no_other_session(site: Site, harness: Command) -> None:
    harness("db", "rebuild")
    before = harness("sessions")
    change_log(
        site, "UPDATE events SET payload = X'5b5d' WHERE sid = 1 AND seq < 4", "DELETE FROM summaries WHERE sid = 2"
    )
    found = harness("db", "rebuild", exits=6)
    [failed] = found["failed"]
    assert (failed["session_id"], failed["code"]) == (before["items"][1]["id"], "store.changed")
    assert [one["session_id"] for one in found["changed"]] == [before["items"][0]["id"]]
    assert harness("sessions") == before


def test_a_session_that_goes_on_meanwhile_keeps_what_its_owner_writes(
    site: Site, harness: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = harness("sessions")["items"][0]["id"]

    def and_goes_on(store: Any, machine: Any, **more: Any) -> Any:
        state = fold_on(store, machine, **more)
        if machine.session_id == goes_on:
            draft = Draft("i", "role.note", 1, "system", "2026-01-01T00:00:00.000Z", b"{}", b'{"text":"x"}')
            store.append(f"session:{goes_on}", [draft], expected_seq=None, summary=b'{"kept":1}')
        return state

    monkeypatch.setattr("harness_core.shell.upkeep.fold_on", and_goes_on)
    found = harness("db", "rebuild")
    assert (found["busy"], found["same"]) == ([goes_on], 1)
    with Host.open() as host:
        assert dict(host.store.summaries())[f"session:{goes_on}"] == b'{"kept":1}'


# -- backup ---


def test_a_copy_put_back_is_the_log_as_it_was(site: Site, harness: Command, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    before = harness("sessions")
    found = harness("db", "backup", str(copy))
    assert (found["file"], found["size_bytes"], found["equal"]) == (str(copy), copy.stat().st_size, True)
    assert (found["sessions"], found["events"]) == (2, harness("db", "stats")["persisted"]["events"])
    file_of(site).write_bytes(b"spoilt")
    assert harness("sessions", exits=6)["code"] == "store.corrupt"
    for beside in file_of(site).parent.glob("harness.db*"):
        beside.unlink()
    shutil.copyfile(copy, file_of(site))
    assert harness("sessions") == before
    assert all(harness("events", "verify", one["id"])["equal"] for one in before["items"])


def test_a_copy_takes_the_place_of_nothing(
    site: Site, harness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_text("somebody's", encoding="utf-8")
    error = harness("db", "backup", str(copy), exits=6)
    assert (error["code"], error["where"]) == ("store.exists", str(copy))
    assert copy.read_text(encoding="utf-8") == "somebody's"
    assert harness("db", "backup", str(tmp_path / "none" / "copy.db"), exits=6)["code"] == "store.io"
    assert main(["db", "backup", "relative.db"]) == 0
    assert (site.project / "relative.db").exists()
    assert "all of it verifies" in capsys.readouterr().out


@pytest.mark.inv("I-7")
def test_with_a_copy_the_head_of_what_goes_on_is_copied_out_too(site: Site, harness: Command, tmp_path: Path) -> None:
    assert harness("events", "verify", "@last")["copied_head"] is None
    harness("db", "backup", str(tmp_path / "copy.db"))
    whole = harness("events", "verify", "@last")
    assert whole["copied_head"] == whole["head"]
    last = "(SELECT max(seq) FROM events WHERE sid = 2)"
    change_log(
        site,
        f"DELETE FROM events WHERE sid = 2 AND seq = {last}",
        f"UPDATE streams SET seq = {last}, hash = (SELECT hash FROM events WHERE sid = 2 AND seq = {last})"
        " WHERE id = 2",
    )
    assert harness("events", "verify", "@last", exits=15)["bad"]["code"] == "store.tail_missing"
    found = harness("db", "backup", str(tmp_path / "shorter.db"), exits=15)
    assert [(one["session_id"], one["code"]) for one in found["bad"]] == [(whole["session_id"], "store.tail_missing")]
    assert harness("events", "verify", "@last", exits=15)["copied_head"] == whole["copied_head"]


@pytest.mark.inv("I-7")
def test_a_session_that_ends_while_its_head_is_copied_out_keeps_the_newer_one(
    site: Site, harness: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = harness("sessions")["items"][0]["id"]
    done: list[Any] = []

    def while_it_ends(files: Any, session_id: str, head: Any) -> None:
        if session_id == goes_on and not done:
            done.append(head)
            with Host.open() as host:
                host.cancel(goes_on)
        copy_head(files, session_id, head)

    monkeypatch.setattr("harness_core.shell.upkeep.copy_head", while_it_ends)
    assert harness("db", "backup", str(tmp_path / "copy.db"))["equal"] is True
    found = harness("events", "verify", goes_on)
    assert found["copied_head"] == found["head"] != {"seq": done[0].seq, "hash": done[0].hash.hex()}
