"""Replays of whole sessions: whatever became of one, its log gives the same again, and nothing is called or written."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core import Host
from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_core.shell.opening import Opened, open_project
from harness_core.shell.ports import make_ports
from harness_core.shell.replay import CONTROL_TYPES
from harness_core.shell.replaying import replay_session
from harness_hookspecs.errors import ConfigError, NotFound, StoreError
from harness_hookspecs.events import CATEGORIES, EVENTS, category_of
from harness_hookspecs.store import Draft, Store, StoredEvent
from tests.reference import REFERENCE, Site, calls, one_stage, rechained, says, write_reference, write_site

READS = {"read", "read_all", "head", "snapshot", "blob", "summaries", "take", "posted", "change_counter", "close"}


class ReadOnly:
    """A store that can be read; everything else is a failure, and so is a read that is not known to be one."""

    def __init__(self, store: Store, **replaced: Any) -> None:
        self._store, self._replaced = store, replaced

    def __getattr__(self, name: str) -> Any:
        assert name in READS, f"a replay called {name}"
        return self._replaced.get(name) or getattr(self._store, name)


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Site]:
    """Makes a project and goes there."""

    def enter(*replies: Mapping[str, Any], **files: Any) -> Site:
        files.setdefault("stages", one_stage(on_failure="failed"))
        return write_site(tmp_path, replies=replies, **files).enter(monkeypatch)

    return enter


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The reference session, over: two stages, tools of every class, an approval that was answered, a retry."""
    with pytest.MonkeyPatch.context() as patch:
        site = write_reference(tmp_path_factory.mktemp("reference")).enter(patch)
        with Host.open() as host:
            session = host.run(REFERENCE, on_ask="suspend")
            [item] = host.approvals()
            host.answer(item["id"], "approve", digest=item["digest"])
            assert host.resume(session["id"])["status"] == "completed"
        yield site


def answered(host: Host, decision: str = "approve") -> None:
    """Answer what is asked, and go on, until nothing is."""
    while host.approvals():
        [item] = host.approvals()
        host.answer(item["id"], decision, digest=item["digest"])
        host.resume("@last", on_ask="suspend")


def replayed(host: Host) -> Mapping[str, Any]:
    """Both replays of the last session: equal, and of the state that the session is in."""
    before = host.session("@last")
    reports = [host.replay("@last", mode) for mode in ("full", "simulate", "skip-inference")]
    for report in reports:
        assert (report["equal"], report["diverged"]) == (True, None)
        assert (report["state_hash"], report["events"]) == (before["state_hash"], before["last_seq"])
        assert (report["schema"], report["model_calls"], report["tool_calls"]) == ("harness.replay/1", 0, 0)
    found: Mapping[str, Any] = reports[-1]
    return found


def opened_log() -> tuple[Opened, Store, str, list[StoredEvent]]:
    """What a replay stands on: the project, its store, the one session in it and all its events."""
    opened = open_project(".", make_ports("threads"))
    store = opened.open_store()
    [(stream, _)] = store.summaries()
    events = list(store.read(stream))
    assert len(events) > 50
    return opened, store, stream.removeprefix("session:"), events


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder; what SQLite keeps beside its file is no content."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix[-4:] not in ("-shm", "-wal")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


# ---------------------------------------------------------------------------------------- the reference session


@pytest.mark.req("B-93")
def test_a_full_replay_gives_the_documents_that_were_kept(reference: Site) -> None:
    with Host.open() as host:
        report = host.replay("@last", "full")
        kept = next(iter(host.sessions()))
        assert (report["equal"], report["state_hash"], report["events"]) == (True, kept["state_hash"], kept["last_seq"])
        assert report["roles_entered"] == 0


@pytest.mark.req("B-93")
def test_a_full_replay_sees_a_kept_document_that_the_log_does_not_give(reference: Site) -> None:
    opened, store, session_id, _ = opened_log()
    [(_, summary)] = store.summaries()
    kept = json.loads(summary)
    for changed in ({"status": "failed"}, {"updated_at": "2000-01-01T00:00:00.000Z"}, {"last_seq": 9_999}):
        report = replay_session(opened, store, session_id, "full", against=None, kept={**kept, **changed})
        assert not report.equal
    assert replay_session(opened, store, session_id, "full", against=None, kept=kept).equal
    store.close()


