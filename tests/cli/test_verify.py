"""``harness events verify`` on a log that was changed behind the store's back: it says what is wrong first."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import GENESIS_HASH, Draft, chain_hash
from tests.reference import Site, calls, cases, change_log, one_stage, says, write_site

REPLIES = [{"json": {"text": "Done."}, "usage": {"input_tokens": 1, "output_tokens": 1}}]
STAGES = {"stages": {"only": {"role": "worker", "on_success": "completed"}}}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A finished session of one stage."""
    found = write_site(tmp_path, stages=STAGES, replies=REPLIES).enter(monkeypatch)
    assert main(["run", "x", "--json"]) == 0
    return found


def _verify(capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["events", "verify", "@last", "--json"])
    return code, json.loads(capsys.readouterr().out)


LAST = "(SELECT max(seq) FROM events)"
MOVE_HEAD = (
    "UPDATE streams SET seq = (SELECT max(seq) FROM events), hash = (SELECT hash FROM events ORDER BY seq DESC LIMIT 1)"
)
CHANGES: dict[str, tuple[tuple[str, ...], str, int]] = {
    "the last three events are gone": ((f"DELETE FROM events WHERE seq > {LAST} - 3",), "store.tail_missing", -2),
    "all events are gone": (("DELETE FROM events",), "store.tail_missing", 1),
    "the tail is gone and the head moved": (
        (f"DELETE FROM events WHERE seq > {LAST} - 3", MOVE_HEAD), "store.tail_missing", -2,
    ),
    "one event in the middle is gone": (("DELETE FROM events WHERE seq = 7",), "store.gap", 7),
    "a payload was changed": (("UPDATE events SET payload = X'7b7d' WHERE seq = 5",), "store.changed", 5),
    "an envelope was changed": (
        ("UPDATE events SET envelope = replace(envelope, 'session.started', 'session.resumed') WHERE seq = 3",),
        "store.changed", 3,
    ),
    "a hash was changed": (("UPDATE events SET hash = zeroblob(32) WHERE seq = 9",), "store.changed", 9),
}  # fmt: skip


READS = [
    ["events", "verify"],
    ["events"],
    ["sessions", "show", "@last", "--at", "8"],
    *(["replay", "@last", "--mode", mode] for mode in ("full", "skip-inference", "simulate")),
    ["resume", "@last"],
]


@pytest.mark.inv("I-14")
@pytest.mark.parametrize("content", ["zeroblob(300)", "X'35'", "X'7b7d'"], ids=["NULs", "a number", "an empty object"])
def test_an_event_in_the_middle_that_is_none_is_named_and_the_session_is_not_taken_for_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    assert "without a word" in cases("store")["BR-009"]["right"]
    asks = calls(("network", {"note": "n"}))
    site = write_site(tmp_path, stages=one_stage(), replies=[asks, says("done")]).enter(monkeypatch)
    assert main(["run", "x", "--on-ask", "suspend"]) == 10
    (file,) = Path(site.env["XDG_DATA_HOME"]).rglob("*.db")
    change_log(site, f"UPDATE events SET payload = {content} WHERE seq = 6")
    before = file.read_bytes()
    for words in READS:
        capsys.readouterr()
        code = main([*words, "--json"])
        said = capsys.readouterr().out
        assert code not in (0, 1), (words, said)
        assert '"seq":6' in said.replace(" ", ""), (words, said)
    assert file.read_bytes() == before


@pytest.mark.inv("I-40")
def test_a_prompt_with_a_number_that_looks_like_an_integer_is_what_the_model_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = calls(("pure", {"note": "n", "more": 1e16}))  # refused, and said again in the next question
    write_site(tmp_path, stages=one_stage(), replies=[asks, says("done")]).enter(monkeypatch)
    assert main(["run", "x"]) == 0
    assert main(["events", "verify"]) == main(["prompt", "show"]) == 0
    assert main(["replay", "@last", "--mode", "simulate"]) == 0


