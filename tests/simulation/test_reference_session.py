"""The reference session in many orders: one thread runs at a time, and the seed of a simulation picks the next.

A failure names its seed; the same seed plays the same session again, event for event.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import IllegalMove
from tests.reference import REFERENCE, Site, calls, one_stage, says, write_reference, write_site
from tests.simulation.storm import CRASH, FOREIGN, MEMORY, Played, Weather, judged, play, unlimited, write_storm

pytestmark = pytest.mark.gate("G4")
MANY = 25 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 1
SEEDS = range(50 * MANY)


def order(played: Played) -> tuple[Any, ...]:
    """The events without ids and times: their types, and which call each is about."""
    return tuple((event.type, *_about(json.loads(event.payload))) for event in played.events)


def _about(payload: dict[str, Any]) -> list[Any]:
    return [payload.get(name) for name in ("toolName", "turn", "stage", "level", "attempt", "name")] + [
        json.dumps(payload["args"]) if "args" in payload else None
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with unlimited() as patch:
        found = write_reference(tmp_path_factory.mktemp("simulated"), harness=MEMORY).enter(patch)
        with Host.open(found.project) as host:
            host.run(REFERENCE, on_ask="suspend")  # what is tried and imported once is not part of an order
        yield found


def check(played: Played, seed: int) -> None:
    """What holds in every order."""
    assert judged(played) == (), seed
    made, late = played.notes(), too_late(played)
    assert len({*made}) == len(made) and {*made, *late} - {"a"} == {*"bcde"}, seed  # a is pure


def too_late(played: Played) -> list[str]:
    """The notes of calls whose time was over before they came to it: the simulated clock may pass a worker by."""
    ends = [json.loads(event.payload) for event in played.events if event.type == "harness.tool_call.failed"]
    return [end["args"]["note"] for end in ends if end["error"]["code"] == "tool.timeout"]


@pytest.fixture(scope="module")
def played(site: Site) -> dict[int, Played]:
    return {seed: play(site, seed, text=REFERENCE) for seed in SEEDS}


@pytest.mark.inv("I-17", "I-18")
def test_fifty_seeds_give_many_orders_and_one_end(played: dict[int, Played], record_property: Any) -> None:
    record_property("seeds", len(played))
    for seed, one in played.items():
        check(one, seed)
    assert len({one.state_hash for one in played.values()}) == 1
    assert len({order(one) for one in played.values()}) >= 10


@pytest.mark.inv("I-18")
def test_a_seed_plays_the_same_session_event_for_event(site: Site, played: dict[int, Played]) -> None:
    for seed, first in played.items():
        assert play(site, seed, text=REFERENCE) == first, seed


# ------------------------------------------------------------------------------------------ somebody else writes


@pytest.mark.inv("I-3", "I-4")
def test_a_head_that_somebody_else_moves_loses_nothing_and_repeats_no_effect(site: Site, record_property: Any) -> None:
    record_property("seeds", 25 * MANY)
    for seed in range(25 * MANY):
        played = play(site, seed, FOREIGN, text=REFERENCE)
        check(played, seed)
        assert sum(event.type == "effect.ignored" for event in played.events) == 4, seed


# ------------------------------------------------------------------------------------------------------- cancel


def _cancel(ports: SimulatedPorts, host: Host, found: str) -> None:
    ports.clock.sleep(ports.random.uniform(0.0, 0.012))
    with suppress(IllegalMove):  # it has ended already
        host.cancel(found)


@pytest.mark.inv("I-17", "I-20")
def test_a_cancel_at_any_instant_gives_one_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    record_property("seeds", 100 * MANY)
    replies = [calls(("slow", {"seconds": 0.001, "note": "a"}), ("keyed", {"note": "b"})), says("done", delay_ms=1)]
    site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY).enter(monkeypatch)
    with Host.open(site.project) as host:
        host.run("Go.")

    weather = Weather(frozenset({"completed", "cancelled"}), beside=_cancel)
    ends: Counter[str] = Counter()
    for seed in range(100 * MANY):
        played = play(site, seed, weather, text="Go.")
        assert judged(played, weather) == (), seed
        ends[played.status] += 1
    assert set(ends) == {"completed", "cancelled"}
    assert min(ends.values()) >= 10  # neither is an accident


# -------------------------------------------------------------------------------------------------------- crash


@pytest.mark.inv("I-1", "I-15", "I-16", "I-17")
def test_a_crash_at_any_boundary_breaks_nothing(tmp_path: Path, record_property: Any) -> None:
    record_property("seeds", 40 * MANY)
    with unlimited() as patch:
        site = write_storm(tmp_path).enter(patch)
        for seed in range(40 * MANY):
            assert judged(play(site, seed, CRASH)) == (), seed