@pytest.mark.req("B-96")
@pytest.mark.inv("I-18")
def test_a_replay_without_inference_enters_every_role_once_and_asks_nobody(reference: Site) -> None:
    effects = reference.effects()
    reference.project.joinpath("script.yaml").rename(reference.project / "gone.yaml")  # there is no model any more
    try:
        with Host.open() as host:
            types = [event.type for event in host.events("@last")]
            report = replayed(host)
    finally:
        reference.project.joinpath("gone.yaml").rename(reference.project / "script.yaml")
    assert report["roles_entered"] == types.count("role.requested") == 3
    assert "harness.model.failed" in types
    assert "role.suspended" in types
    assert reference.effects() == effects


@pytest.mark.req("B-99")
@pytest.mark.inv("I-18")
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("full", {}),
        ("partial", {"until": 20, "category": "tool"}),
        ("cursor", {"first": 20, "until": 40}),
        ("skip-inference", {}),
        ("simulate", {}),
    ],
)
def test_a_replay_writes_nothing(reference: Site, mode: str, options: dict[str, Any]) -> None:
    root = reference.project.parent
    with Host.open() as host:
        logs = root / "data" / "harness" / "logs"
        assert logs.is_dir()
        for folder in [*logs.iterdir()]:
            folder.rmdir()
        before = tree(root), [*root.rglob("*/")]
        host.replay("@last", mode, **options)
        assert (tree(root), [*root.rglob("*/")]) == before
    opened, real, session_id, _ = opened_log()
    store: Any = ReadOnly(real)
    report = replay_session(opened, store, session_id, mode, kept=None, **options)
    assert report.equal is (True if mode in ("skip-inference", "simulate") else None), "a fold has nothing to compare"
    real.close()