LOSSES = {
    "the first": ("seq = 1", 1), "one that nothing needs": ("seq = 9", 9), "the last ones": ("seq > 14", 15),
    "all of them": ("seq > 0", 1),
}  # fmt: skip


@pytest.mark.inv("I-3", "I-14")
@pytest.mark.parametrize("which", LOSSES)
def test_a_session_that_lost_events_is_not_taken_for_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    asks = calls(("network", {"note": "n"}))
    site = write_site(tmp_path, stages=one_stage(), replies=[asks, says("done")]).enter(monkeypatch)
    assert main(["run", "x", "--on-ask", "suspend"]) == 10
    where, seq = LOSSES[which]
    (file,) = Path(site.env["XDG_DATA_HOME"]).rglob("*.db")
    change_log(site, f"DELETE FROM events WHERE {where}")
    before = file.read_bytes()
    forks = ["sessions", "fork", "@last", "--at", "16"]
    cursor = ["replay", "@last", "--from", "3"]
    looks = [[command, "@last"] for command in ("report", "transitions", "artifacts", "graph", "cancel")]
    looks += [["sessions", "diff", "@last", "@last"], ["context", "show", "@last"], ["prompt", "show"], ["approvals"]]
    copies = ["db", "backup", str(tmp_path / "b.db")]
    for words in (*READS, ["sessions", "show", "@last"], cursor, forks, *looks, copies):
        capsys.readouterr()
        code = main([*words, "--json"])
        said = capsys.readouterr().out
        assert code in (6, 15), (words, said)
        assert f'"seq":{seq}' in said.replace(" ", ""), (words, said)
    assert file.read_bytes() == before
    assert main(["db", "rebuild"]) == 6


CHANGED = {
    "a plugin's version": ("\"version\"", "\"vercion\""),
    "a title": ("\"title\":\"x\"", "\"title\":\"y\""),
    "every name": ("\":", "_\":"),
    "every number": (":1", ":null"),
    "every list": (":[", ":1,\"more\":["),
}


