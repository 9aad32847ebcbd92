"""Simulated replays: the same program on the same record writes the same log, and what is not the same is named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell import simulate_roles
from harness_core.shell.opening import open_project
from harness_core.shell.ports import NoThread, make_ports
from harness_core.shell.replay import CONTROL_TYPES, ReplayReport
from harness_core.shell.replaying import replay_session
from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.store import StoredEvent
from tests.reference import REFERENCE, Site, calls, one_stage, rechained, says, write_reference, write_site

WRITTEN = CONTROL_TYPES | {
    "approval.requested",
    "budget.reserved",
    "budget.settled",
    "harness.execute_step.started",
    "harness.execute_step.succeeded",
    "harness.model.called",
    "harness.model.responded",
    "harness.session.completed",
    "harness.session.started",
    "harness.tool_call.started",
    "harness.tool_call.succeeded",
    "role.resolved",
    "role.returned",
    "role.suspended",
}
"""What the program itself writes into the reference session; everything else comes from outside."""

Change = Callable[[StoredEvent], StoredEvent]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The reference session, over: two stages, tools of every class side by side, approvals, a suspension, a retry."""
    with pytest.MonkeyPatch.context() as patch:
        site = write_reference(tmp_path_factory.mktemp("reference")).enter(patch)
        with Host.open() as host:
            session = host.run(REFERENCE, on_ask="suspend")
            [item] = host.approvals()
            host.answer(item["id"], "approve", digest=item["digest"])
            assert host.resume(session["id"])["status"] == "completed"
        yield site


class Changed:
    """A store in which one event reads otherwise; it can only be read. ``chained``: as if it had been written so."""

    def __init__(self, store: Any, seq: int, change: Change, *, chained: bool) -> None:
        self._store, self._seq, self._change, self._chained = store, seq, change, chained

    def read(self, stream: str, **bounds: Any) -> Iterator[StoredEvent]:
        read = (self._change(one) if one.seq == self._seq else one for one in self._store.read(stream, **bounds))
        return rechained(read) if self._chained else read

    def blob(self, digest: str) -> bytes:
        found: bytes = self._store.blob(digest)
        return found


def simulated(seq: int, change: Change, mode: str = "simulate", *, chained: bool = True) -> ReplayReport:
    """A replay of the one session there is, with one of its events changed."""
    opened = open_project(".", make_ports("threads"))
    store = opened.open_store()
    try:
        [(stream, _)] = store.summaries()
        changed: Any = Changed(store, seq, change, chained=chained)
        return replay_session(opened, changed, stream.removeprefix("session:"), mode, kept=None)
    finally:
        store.close()


def last_of_each(types: frozenset[str]) -> Mapping[str, int]:
    with Host.open() as host:
        return {event.type: event.seq for event in host.events("@last") if event.type in types}


def payload(event: StoredEvent, **changes: Any) -> StoredEvent:
    return event._replace(payload=dumps({**loads_trusted(event.payload), **changes}))


@pytest.mark.req("B-97")
@pytest.mark.req("B-02")
def test_an_event_that_the_program_would_write_otherwise_is_named_by_its_seq(reference: Site) -> None:
    places = last_of_each(WRITTEN)
    assert len(places) > 20
    for event_type, seq in places.items():
        report = simulated(seq, lambda event: event._replace(actor="operator"))
        assert report.diverged is not None, event_type
        assert (report.equal, report.diverged.seq, report.events) == (False, seq, seq - 1), event_type
        sides: list[Any] = [report.diverged.recorded, report.diverged.replayed]
        assert [side["actor"] for side in sides] == ["operator", sides[1]["actor"]]
        assert sides[1]["actor"] != "operator"


@pytest.mark.req("B-97")
def test_times_and_ids_of_the_envelope_are_the_ones_that_were(reference: Site) -> None:
    for seq in last_of_each(WRITTEN).values():
        moved = {"timestamp": "2001-01-01T00:00:00.000Z", "id": "00000000-0000-7000-8000-000000000000"}
        assert simulated(seq, lambda event, moved=moved: event._replace(**moved)).equal  # type: ignore[misc]