@pytest.mark.req("B-94")
def test_a_part_up_to_an_event_gives_the_state_as_it_was_there(reference: Site) -> None:
    with Host.open() as host:
        last = host.session("@last")["last_seq"]
        for seq in {1, 2, last // 3, last // 2, last - 1, last}:
            report = host.replay("@last", "partial", until=seq)
            assert (report["events"], report["state_hash"]) == (seq, host.session("@last", at=seq)["state_hash"])
            assert (report["mode"], report["equal"]) == ("partial", True if seq == last else None)


@pytest.mark.req("B-94")
def test_of_a_category_its_events_are_counted_and_what_they_write_is_hashed(reference: Site) -> None:
    with Host.open() as host:
        events = list(host.events("@last"))
        told = {one: host.replay("@last", category=one) for one in CATEGORIES}
        assert {one: report["events"] for one, report in told.items()} == {
            one: sum(category_of(event.type) == one for event in events) for one in CATEGORIES
        }
        assert len({report["state_hash"] for report in told.values()}) == len(CATEGORIES)
        before = host.replay("@last", "partial", until=1, category="inference")["state_hash"]
        for event in events[1:]:
            after = host.replay("@last", "partial", until=event.seq, category="inference")["state_hash"]
            assert (after != before) == (event.type in ("harness.model.called", "harness.model.responded")), event.seq
            before = after


@pytest.mark.req("B-95")
def test_from_a_cursor_the_state_is_the_one_of_a_full_replay(reference: Site) -> None:
    with Host.open() as host:
        whole = host.replay("@last", "full")
        for first, until in ((1, None), (17, None), (20, 40), (40, 40), (whole["events"], None)):
            report = host.replay("@last", "cursor", first=first, until=until)
            last = until or whole["events"]
            assert report["events"] == last - first + 1
            assert report["equal"] is (True if last == whole["events"] else None), "what is kept is of the end"
            assert report["state_hash"] == host.session("@last", at=last)["state_hash"]
            assert (report["state_hash"] == whole["state_hash"]) == (last == whole["events"])


def test_a_part_is_compared_with_the_kept_document_where_it_lies_in_it(reference: Site) -> None:
    opened, store, session_id, _ = opened_log()
    kept = {**json.loads(next(store.summaries())[1]), "status": "failed"}
    last = kept["last_seq"]
    for options, equal in (({"until": last - 1}, None), ({"until": last}, False), ({"first": last}, False)):
        assert replay_session(opened, store, session_id, None, kept=kept, **options).equal is equal
    store.close()


def test_a_replay_that_compared_nothing_does_not_say_that_it_matches(
    reference: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, equal, said in (
        (["--until", "20"], None, "not compared"),
        (["--from", "20", "--until", "40"], None, "not compared"),
        (["--from", "20"], True, "matches"),
        ([], True, "matches"),
    ):
        assert main(["replay", "@last", *words]) == 0
        assert re.search(rf"; state hash [0-9a-f]{{12}} {said}\n$", capsys.readouterr().out)
        assert main(["replay", "@last", *words, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["equal"] is equal
        Draft202012Validator(published_schema("harness.replay/1")).validate(document)


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("cursor", {}, "needs first"),
        ("partial", {}, "needs until or category"),
        ("full", {"until": 3}, "but with partial, cursor"),
        ("partial", {"first": 3, "until": 4}, "but with cursor"),
        ("skip-inference", {"category": "tool"}, "but with partial"),
        (None, {"first": 3, "category": "tool"}, "first together with category"),
        (None, {"first": 4, "until": 3}, "before"),
        (None, {"category": "things"}, "no category"),
    ],
)
def test_what_does_not_go_with_a_mode_is_named(
    reference: Site, mode: str | None, options: dict[str, Any], said: str
) -> None:
    with Host.open() as host, pytest.raises(ConfigError, match=said) as caught:
        host.replay("@last", mode, **options)
    assert caught.value.code == "replay.mode"


def test_an_event_that_a_session_has_not_is_not_replayed_from_or_to(reference: Site) -> None:
    for options in ({"until": 9_999}, {"until": 0}, {"first": 9_999}, {"first": 0}):
        with Host.open() as host, pytest.raises(NotFound) as caught:
            host.replay("@last", **options)
        assert caught.value.code == "event.not_found"


@pytest.mark.req("B-98")
def test_the_log_gives_the_session_as_it_was_at_any_event(reference: Site) -> None:
    statuses = {"session.created": "created", "session.awaiting": "awaiting_approval", "session.completed": "completed"}
    with Host.open() as host:
        stage, status = None, "created"
        for event in host.events("@last"):
            status = statuses.get(event.type, "active" if event.type.startswith("session.") else status)
            stage = json.loads(event.payload)["stage"] if event.type == "stage.entered" else stage
            if event.type.startswith(("session.", "stage.", "approval.")):
                then = host.session("@last", at=event.seq)
                assert (then["status"], then["stage"], then["last_seq"]) == (status, stage, event.seq)


def test_every_beginning_of_a_log_replays_equal(reference: Site) -> None:
    opened, real, session_id, events = opened_log()
    for count in range(3, len(events), 5):
        store: Any = ReadOnly(real, read=lambda stream, count=count, **bounds: iter(events[:count]))
        report = replay_session(opened, store, session_id, "skip-inference", against=None, kept=None)
        assert report.equal, report.diverged
    real.close()


DECIDED = CONTROL_TYPES | {"validation.passed"}


def changed(event: StoredEvent) -> StoredEvent:
    """The same event with other words in it."""
    payload = json.loads(event.payload)
    name = next(name for name, value in sorted(payload.items(), reverse=True) if isinstance(value, str | int | list))
    payload[name] = "something else"
    return event._replace(payload=json.dumps(payload).encode())


def replayed_log(change: Callable[[list[StoredEvent], int], list[StoredEvent]]) -> Iterator[tuple[int, Any]]:
    """For the last decision of each type: its seq, and the report of the log in which it is changed."""
    opened, real, session_id, events = opened_log()
    places = {event.type: at for at, event in enumerate(events) if event.type in DECIDED}
    assert len(places) > 8
    for at in places.values():
        log = [*rechained(change(events, at))]
        store: Any = ReadOnly(real, read=lambda stream, log=log, **bounds: iter(log))
        report = replay_session(opened, store, session_id, "skip-inference", against=None, kept=None)
        yield events[at].seq, report
    real.close()


@pytest.mark.req("B-96")
def test_a_decision_that_is_recorded_in_other_words_is_named_by_its_seq(reference: Site) -> None:
    for seq, report in replayed_log(lambda log, at: [*log[:at], changed(log[at]), *log[at + 1 :]]):
        assert (report.equal, report.diverged.seq) == (False, seq)


def test_a_decision_that_is_missing_in_the_record_is_found_at_what_followed_from_it(reference: Site) -> None:
    for seq, report in replayed_log(lambda log, at: [*log[:at], *log[at + 1 :]]):
        nothing_follows = report.equal and report.events == seq - 1  # that of a session that has not ended yet
        if not nothing_follows:
            assert not report.equal
            assert report.diverged.seq > seq
            assert report.diverged.replayed is not None


# -------------------------------------------------------------------------- whatever became of a session


class Reached:
    """Waits, outside of the host, for an event of a type."""

    def __init__(self, kind: str) -> None:
        self._kind, self._seen = kind, threading.Event()

    def __call__(self, event: StoredEvent) -> None:
        if event.type == self._kind:
            self._seen.set()

    def wait(self) -> None:
        assert self._seen.wait(20)


def test_a_session_that_failed_replays_equal(enter: Callable[..., Site]) -> None:
    enter({"error": {"code": "provider.unavailable"}})
    with Host.open() as host:
        assert host.run("Go.")["status"] == "failed"
        assert replayed(host)["roles_entered"] == 1


def test_a_session_that_went_on_after_a_denial_because_nobody_may_be_asked_replays_equal(
    enter: Callable[..., Site],
) -> None:
    enter(calls(("network", {"note": "a"})), says("done"))
    with Host.open() as host:
        assert host.run("Go.", on_ask="deny")["failure"]["code"] == "approval.denied_unattended"
        assert replayed(host)["roles_entered"] == 1


@pytest.mark.parametrize("decision", ["approve", "deny", "auto_session"])
def test_a_session_that_was_answered_replays_equal(enter: Callable[..., Site], decision: str) -> None:
    enter(calls(("network", {"note": "a"})), calls(("network", {"note": "b"})), says("done"))
    with Host.open() as host:
        host.run("Go.", on_ask="suspend")
        answered(host, decision)
        assert host.session("@last")["status"] == "completed"
        assert replayed(host)["roles_entered"] == 1


@pytest.mark.parametrize("decision", ["approve", "deny", None])
def test_a_session_with_a_gated_artifact_replays_equal(enter: Callable[..., Site], decision: str | None) -> None:
    stages = one_stage(approvals={"artifact": "required"}, retry={"max_attempts": 2}, on_failure="failed")
    enter(says("done"), stages=stages)
    with Host.open() as host:
        host.run("Go.", on_ask="suspend" if decision else "deny")
        if decision:
            answered(host, decision)
        assert host.session("@last")["status"] == ("completed" if decision == "approve" else "failed")
        assert replayed(host)["roles_entered"] == (2 if decision == "deny" else 1)


def test_a_session_under_yolo_replays_equal(enter: Callable[..., Site]) -> None:
    enter(calls(("network", {"note": "a"}), ("unkeyed", {"note": "b"})), says("done"))
    with Host.open() as host:
        assert host.run("Go.", yolo="on")["status"] == "completed"
        assert replayed(host)["roles_entered"] == 1


def test_a_session_with_failing_unknown_and_oversized_calls_replays_equal(enter: Callable[..., Site]) -> None:
    unknown = {"tool_calls": [{"name": "no_such_tool", "args": {}}]}
    asked = calls(("fail", {"how": "error"}), ("fail", {"how": "crash"}), ("pure", {"wrong": 1}), ("destroy", {}))
    enter(asked, unknown, calls(("big", {"size_bytes": 200_000})), says("done"))
    with Host.open() as host:
        assert host.run("Go.")["status"] == "completed"
        assert replayed(host)["roles_entered"] == 1


def test_a_session_whose_answer_was_corrected_and_whose_stage_was_tried_again_replays_equal(
    enter: Callable[..., Site],
) -> None:
    wrong = {"when": {"attempt": 1}, "text": "no JSON"}
    stages = one_stage(retry={"strategy": "corrective", "max_attempts": 2, "temperature_backoff": True})
    enter(
        wrong, {"when": {"attempt": 2, "turn": 1}, "text": "[]"}, {"when": {"turn": 2}, **says("done")}, stages=stages
    )
    with Host.open() as host:
        assert host.run("Go.")["status"] == "completed"
        assert replayed(host)["roles_entered"] == 2


def test_a_session_that_was_cancelled_in_the_middle_of_a_call_replays_equal(enter: Callable[..., Site]) -> None:
    enter(calls(("slow", {"note": "a", "seconds": 30})), says("done"))
    started = Reached("harness.tool_call.started")
    with Host.open(on_event=started) as host:
        session_id = host.start("Go.")
        started.wait()
        host.cancel(session_id)
        assert host.wait(session_id, 20)["status"] == "cancelled"
        assert replayed(host)["roles_entered"] == 0


def test_a_session_that_was_paused_and_resumed_replays_equal(enter: Callable[..., Site]) -> None:
    enter(calls(("slow", {"note": "a", "seconds": 0.3})), calls(("keyed", {"note": "b"})), says("done"))
    started = Reached("harness.tool_call.started")
    with Host.open(on_event=started) as host:
        session_id = host.start("Go.")
        started.wait()
        host.pause(session_id)
        assert host.wait(session_id, 20)["status"] == "paused"
        assert replayed(host)["roles_entered"] == 0
        assert host.resume(session_id)["status"] == "completed"
        assert replayed(host)["roles_entered"] == 1


def test_a_session_whose_budget_was_used_up_and_raised_replays_equal(enter: Callable[..., Site]) -> None:
    enter(calls(("pure", {"note": "a"})), says("done"))
    with Host.open() as host:
        session = host.run("Go.", budget={"calls": 1})
        assert [one["kind"] for one in session["waiting"]] == ["budget"]
        assert host.resume(session["id"], budget={"calls": 5})["status"] == "completed"
        assert replayed(host)["roles_entered"] == 1


def test_a_session_that_went_on_under_another_configuration_replays_equal_under_both(
    enter: Callable[..., Site],
) -> None:
    def stages(attempts: int) -> dict[str, Any]:
        work = {"role": "worker", "retry": {"max_attempts": attempts}, "approvals": {"artifact": "required"}}
        again = {"role": "worker", "retry": {"max_attempts": attempts}, "on_success": "completed"}
        return {"initial": "work", "stages": {"work": {**work, "on_success": "again"}, "again": again}}

    site = enter(says("done"), stages=stages(1))
    with Host.open() as host:
        host.run("Go.", on_ask="suspend")
    site.write("stages", stages(3))
    with Host.open() as host:
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"])
        assert host.resume("@last", accept_drift=True)["status"] == "completed"
        assert [event.type for event in host.events("@last")].count("config.migrated") == 1
        assert replayed(host)["roles_entered"] == 2


def test_a_session_whose_call_was_begun_anew_after_an_accepted_change_replays_equal(
    enter: Callable[..., Site],
) -> None:
    site = enter(calls(("network", {"note": "a"})), says("done"))
    models = json.loads((site.project / ".harness" / "models.yaml").read_text(encoding="utf-8"))
    with Host.open() as host:
        host.run("Go.", on_ask="suspend")
    models["models"]["scripted"]["inference"] = {"temperature": 0.1}
    site.write("models", models)
    with Host.open() as host:
        host.resume("@last", on_ask="suspend", accept_drift=True)
        answered(host)
        assert host.session("@last")["status"] == "completed"
        assert "retry.scheduled" in [event.type for event in host.events("@last")]
        assert replayed(host)["roles_entered"] == 1


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
@pytest.mark.parametrize(("kind", "version"), [("acme.thing", 1), ("role.note", EVENTS["role.note"].version + 1)])
def test_a_log_that_a_newer_version_wrote_in_is_read_and_replayed_and_not_gone_on_with(
    enter: Callable[..., Site], kind: str, version: int
) -> None:
    enter(calls(("network", {"note": "a"})), says("done"))
    with Host.open() as host:
        session = host.run("Go.", on_ask="suspend")
        stream, seq = f"session:{session['id']}", session["last_seq"]
        foreign = Draft(session["id"], kind, version, "system", session["updated_at"], b"{}", b'{"any":"thing"}', None)
        host.store.append(stream, [foreign], expected_seq=seq)
        assert host.session("@last")["status"] == "awaiting_approval"
        assert replayed(host)["events"] == seq + 1
        ways: list[Callable[[], Any]] = [lambda: host.resume("@last"), lambda: host.cancel("@last")]
        for going_on in ways:
            with pytest.raises(StoreError) as caught:
                going_on()
            assert (caught.value.code, kind in caught.value.message) == ("store.newer_events", True)
        assert host.store.head(stream).seq == seq + 1
        assert not host.store.take(session["id"])  # no cancel lies in wait for who can read it


# ----------------------------------------------------------------------- under another configuration

STAGES: dict[str, Any] = {
    "initial": "work",
    "stages": {
        "work": {"role": "worker", "transitions": [{"when": 'artifact.status == "success"', "goto": "check"}]},
        "check": {"role": "checker", "on_success": "completed"},
    },
}


def other(site: Site, **files: Any) -> Path:
    """Another project of the same person; only its configuration matters."""
    root = site.project.parent / "other"
    found = Site(write_site(root, replies=[], **{"stages": STAGES, **files}).project, site.env, site.effects_file)
    found.write("script", "")
    return found.project


def test_the_same_configuration_from_elsewhere_decides_the_same(enter: Callable[..., Site]) -> None:
    site = enter(says("done"), stages=STAGES)
    with Host.open() as host:
        host.run("Go.")
        assert host.replay("@last", "skip-inference", other(site))["equal"]


def test_a_configuration_that_is_not_trusted_decides_nothing(enter: Callable[..., Site], tmp_path: Path) -> None:
    enter(says("done"), stages=STAGES)
    stranger = write_site(tmp_path / "stranger", stages=STAGES, replies=[]).project
    with Host.open() as host:
        host.run("Go.")
        with pytest.raises(ConfigError) as caught:
            host.replay("@last", "skip-inference", stranger)
        assert "harness trust" in str(caught.value.hint)


def test_a_folder_without_a_project_decides_nothing(
    enter: Callable[..., Site], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    enter(says("done"), stages=STAGES)
    (empty := tmp_path / "empty").mkdir()
    with Host.open() as host:
        host.run("Go.")
    capfd.readouterr()
    for folder, said in ((empty, "is no project: it has no .harness"), (tmp_path / "nowhere", "there is no folder")):
        assert main(["replay", "@last", "--against", str(folder), "--json"]) == 4
        error = json.loads(capfd.readouterr().out)
        assert (error["code"], error["hint"]) == ("project.not_found", "name the folder that holds .harness")
        assert said in error["message"] and str(folder) in error["message"]


@pytest.mark.inv("I-18")
def test_a_changed_rule_is_found_at_the_first_decision_that_it_changes(
    enter: Callable[..., Site], capfd: pytest.CaptureFixture[str]
) -> None:
    site = enter(says("done"), stages=STAGES)
    rules = {"transitions": [{"when": 'artifact.status == "success"', "goto": "completed"}]}
    folder = other(site, stages={**STAGES, "stages": {**STAGES["stages"], "work": {"role": "worker", **rules}}})
    with Host.open() as host:
        host.run("Go.")
        diverged = host.replay("@last", "skip-inference", folder)["diverged"]
        taken = next(event for event in host.events("@last", types="transition.taken"))
    assert diverged["seq"] == taken.seq
    assert (diverged["recorded"]["type"], diverged["recorded"]["payload"]["target"]) == ("transition.taken", "check")
    assert (diverged["replayed"]["type"], diverged["replayed"]["payload"]["target"]) == (
        "transition.taken",
        "completed",
    )
    capfd.readouterr()
    assert main(["replay", "@last", "--against", str(folder), "--json"]) == 15
    assert json.loads(capfd.readouterr().out)["diverged"]["seq"] == taken.seq
    assert main(["replay", "@last", "--mode", "skip-inference", "--json"]) == 0


def test_other_parameters_of_the_model_are_found_at_the_manifest(enter: Callable[..., Site]) -> None:
    site = enter(says("done"), stages=STAGES)
    models = json.loads((site.project / ".harness" / "models.yaml").read_text(encoding="utf-8"))
    models["models"]["scripted"]["inference"] = {"temperature": 0.1}
    with Host.open() as host:
        host.run("Go.")
        diverged = host.replay("@last", "skip-inference", other(site, models=models))["diverged"]
        started = next(event for event in host.events("@last", types="harness.session.started"))
    assert diverged["seq"] == started.seq
    assert [change["field"] for change in diverged["replayed"]["changes"]] == ["params"]


def test_a_mode_there_is_not_and_a_session_there_is_not_are_named_errors(reference: Site) -> None:
    with Host.open() as host:
        with pytest.raises(ConfigError) as caught:
            host.replay("@last", "imagine")
        assert caught.value.code == "replay.mode"
        with pytest.raises(NotFound):
            host.replay("01999999-0000-7000-8000-000000000000")