@pytest.mark.inv("I-14")
@pytest.mark.parametrize("what", CHANGED)
def test_an_event_that_reads_otherwise_is_a_damage_of_the_log_to_whoever_comes_upon_it(
    site: Site, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    before, after = CHANGED[what]
    found = json.loads(_printed(capsys, "sessions", "show", "@last", "--json"))["id"]
    change_log(site, f"UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), '{before}', '{after}') AS BLOB)")
    for words in (
        ["report"], ["transitions"], ["artifacts"], ["graph"], ["sessions", "fork", "--at", "9"], ["sessions", "show"],
        ["sessions", "diff", found], ["resume"],
        ["replay", "--from", "3"], *(["replay", "--mode", mode] for mode in ("full", "skip-inference", "simulate")),
    ):  # fmt: skip
        assert _exit(capsys, *words, found) == 6, words
    assert _exit(capsys, "events", "trace", f"{found}:9") == 6
    assert _exit(capsys, "events", "verify", found) == 15
    assert _exit(capsys, "sessions", "tree", found) == 0  # of what is no fork it reads the list of sessions alone


def _exit(capsys: pytest.CaptureFixture[str], *words: str) -> int:
    capsys.readouterr()
    code = main([*words, "--json"])
    json.loads(capsys.readouterr().out)
    return code


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


ALTERED = {
    "the title": ("\"title\":\"x\"", "\"title\":\"y\""),
    "the configuration": ("\"config_digest\":\"", "\"config_digest\":\"0"),
    "what was approved": ("\"note\":\"n\"", "\"note\":\"m\""),
}


@pytest.fixture
def approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    """A session that asked for a call and was left; the call is approved, and made by whoever goes on with it."""
    asks = calls(("network", {"note": "n"}))
    found = write_site(tmp_path, stages=one_stage(), replies=[asks, says("done")]).enter(monkeypatch)
    assert main(["run", "x", "--on-ask", "suspend"]) == 10
    (item,) = json.loads(_printed(capsys, "approvals", "--json"))["items"]
    assert main(["approvals", "answer", item["id"], "--approve"]) == 0
    return found


def _alter(site: Site, what: str) -> Path:
    before, after = ALTERED[what]
    change_log(site, f"UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), '{before}', '{after}') AS BLOB)")
    (file,) = Path(site.env["XDG_DATA_HOME"]).rglob("*.db")
    return file


@pytest.mark.inv("I-7", "I-14")
@pytest.mark.parametrize("what", ALTERED)
def test_a_log_that_says_something_else_by_now_is_not_gone_on_with_and_nothing_of_it_is_done(
    approved: Site, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    file = _alter(approved, what)
    before, bad = file.read_bytes(), _verify(capsys)[1]["bad"]
    for words in (["resume", "@last"], ["resume", "@last", "--accept-drift"]):
        capsys.readouterr()
        assert main([*words, "--json"]) == 6
        said = json.loads(capsys.readouterr().out)
        assert (said["code"], said["facts"]["seq"]) == ("store.changed", bad["seq"])
    assert (approved.effects(), file.read_bytes()) == ([], before)


def test_a_log_whose_head_is_that_of_another_one_is_not_gone_on_with(
    approved: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    change_log(approved, "UPDATE streams SET hash = zeroblob(32)")
    bad = _verify(capsys)[1]["bad"]
    assert main(["resume", "@last", "--json"]) == 6
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], said["facts"]["seq"], said["message"]) == (bad["code"], bad["seq"], bad["message"])
    assert approved.effects() == []


def test_a_session_can_be_ended_whatever_its_log_says_and_verify_still_names_what_is_damaged(
    approved: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    _alter(approved, "the title")
    bad = _verify(capsys)[1]["bad"]
    assert main(["cancel", "@last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "cancelled"
    code, found = _verify(capsys)
    assert (code, found["bad"], approved.effects()) == (15, bad, [])


def test_what_is_damaged_is_blamed_and_not_whoever_came_upon_it(
    approved: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "json_extract(CAST(payload AS TEXT), '$.content_ref')"
    ref = f"replace(CAST(payload AS TEXT), {told}, '{'0' * 64}')"
    change_log(approved, f"UPDATE events SET payload = CAST({ref} AS BLOB) WHERE {told} IS NOT NULL")
    bad = _verify(capsys)[1]["bad"]
    capsys.readouterr()
    assert main(["resume", "@last", "--json"]) == 6  # it looks for the flags first that the session was started with
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], said["facts"]["seq"]) == ("store.changed", bad["seq"])


@pytest.mark.inv("I-7")
@pytest.mark.parametrize("first", [1, 6, 9])
def test_an_event_that_reads_otherwise_is_shown_as_it_stands_there_and_nothing_after_it(
    site: Site, capsys: pytest.CaptureFixture[str], first: int
) -> None:
    whole = _printed(capsys, "events", "@last", "--json").splitlines()
    change_log(site, "UPDATE events SET payload = X'7b7d' WHERE seq = 9")
    assert main(["events", "@last", "--from", str(first), "--json"]) == 6
    *shown, last, error = map(json.loads, capsys.readouterr().out.splitlines())
    assert shown == [json.loads(line) for line in whole[first - 1 : 8]]
    assert (last["seq"], last["payload"]) == (9, {})
    assert (error["code"], error["facts"]["seq"]) == ("store.changed", 9)
    assert main(["events", "@last", "--from", "10", "--json"]) == 0


AS_TEXT = "replace(CAST(document AS TEXT), "


@pytest.mark.parametrize(
    "document",
    ["X'7B22'", "X'5B5D'", f"{AS_TEXT}'\"project\"', '\"prokect\"')", f"{AS_TEXT}'\"known\"', '\"knawn\"')"],
    ids=["cut off", "a list", "no project", "not all that was used"],
)
def test_a_document_that_lists_a_session_and_is_none_is_named_with_what_makes_it_again(
    site: Site, capsys: pytest.CaptureFixture[str], document: str
) -> None:
    change_log(site, f"UPDATE summaries SET document = CAST({document} AS BLOB)")
    for words in (["sessions"], ["sessions", "show", "@last"], ["replay", "@last"], ["sessions", "tree", "@last"]):
        capsys.readouterr()
        assert main([*words, "--json"]) == 6
        assert "harness db rebuild" in json.loads(capsys.readouterr().out)["hint"]
    assert main(["db", "rebuild"]) == 0
    assert main(["sessions", "show", "@last"]) == 0


def test_a_session_that_is_listed_and_has_no_event_does_not_verify_and_is_not_shown(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    change_log(site, "UPDATE streams SET seq = 0", "DELETE FROM events")
    for file in Path(site.env["XDG_DATA_HOME"]).rglob("heads/*"):
        file.unlink()
    code, said = _verify(capsys)
    assert (code, said["equal"], said["bad"]["code"]) == (15, False, "store.tail_missing")
    for words in (["sessions", "show", "@last"], ["replay", "@last"], ["resume", "@last"]):
        assert main([*words, "--json"]) in (6, 15), words


@pytest.mark.inv("I-3", "I-7")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_log_does_not_verify_and_the_first_bad_event_is_named(
    name: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    statements, fault, seq = CHANGES[name]
    code, whole = _verify(capsys)
    assert (code, whole["equal"], whole["copied_head"]) == (0, True, whole["head"])
    change_log(site, *statements)
    code, found = _verify(capsys)
    assert (code, found["equal"]) == (15, False)
    wanted = seq if seq > 0 else whole["events"] + seq
    assert (found["bad"]["code"], found["bad"]["seq"]) == (fault, wanted)
    assert found["bad"]["invariant"] == ("I-3" if fault == "store.gap" else "I-7")
    assert main(["events", "verify", "@last"]) == 15
    assert "does NOT verify" in capsys.readouterr().out


@pytest.mark.inv("I-7")
def test_a_tail_that_is_gone_shows_without_a_copied_head(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (copy,) = Path(site.env["XDG_DATA_HOME"]).rglob("heads/*")
    copy.unlink()
    _, whole = _verify(capsys)
    change_log(site, f"DELETE FROM events WHERE seq > {LAST} - 3")
    code, found = _verify(capsys)
    assert (whole["equal"], code, found["copied_head"]) == (True, 15, None)
    assert (found["bad"]["code"], found["bad"]["seq"]) == ("store.tail_missing", whole["events"] - 2)


@pytest.mark.inv("I-40")
@pytest.mark.parametrize(
    ("change", "fault"),
    [("DELETE FROM blobs", "store.content_missing"), ("UPDATE blobs SET content = zeroblob(9)", "store.changed")],
)
def test_changed_content_does_not_verify(
    change: str, fault: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    _, whole = _verify(capsys)
    assert whole["prompts"] == 1
    change_log(site, change)
    code, found = _verify(capsys)
    assert (code, found["bad"]["seq"]) == (15, 1)
    assert found["bad"]["code"] in (fault, "store.corrupt")


def test_a_log_that_grew_since_its_head_was_copied_out_verifies_and_a_broken_copy_does_not(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    _, whole = _verify(capsys)
    (copy,) = Path(site.env["XDG_DATA_HOME"]).rglob("heads/*")
    events = []
    assert main(["events", "@last", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    copy.write_text(f"{events[4]['seq']} {events[4]['hash']}\n")
    assert _verify(capsys)[0] == 0
    copy.write_text(f"{events[4]['seq']} {events[5]['hash']}\n")
    assert _verify(capsys)[1]["bad"]["seq"] == 5
    copy.write_text("no head\n")
    code, found = _verify(capsys)
    assert (code, found["bad"]["code"]) == (15, "store.head_copy")
    copy.unlink()
    code, found = _verify(capsys)
    assert (code, found["copied_head"], found["events"]) == (0, None, whole["events"])


def _rewrite(site: Site, event_type: str, written_by: int | None = None, **fields: Any) -> int:
    """Let the last event of a type say something else and make the chain anew, as somebody would who wants to hide it.

    Args:
        site: Where the session is.
        event_type: Of which event.
        written_by: The version of the event, instead of its own.
        fields: What its payload says.

    Returns:
        The seq of the event.
    """
    (file,) = Path(site.env["XDG_DATA_HOME"]).rglob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        ((stream,),) = connection.execute("SELECT name FROM streams").fetchall()
        rows = connection.execute("SELECT seq, envelope, payload FROM events ORDER BY seq").fetchall()
    of_type: list[int] = [seq for seq, envelope, _ in rows if envelope.split("\n", 2)[1] == event_type]
    statements, last = [], GENESIS_HASH
    for seq, envelope, kept in rows:
        payload = dumps({**json.loads(kept), **fields}) if seq == of_type[-1] else kept
        identity, kind, version, actor, at, refs = envelope.split("\n", 5)
        if written_by is not None and seq == of_type[-1]:
            version = str(written_by)
        written = f"{identity}\n{kind}\n{version}\n{actor}\n{at}\n{refs}"
        draft = Draft(identity, kind, int(version), actor, at, refs.encode(), payload)
        last = chain_hash(last, stream, seq, draft)
        kept_as = f"payload = X'{payload.hex()}', envelope = CAST(X'{written.encode().hex()}' AS TEXT)"
        statements.append(f"UPDATE events SET {kept_as}, hash = X'{last.hex()}' WHERE seq = {seq}")
    change_log(site, *statements, MOVE_HEAD)
    (copy,) = Path(site.env["XDG_DATA_HOME"]).rglob("heads/*")
    copy.write_text(f"{len(rows)} {last.hex()}\n")
    return of_type[-1]


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
def test_a_log_of_a_newer_version_verifies_and_is_said_to_be_judged_up_to_what_is_known(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _verify(capsys)[1]["unknown_seq"] is None
    asked = _rewrite(site, "harness.model.called", written_by=2)
    code, found = _verify(capsys)
    assert (code, found["broken"], found["unknown_seq"]) == (0, [], asked)
    assert main(["events", "verify", "@last"]) == 0
    assert f"from seq {asked} on a newer version wrote it" in " ".join(capsys.readouterr().out.split())


@pytest.mark.inv("I-40")
def test_a_prompt_hash_of_another_question_does_not_verify(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    asked = _rewrite(site, "harness.model.called", promptHash="0" * 64)
    code, found = _verify(capsys)
    assert (code, found["bad"]["code"], found["bad"]["seq"]) == (15, "store.prompt_hash", asked)


@pytest.mark.inv("I-20", "I-24")
def test_a_log_that_says_what_may_not_be_does_not_verify_whatever_its_chain_proves(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    led, left = _rewrite(site, "transition.taken", target="retry"), _rewrite(site, "stage.left", status="failure")
    code, found = _verify(capsys)
    assert code == 15
    assert [(one["invariant"], one["seq"]) for one in found["broken"]] == [("I-20", left), ("I-24", led + 2)]
    assert (found["bad"], found["bad"]["code"]) == (found["broken"][0], "store.invariant")
    assert main(["events", "verify", "@last"]) == 15
    told = capsys.readouterr().out
    assert all(f"seq {one['seq']}" in told and one["invariant"] in told for one in found["broken"])


def test_a_damaged_session_keeps_nobody_from_what_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = calls(("network", {"note": "n"}))
    site = write_site(tmp_path, stages=one_stage(), replies=[asks, says("done")]).enter(monkeypatch)
    assert [main(["run", "x", "--on-ask", "suspend"]) for _ in range(2)] == [10, 10]
    damaged, other = json.loads(_printed(capsys, "approvals", "--json"))["items"]
    stream = f"(SELECT id FROM streams WHERE name = 'session:{damaged['session_id']}')"
    change_log(site, f"UPDATE events SET payload = X'35' WHERE seq = 6 AND sid = {stream}")
    capsys.readouterr()
    assert main(["approvals", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["items"] == [other]
    assert damaged["session_id"][-8:] in shown.err
    assert main(["approvals", "answer", other["id"], "--approve"]) == 0
    assert main(["resume", other["session_id"]]) == 0
    assert main(["approvals", "--json"]) == 6  # nothing else waits, and whether this one does nobody knows
