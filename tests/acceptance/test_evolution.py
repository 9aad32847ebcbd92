"""A log that an older version wrote: read as if it were of today, gone on with, replayed, and never rewritten.

The older version is made by hand: in it ``retry.scheduled`` had the form of ``tests/cases/older_events.jsonl``. That is
taken to be version 1, and the form of today version 2.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import harness_core
from harness_core import Host
from harness_core.kernel import upcast as upcast_module
from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import History
from harness_core.kernel.upcast import UPCASTERS, Upcaster, upcast
from harness_core.shell.snapshots import _FOLDING
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.errors import StoreError
from harness_hookspecs.events import EVENTS, check_payload
from harness_hookspecs.kit.codec import dumps, loads
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, StoredEvent
from harness_store_memory.log import Log, chained
from harness_store_memory.store import MemoryStore
from tests.histories.form import FOLDER, document_of, history_of, names, read_history
from tests.reference import calls, cases, one_stage, says

CHANGED = "retry.scheduled"
CASES = cases("older_events")
RETRIES = one_stage(retry={"max_attempts": 3}, on_failure="failed")
BREAKS = {"error": {"code": "provider.unavailable"}}
REPLIES = [
    {"when": {"attempt": 1}, **BREAKS},
    calls(("network", {"note": "a"}), when={"attempt": 2, "turn": 1}),
    {"when": {"attempt": 2}, **BREAKS},
    says("done"),
]
"""An attempt that fails, one that asks and then fails, and one that does not."""


def older(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What the older version would have written."""
    same = {name: payload[name] for name in ("attempt", "strategy", "temperature") if name in payload}
    return {"visit": payload["visit_id"], **same, "cause": {"code": payload["code"], "text": payload["reason"]}}


