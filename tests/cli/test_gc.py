"""``harness sessions gc``: what ended long ago goes, whole, and the log keeps that it did."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core import Host
from harness_core.cli import gc as gc_module
from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_core.shell import verify
from harness_core.shell.removed import heads_of_removed
from harness_core.shell.session import take_ownership
from harness_core.shell.session_parts import LOGS
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft, Head, Store, verify_chain
from tests.reference import Site, calls, change_log, one_stage, says, write_site

Command = Callable[..., Any]
REPLIES = [
    {"when": {"contains": "W-ASKS", "turn": 1}, **calls(("network", {"note": "n"}))},
    says("Done."),
]
GC = ("sessions", "gc", "--older", "0s")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project."""
    return write_site(tmp_path, stages=one_stage(), replies=REPLIES).enter(monkeypatch)


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


def data_of(site: Site) -> Path:
    return Path(site.env["XDG_DATA_HOME"]) / "harness"


def listed(harness: Command) -> list[str]:
    return [one["id"] for one in harness("sessions", "--all")["items"]]


# -- what goes ---


@pytest.mark.req("B-88")
@pytest.mark.inv("I-6")
def test_what_ended_goes_whole_and_the_log_says_which_events_it_had(site: Site, harness: Command) -> None:
    gone, waiting = harness("run", "x")["id"], harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    last = harness("events", "verify", gone)["head"]
    (data_of(site) / LOGS / gone).mkdir(parents=True, exist_ok=True)
    (data_of(site) / LOGS / gone / "role.log").write_text("x")
    made = [one["ref"] for one in harness("artifacts", gone)["items"]]
    found = harness(*GC)
    rows = [(one["id"], one["events"], one["status"]) for one in found["sessions"]]
    assert rows == [(gone, last["seq"], "completed")]
    assert (found["removed"], found["events"], found["kept"]["not_final"]) == (True, last["seq"], 1)
    assert found["contents"] > 0
    assert listed(harness) == [waiting]
    assert harness("events", "verify", waiting)["equal"] is True
    assert harness("resume", waiting, "--on-ask", "suspend", exits=10)["status"] == "awaiting_approval"
    with Host.open() as host:
        events = list(host.store.read("store:main"))
        assert verify_chain(events, host.store.head("store:main")).seq == 1
        said = {"stream": f"session:{gone}", "last_seq": last["seq"], "last_hash": last["hash"]}
        assert [(event.type, json.loads(event.payload)) for event in events] == [("store.pruned", said)]
        assert list(host.store.read(f"session:{gone}")) == []
    assert harness("artifacts", "get", made[0], exits=4)["code"] == "artifact.not_found"
    assert [path.name for path in (data_of(site) / LOGS / gone).iterdir()] == []
    assert not (data_of(site) / "heads" / gone).exists()
    assert harness("db", "stats")["removed"] == 1
    assert harness("db", "rebuild")["sessions"] == 1


