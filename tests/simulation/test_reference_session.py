"""The reference session in many orders: one thread runs at a time, and the seed of a simulation picks the next.

A failure names its seed; the same seed plays the same session again, event for event.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from harness_core import Host
from harness_core.shell.assembly import Assembly
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_core.shell.session_parts import SessionParts
from harness_hookspecs.errors import HarnessError, IllegalMove
from harness_hookspecs.store import Draft, Head, StoredEvent, verify_chain
from tests.canaries import seq_outside
from tests.reference import REFERENCE, Site, calls, one_stage, says, write_reference, write_site

SEEDS = range(50)
MEMORY = {"store": {"plugin": "memory"}}


class Played(NamedTuple):
    """How a session went under one seed."""

    status: str
    state_hash: str
    events: list[StoredEvent]
    effects: list[tuple[str, str]]

    def order(self) -> tuple[Any, ...]:
        """The events without ids and times: their types, and which call each is about."""
        return tuple((event.type, *_about(json.loads(event.payload))) for event in self.events)


def _about(payload: dict[str, Any]) -> list[Any]:
    return [payload.get(name) for name in ("toolName", "turn", "stage", "level", "attempt", "name")] + [
        json.dumps(payload["args"]) if "args" in payload else None
    ]


def _unlimited(parts: SessionParts) -> SessionParts:
    return attrs.evolve(parts, validator_timeout_seconds=math.inf, approver_timeout_seconds=math.inf)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Assembly.session_parts
    with pytest.MonkeyPatch.context() as patch:
        # Where time flows, any limit may strike before work that is ready; a session has one end where none does.
        patch.setattr(Assembly, "session_parts", lambda self: _unlimited(made(self)))
        found = write_reference(tmp_path_factory.mktemp("simulated"), harness=MEMORY).enter(patch)
        with Host.open(found.project) as host:
            host.run(REFERENCE, on_ask="suspend")  # what is tried and imported once is not part of an order
        yield found


def play(site: Site, seed: int, beside: Callable[[SimulatedPorts, Host, str], None] | None = None) -> Played:
    """The session under one seed; ``beside`` runs at the same time."""
    site.effects_file.unlink(missing_ok=True)
    with SimulatedPorts(seed) as ports, Host.open(site.project, ports=ports) as host:
        found = host.start(REFERENCE, on_ask="suspend")
        others = [ports.spawn(beside, ports, host, found, name="beside")] if beside is not None else []
        document = host.wait(found)
        for other in others:
            other.join()
        for item in host.approvals():
            host.answer(item["id"], "approve", digest=item["digest"])
        if document["status"] == "awaiting_approval":
            document = host.resume(found, on_ask="suspend")
        events = list(host.events(found))
    effects = [(line["tool"], line["args"].get("note", "")) for line in site.effects()]
    return Played(document["status"], document["state_hash"], events, effects)


def check(played: Played, seed: int) -> None:
    """What holds in every order."""
    assert played.status == "completed", seed
    assert [event.seq for event in played.events] == list(range(1, len(played.events) + 1)), seed
    verify_chain(played.events, Head(played.events[-1].seq, played.events[-1].hash))
    once = Counter(note for tool, note in played.effects if tool != "effects_pure")
    assert once == Counter("bcde"), seed
    ends = Counter(json.loads(e.payload)["callId"] for e in played.events if e.type.startswith("harness.tool_call.s"))
    assert set(ends.values()) == {2}, seed  # each call has one beginning and one end


@pytest.fixture(scope="module")
def played(site: Site) -> dict[int, Played]:
    return {seed: play(site, seed) for seed in SEEDS}


@pytest.mark.inv("I-17", "I-18")
def test_fifty_seeds_give_many_orders_and_one_end(played: dict[int, Played]) -> None:
    for seed, one in played.items():
        check(one, seed)
    assert len({one.state_hash for one in played.values()}) == 1
    assert len({one.order() for one in played.values()}) >= 10


@pytest.mark.inv("I-18")
def test_a_seed_plays_the_same_session_event_for_event(site: Site, played: dict[int, Played]) -> None:
    for seed, first in played.items():
        assert play(site, seed) == first, seed


# ------------------------------------------------------------------------------------------ somebody else writes


def foreign(ports: SimulatedPorts, host: Host, found: str) -> None:
    """Another writer's events, now and then, in the middle of the session."""
    for number in range(4):
        ports.clock.sleep(ports.random.uniform(0.0, 0.004))
        payload = json.dumps({"effect_id": f"foreign-{number}", "reason": "from elsewhere"}).encode()
        draft = Draft(ports.ids.uuid7(), "effect.ignored", 1, "system", ports.clock.timestamp(), b"{}", payload)
        host.store.append(f"session:{found}", [draft], expected_seq=None)


@pytest.mark.inv("I-3", "I-4")
def test_a_head_that_somebody_else_moves_loses_nothing_and_repeats_no_effect(site: Site) -> None:
    for seed in SEEDS[:25]:
        played = play(site, seed, foreign)
        check(played, seed)
        assert sum(event.type == "effect.ignored" for event in played.events) == 4, seed


@pytest.mark.inv("I-3", "I-4")
def test_a_store_that_reads_the_seq_outside_its_transaction_is_found(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq_outside.plant(monkeypatch)
    for seed in SEEDS:
        try:
            check(play(site, seed, foreign), seed)
        except (AssertionError, HarnessError):
            return
    pytest.fail("no seed has found it")


# ------------------------------------------------------------------------------------------------------- cancel


def _cancel(ports: SimulatedPorts, host: Host, found: str) -> None:
    ports.clock.sleep(ports.random.uniform(0.0, 0.012))
    with suppress(IllegalMove):  # it has ended already
        host.cancel(found)


@pytest.mark.inv("I-17", "I-20")
def test_a_cancel_at_any_instant_gives_one_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [calls(("slow", {"seconds": 0.001, "note": "a"}), ("keyed", {"note": "b"})), says("done", delay_ms=1)]
    site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY).enter(monkeypatch)
    with Host.open(site.project) as host:
        host.run("Go.")

    ends: Counter[str] = Counter()
    for seed in range(100):
        with SimulatedPorts(seed) as ports, Host.open(site.project, ports=ports) as host:
            found = host.start("Go.")

            task = ports.spawn(_cancel, ports, host, found, name="cancel")
            document = host.wait(found)
            task.join()
            types = [event.type for event in host.events(found)]
            final = [kind for kind in types if kind in ("session.completed", "session.cancelled", "session.failed")]
            assert final == [f"session.{document['status']}"], seed
            assert host.session(found)["status"] == document["status"], seed
            ends[document["status"]] += 1
    assert set(ends) == {"completed", "cancelled"}
    assert min(ends.values()) >= 10  # neither is an accident