def newer(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The upcaster."""
    same = {name: payload[name] for name in ("attempt", "strategy", "temperature") if name in payload}
    cause = {"code": payload["cause"]["code"], "reason": payload["cause"]["text"]}
    return {"visit_id": payload["visit"], **same, **cause, "inject": payload["strategy"] == "corrective"}


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of today is version 2, and there is a way to it."""
    monkeypatch.setitem(EVENTS, CHANGED, EVENTS[CHANGED]._replace(version=2))
    monkeypatch.setitem(UPCASTERS, (CHANGED, 1), newer)


def drafts_of(events: Sequence[StoredEvent]) -> list[Draft]:
    """The events as the older version would have written them."""
    drafts = []
    for event in events:
        payload = dumps(older(loads(event.payload))) if event.type == CHANGED else event.payload
        drafts.append(Draft(event.id, event.type, 1, event.actor, event.timestamp, event.refs, payload))
    return drafts


# ---------------------------------------------------------------------------------------------------- the table


@pytest.mark.inv("I-11")
def test_each_version_below_that_of_today_has_one_upcaster_and_nothing_else_has() -> None:
    below = {(name, version) for name, event in EVENTS.items() for version in range(1, event.version)}
    assert UPCASTERS.keys() == below


def test_a_snapshot_of_other_upcasters_is_none_of_ours() -> None:
    assert upcast_module in _FOLDING


@pytest.mark.inv("I-11")
@pytest.mark.usefixtures("today")
@pytest.mark.parametrize("case", CASES)
def test_an_older_payload_is_read_in_the_form_of_today_and_left_as_it_is(case: str) -> None:
    found = CASES[case]
    before = copy.deepcopy(found["older"])
    for _ in range(2):
        assert upcast(found["type"], found["version"], found["older"]) == (2, found["today"])
    assert found["older"] == before
    check_payload(found["type"], found["today"])
    assert upcast(found["type"], 2, found["today"]) == (2, found["today"])
    assert upcast(found["type"], 3, {"of": "tomorrow"}) == (3, {"of": "tomorrow"})


def test_many_versions_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_by(version: int) -> Upcaster:
        return lambda old: {"read": [*old["read"], version]}

    for version in (1, 2, 3):
        monkeypatch.setitem(UPCASTERS, ("a.thing", version), read_by(version))
    assert upcast("a.thing", 1, {"read": []}) == (4, {"read": [1, 2, 3]})
    assert upcast("a.thing", 3, {"read": []}) == (4, {"read": [3]})


@pytest.mark.inv("I-11")
def test_nobody_reads_what_is_stored_past_the_upcasters() -> None:
    raw = re.compile(r"(?<!\w)(?!(?:dict|dumps|len|named_in)\()\w+\(\w+(\[[^]]*\])?\.payload\)")
    root = Path(harness_core.__file__).parent
    found = {file.relative_to(root).as_posix() for file in root.rglob("*.py") if raw.search(file.read_text("utf-8"))}
    assert found == {"kernel/checking/chain.py", "kernel/projections/event.py"}  # which apply them


# -------------------------------------------------------------------------------------------------------- a log


@pytest.mark.inv("I-11")
@pytest.mark.usefixtures("today")
@pytest.mark.parametrize("name", ["corrective-retry", "retry-of-provider", "completed-reference"])
def test_a_history_of_the_older_version_folds_to_the_document_of_today(name: str, tmp_path: Path) -> None:
    version = FOLDER / "0.1.0"
    assert name in names(version)
    history = read_history(version, name)
    drafts = drafts_of(history.events)
    assert [tuple(draft)[:7] for draft in drafts] != [event[3:10] for event in history.events]
    store = MemoryStore(Log(), FakeHost(tmp_path).ports)
    stream = history.events[0].stream
    store.append(stream, drafts, expected_seq=0, blobs=history.blobs)
    assert document_of(store, stream.removeprefix("session:")) == history.document


def rewritten(session: Any) -> str:
    """Puts a store in place of the session's, in which the older version has written all of it."""
    document = session.host.session("@last")
    history = history_of(session.host.store, document["id"])
    session.host.close()
    [file] = Path(session.site.env["XDG_DATA_HOME"]).rglob("harness.db")
    file.unlink()
    session.host = Host.open(session.site.project)
    stream = f"session:{document['id']}"
    options: dict[str, Any] = {"blobs": history.blobs, "summary": history.document}
    session.host.store.append(stream, drafts_of(history.events), expected_seq=0, **options)
    return stream


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
def test_a_session_of_the_older_version_is_gone_on_with_and_replayed_and_what_it_wrote_stays(
    play: Any, request: pytest.FixtureRequest
) -> None:
    session = play(*REPLIES, stages=RETRIES)
    assert session.run()["status"] == "awaiting_approval"
    stream = rewritten(session)
    request.getfixturevalue("today")
    before = list(session.host.store.read(stream))
    assert CHANGED in [event.type for event in before]
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    after = session.events()
    assert after[: len(before)] == before
    assert [event.version for event in after if event.type == CHANGED] == [1, 2]
    assert session.host.replay("@last", "skip-inference")["equal"]
    assert session.host.replay("@last", "full")["equal"]
    assert session.host.replay("@last", "simulate")["equal"]
    assert session.host.verify("@last")["equal"]
    shown = [loads(event.payload) for event in after if event.type == CHANGED]
    assert [sorted(payload) for payload in shown] == [
        ["attempt", "cause", "strategy", "visit"],
        ["attempt", "code", "inject", "reason", "strategy", "visit_id"],
    ]


@pytest.mark.req("B-97")
@pytest.mark.inv("I-11")
def test_a_simulation_names_what_an_older_version_recorded_otherwise_in_the_form_of_today(
    play: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(*REPLIES, stages=RETRIES)
    session.run()
    rewritten(session)
    request.getfixturevalue("today")
    monkeypatch.setitem(UPCASTERS, (CHANGED, 1), lambda old: {**newer(old), "reason": "Another one."})
    report = session.host.replay("@last", "simulate")
    [seq] = [event.seq for event in session.events() if event.type == CHANGED]
    assert (report["equal"], report["diverged"]["seq"]) == (False, seq)
    sides = [report["diverged"][side]["payload"] for side in ("recorded", "replayed")]
    assert [side["reason"] == "Another one." for side in sides] == [True, False]
    assert sides[0].keys() == sides[1].keys()


@pytest.mark.inv("I-11", "I-12")
def test_a_log_of_the_older_version_verifies_and_one_that_it_could_not_have_written_does_not(
    play: Any, request: pytest.FixtureRequest
) -> None:
    session = play(*REPLIES, stages=RETRIES)
    session.run()
    stream = rewritten(session)
    request.getfixturevalue("today")
    assert session.host.verify("@last")["broken"] == []
    state_hash = session.host.session("@last")["state_hash"]
    drafts = [Draft(*event[3:10]) for event in session.events()]
    assert broken_in(stream, drafts, state_hash=state_hash) == []
    [index] = [at for at, draft in enumerate(drafts) if draft.type == CHANGED]
    for payload in (b'{"attempt":2}', b'{"attempt":2,"visit":"v","strategy":"retry","cause":{"code":"x","text":7}}'):
        changed = [*drafts[:index], drafts[index]._replace(payload=payload), *drafts[index + 1 :]]
        assert ("I-11", index + 1) in broken_in(stream, changed)


def broken_in(stream: str, drafts: Sequence[Draft], **more: Any) -> list[tuple[str, int]]:
    """What of a log of these events does not hold."""
    events = tuple(chained(stream, Head(0, GENESIS_HASH), 0, drafts))
    return [(one.invariant, one.seq) for one in check(History(stream, events, **more)).broken]


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
def test_an_older_form_that_there_is_no_way_from_is_passed_over_and_not_gone_on_with(
    play: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(*REPLIES, stages=RETRIES)
    session.run()
    stream = rewritten(session)
    request.getfixturevalue("today")
    monkeypatch.delitem(UPCASTERS, (CHANGED, 1))
    head = session.host.store.head(stream)
    assert CHANGED in session.types()
    assert session.host.session("@last")["status"] == "awaiting_approval"
    with pytest.raises(StoreError, match=CHANGED) as caught:
        session.resume()
    assert caught.value.code == "store.newer_events"
    assert session.host.store.head(stream) == head