@pytest.mark.req("B-88")
def test_the_file_forbids_a_delete_as_before(site: Site, harness: Command) -> None:
    harness("run", "x")
    harness(*GC)
    harness("run", "y")
    with closing(sqlite3.connect(data_of(site) / "harness.db")) as connection:
        for table in ("events", "blobs", "streams"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(f"DELETE FROM {table}")
    assert len(listed(harness)) == 1


@pytest.mark.parametrize("words", [("sessions", "show"), ("events",), ("events", "verify"), ("replay",)])
def test_who_asks_for_what_is_gone_is_told_when_it_went(harness: Command, words: tuple[str, ...]) -> None:
    gone = harness("run", "x")
    harness(*GC)
    for name in (gone["id"], gone["id"][-8:]):
        error = harness(*words, name, exits=4)
        assert error["code"] == "session.removed"
        assert (error["facts"]["session_id"], error["facts"]["last_seq"]) == (gone["id"], gone["last_seq"])
    assert harness(*words, "nothing-like-it", exits=4)["code"] == "session.not_found"


def test_contents_that_another_session_names_stay(harness: Command) -> None:
    first = harness("run", "the same")["id"]
    kept = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    before = harness("db", "stats")["blobs"]
    found = harness(*GC)
    assert [one["id"] for one in found["sessions"]] == [first]
    assert 0 < harness("db", "stats")["blobs"] == before - found["contents"]
    assert harness("events", "verify", kept)["contents"] > 0


# -- what stays ---


def test_what_ended_later_or_elsewhere_stays(harness: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = harness("run", "x")["id"]
    found = harness("sessions", "gc", "--older", "1h")
    assert (found["sessions"], found["kept"]["younger"], found["removed"]) == ([], 1, False)
    other = tmp_path / "elsewhere"
    shutil.copytree(".harness", other / ".harness")
    monkeypatch.chdir(other)
    assert harness(*GC)["kept"]["other_projects"] == 1
    assert listed(harness) == [one]
    assert [gone["id"] for gone in harness(*GC, "--all")["sessions"]] == [one]


def test_what_names_a_session_that_stays_stays_too(harness: Command) -> None:
    parent = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    child = harness("run", f"as in {parent}")["id"]
    found = harness(*GC)
    assert (found["kept"]["related"], found["kept"]["not_final"], found["sessions"]) == (1, 1, [])
    harness("cancel", parent)
    assert {one["id"] for one in harness(*GC)["sessions"]} == {parent, child}


def test_a_fork_and_what_it_comes_from_go_together_or_stay(harness: Command) -> None:
    parent = harness("run", "x")
    stays = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    fork = harness("sessions", "fork", parent["id"], "--at", str(parent["last_seq"] - 1))["id"]
    paused = harness("sessions", "fork", stays, "--at", "4", "--on-ask", "suspend", exits=10)["id"]
    harness("cancel", stays)
    found = harness(*GC)
    assert {one["id"] for one in found["sessions"]} == {parent["id"], fork}
    assert (found["kept"]["related"], found["kept"]["not_final"]) == (1, 1)
    assert harness("events", "verify", paused)["equal"] is True
    assert {one["id"] for one in harness("sessions", "tree", paused)["items"]} == {stays, paused}


def test_what_somebody_owns_stays(site: Site, harness: Command) -> None:
    owned, free = harness("run", "x")["id"], harness("run", "y")["id"]
    with Host.open() as host:
        lock = take_ownership(owned, host._ports.files(data_of(site)))
        found = harness(*GC)
        lock.release()
    assert ([one["id"] for one in found["sessions"]], found["kept"]["running"]) == ([free], 1)
    assert listed(harness) == [owned]


@pytest.mark.inv("I-14")
def test_what_does_not_verify_stays_and_is_named(
    site: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, cut, good = (harness("run", text)["id"] for text in ("x", "y", "z"))
    change_log(site, "UPDATE events SET payload = x'7b7d' WHERE seq = 2 AND sid = 1")
    with Host.open() as host:
        end = host.store.head(f"session:{cut}").seq
    (data_of(site) / "heads" / cut).write_text(f"{end + 1} {'0' * 64}\n")
    found = harness(*GC, exits=6)
    assert [one["id"] for one in found["sessions"]] == [good]
    assert [(one["session_id"], one["code"]) for one in found["failed"]] == [
        (bad, "store.changed"),
        (cut, "store.tail_missing"),
    ]
    assert sorted(listed(harness)) == sorted([bad, cut])
    assert main([*GC]) == 6
    assert "store.changed" in capsys.readouterr().out


# -- how one is asked ---


def test_a_dry_run_says_what_would_go_and_writes_nothing(
    site: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    one = harness("run", "what goes")["id"]
    with Host.open() as host:
        counter = list(host.store.read(f"session:{one}"))
    found = harness(*GC, "--dry-run")
    assert ([row["id"] for row in found["sessions"]], found["removed"], found["dry_run"]) == ([one], False, True)
    assert (found["contents"], found["events"]) == (None, len(counter))
    assert main([*GC, "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in (one[-8:], "what goes", "would remove 1 session"))
    assert listed(harness) == [one]


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("y\n", 0)])
def test_on_a_terminal_it_asks_first_and_yes_answers(
    answer: str, left: int, harness: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("run", "x")
    monkeypatch.setattr(gc_module, "terminal", lambda: (0, 2))
    asked = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append(text)
        return err and answer == "y\n"

    monkeypatch.setattr("click.confirm", confirm)
    assert main([*GC]) == 0
    text = capsys.readouterr().out
    assert ["Remove 1 session" in one for one in asked] == [True]
    assert ("nothing was removed" in text, "the room is used again" in text) == (bool(left), not left)
    assert len(listed(harness)) == left
    assert main([*GC, "--yes"]) == 0
    assert (len(asked), listed(harness)) == (1, [])


@pytest.mark.parametrize("words", [(), ("--older", "soon"), ("--older", "-1d"), ("--older", "3"), ("--older", "")])
def test_an_age_that_is_none_removes_nothing(harness: Command, words: tuple[str, ...]) -> None:
    one = harness("run", "x")["id"]
    assert main(["sessions", "gc", *words]) == 2
    assert listed(harness) == [one]
    with Host.open() as host:
        for age in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ConfigError):
                host.prune(age)
        assert host.prune(1e300)["sessions"] == []


# -- what an auditor sees ---


@pytest.mark.inv("I-6")
def test_a_record_of_removals_that_was_tampered_with_is_found_by_every_session(site: Site, harness: Command) -> None:
    harness("run", "x")
    harness(*GC)
    kept = harness("run", "y")["id"]
    assert harness("events", "verify", kept)["equal"] is True
    shutil.copytree(data_of(site), site.project / "copy")
    main_stream = "(SELECT id FROM streams WHERE name = 'store:main')"
    change_log(site, f"UPDATE events SET payload = x'7b7d' WHERE sid = {main_stream}")
    assert harness("events", "verify", kept, exits=15)["bad"]["code"] == "store.removals"
    shutil.rmtree(data_of(site))
    shutil.copytree(site.project / "copy", data_of(site))
    genesis = "0" * 64
    change_log(
        site,
        f"DELETE FROM events WHERE sid = {main_stream}",
        f"UPDATE streams SET seq = 0, hash = x'{genesis}' WHERE name = 'store:main'",
    )
    found = harness("events", "verify", kept, exits=15)
    assert (found["bad"]["code"], found["bad"]["invariant"]) == ("store.removals", "I-6")
    assert main(["events", "verify", kept]) == 15


@pytest.mark.inv("I-6")
def test_what_was_removed_from_one_log_is_not_missed_in_another_beside_it(site: Site, harness: Command) -> None:
    harness("run", "x")
    harness(*GC)
    kept = harness("run", "y")["id"]
    site.write("harness", {"store": {"plugin": "sqlite", "path": "other.db"}})
    for text in ("a", "b"):
        harness("run", text)
    apart = harness("events", "verify", harness("sessions")["items"][0]["id"])
    assert apart["equal"] is True, "nothing was removed here"
    harness(*GC)
    other = harness("run", "c")["id"]
    assert harness("events", "verify", other)["equal"] is True
    site.write("harness", {})
    assert harness("events", "verify", kept)["equal"] is True, "what was removed there is not missed here"


@pytest.mark.inv("I-7")
def test_the_anchor_knows_what_was_removed_and_finds_a_store_put_back_to_before(
    site: Site, harness: Command, tmp_path: Path
) -> None:
    site.write("harness", {"anchor": f"file:{tmp_path / 'heads.jsonl'}"})
    gone = harness("run", "x")["id"]
    shutil.copytree(data_of(site), tmp_path / "copy")
    harness(*GC)
    kept = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    assert harness("events", "verify", kept)["equal"] is True, "what was removed is not missing"
    assert harness("events", "verify", gone, exits=4)["code"] == "session.removed"
    shutil.rmtree(data_of(site))
    shutil.copytree(tmp_path / "copy", data_of(site))
    assert harness("events", "verify", gone, exits=15)["bad"]["code"] == "store.removals"


def test_a_session_that_is_removed_while_another_is_verified_is_not_missed(
    site: Site, harness: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_remove(store: Store) -> Mapping[str, Head]:
        found = heads_of_removed(store)
        with Host.open() as host:
            assert [one["id"] for one in host.prune(0.0)["sessions"]] == [gone]
        return found

    site.write("harness", {"anchor": f"file:{tmp_path / 'heads.jsonl'}"})
    gone = harness("run", "x")["id"]
    kept = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)["id"]
    monkeypatch.setattr(verify, "heads_of_removed", then_remove)
    assert harness("events", "verify", kept)["equal"] is True
    assert listed(harness) == [kept]


def test_what_a_crash_left_of_a_session_that_was_removed_goes_with_the_next(site: Site, harness: Command) -> None:
    gone = harness("run", "x")["id"]
    with Host.open() as host:
        head = host.store.head(f"session:{gone}")
        payload = dumps({"stream": f"session:{gone}", "last_seq": head.seq, "last_hash": head.hash.hex()})
        said = Draft("id", "store.pruned", 1, "operator", "2026-01-01T00:00:00.000Z", b"{}", payload)
        host.store.prune({f"session:{gone}": head}, [said])
        assert host.store.head(f"session:{gone}") == Head(0, b"\0" * 32)
    assert (data_of(site) / "heads" / gone).exists()
    harness("run", "y")
    harness(*GC)
    assert not (data_of(site) / "heads" / gone).exists()