@pytest.mark.req("B-97")
def test_what_a_clock_showed_is_shown_again(reference: Site) -> None:
    readings = {
        "harness.model.responded": {"timing": {"totalMs": 86_400_000}},
        "harness.tool_call.succeeded": {"durationMs": 86_400_000},
    }
    for event_type, seq in last_of_each(frozenset(readings)).items():
        change = readings[event_type]
        assert simulated(seq, lambda event, change=change: payload(event, **change)).equal  # type: ignore[misc]


@pytest.mark.req("B-97")
def test_another_answer_of_a_tool_is_followed_to_the_question_that_it_leads_to(reference: Site) -> None:
    with Host.open() as host:
        events = list(host.events("@last"))
    answered = next(event for event in events if event.type == "harness.tool_call.succeeded")
    asked = next(one for one in events if one.seq > answered.seq and one.type == "harness.model.called")
    report = simulated(answered.seq, lambda event: payload(event, result={"done": "something else"}))
    assert report.diverged is not None
    assert report.diverged.seq == asked.seq
    sides: list[Any] = [report.diverged.recorded, report.diverged.replayed]
    assert sides[0]["payload"]["promptHash"] != sides[1]["payload"]["promptHash"]


@pytest.mark.req("B-97")
def test_calls_side_by_side_come_out_in_the_recorded_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = calls(*(("pure", {"note": f"{number}"}) for number in range(12)))
    site = write_site(tmp_path, replies=(many, says("done")), stages=one_stage(on_failure="failed"))
    site.enter(monkeypatch)
    with Host.open() as host:
        assert host.run("Go.")["status"] == "completed"
        effects = hashlib.sha256(site.effects_file.read_bytes()).hexdigest()
        for _ in range(3):
            report = host.replay("@last", "simulate")
            assert (report["equal"], report["roles_entered"]) == (True, 1)
    assert hashlib.sha256(site.effects_file.read_bytes()).hexdigest() == effects


@pytest.mark.req("B-97")
@pytest.mark.parametrize("error", [KeyError("missing"), NoThread("no thread can be started"), MemoryError()], ids=repr)
def test_what_breaks_in_a_simulation_is_raised_and_is_no_divergence(
    play: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def breaks(*_: Any) -> Any:
        raise error

    session = play(says("done"))
    done = session.run()
    monkeypatch.setattr(simulate_roles, "recorded_events", breaks)
    with pytest.raises(type(error)) as raised:
        session.host.replay(done["id"], "simulate")
    assert raised.value is error


INCOMPLETE: Mapping[str, tuple[str, bool]] = {  # each with whether a fold needs it as well
    "session.created": ("config_digest", True),
    "config.loaded": ("content_ref", False),
    "context.assembled": ("effect_id", True),
    "approval.granted": ("approval_id", True),
    "command.received": ("kind", True),
    "session.awaiting": ("approval_ids", True),
}


@pytest.mark.req("B-97")
@pytest.mark.parametrize("mode", ["simulate", "skip-inference"])
def test_an_event_that_lacks_what_its_type_has_is_damage_of_the_log(reference: Site, mode: str) -> None:
    for event_type, seq in last_of_each(frozenset(INCOMPLETE)).items():
        field, folded = INCOMPLETE[event_type]

        def lacks(event: StoredEvent, field: str = field) -> StoredEvent:
            left = {name: value for name, value in loads_trusted(event.payload).items() if name != field}
            return event._replace(payload=dumps(left))

        for chained in {False, folded}:
            with pytest.raises(StoreCorrupt) as raised:
                simulated(seq, lacks, mode, chained=chained)
            assert (raised.value.code, raised.value.facts["seq"]) == ("store.changed", seq), event_type
