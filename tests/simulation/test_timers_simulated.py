"""Timers beside role calls of any length, in many orders and every weather; a failure names its seed."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.store import StoredEvent
from harness_store_memory.store import _LOGS
from tests.reference import Site, payloads
from tests.simulation.storm import (
    CALM,
    CANCEL,
    CRASH,
    FOREIGN,
    JUMPS,
    PARKED_MS,
    Weather,
    judged,
    play,
    unlimited,
    write_waiting,
)

pytestmark = pytest.mark.gate("G4")
SEEDS = range(400 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 30)
WEATHERS: Mapping[str, Weather] = {
    "calm": CALM, "foreign": FOREIGN, "crash": CRASH, "jumps": JUMPS, "cancel": CANCEL,
}  # fmt: skip
MODES: Mapping[str, Mapping[str, Any]] = {
    "full": {}, "partial": {"until": 9}, "cursor": {"first": 7}, "skip-inference": {}, "simulate": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with unlimited() as patch:
        found = write_waiting(tmp_path_factory.mktemp("waiting")).enter(patch)
        with Host.open(found.project) as host:
            host.run("call")  # what is tried and imported once is not part of an order
        yield found


def plan(seed: int) -> str:
    """Some branches; one in four has a timer for which nobody stays."""
    chance = random.Random(f"{seed}/plan")
    steps = ["call", "call", "0", "1", "3", "4", "20", "900"] + ["call"] * 3 + [str(PARKED_MS)]
    return " | ".join(" ".join(chance.choices(steps, k=chance.randint(1, 4))) for _ in range(chance.randint(1, 4)))


def wanted(text: str) -> str:
    branches = [["said" if step == "call" else "waited" for step in one.split()] for one in text.split("|")]
    return " | ".join(" ".join(one) for one in branches)


def at(event: StoredEvent) -> float:
    return datetime.fromisoformat(event.timestamp).timestamp()


def waits(events: Sequence[StoredEvent]) -> list[tuple[float, float]]:
    """Of each timer how long it was to be, and how long it was until it had elapsed, in seconds."""
    asked = {json.loads(one.payload)["effect_id"]: one for one in events if one.type == "timer.requested"}
    ended = {json.loads(one.payload)["effect_id"]: one for one in events if one.type == "timer.elapsed"}
    return [(json.loads(asked[one].payload)["delay_ms"] / 1000, at(ended[one]) - at(asked[one])) for one in ended]


@pytest.mark.inv("I-10", "I-18", "I-20", "I-21", "I-22")
@pytest.mark.parametrize("name", WEATHERS)
def test_every_branch_comes_to_its_end_in_any_order_and_any_weather(site: Site, name: str) -> None:
    weather = WEATHERS[name]
    for seed in SEEDS:
        text = plan(seed)
        played = play(site, seed, weather, text=text)
        assert judged(played, weather) == (), (seed, text)
        if played.status == "completed":
            [proposed] = payloads(played.events, "artifact.proposed")
            assert json.loads(played.content[proposed["output_ref"]]) == {"text": wanted(text)}, (seed, text)
        types = [event.type for event in played.events]
        assert types.count("timer.requested") >= types.count("timer.elapsed"), seed
        if weather in (CALM, FOREIGN):
            assert all(waited >= delay - 0.002 for delay, waited in waits(played.events)), (seed, text)


@pytest.mark.inv("I-18")
def test_a_session_with_timers_is_replayed_in_each_mode(site: Site) -> None:
    for seed in SEEDS:
        for weather in (CALM, CRASH):
            played = play(site, seed, weather, text=plan(seed))
            with Host.open(site.project) as host:
                for mode, options in MODES.items():
                    report: Any = host.replay(played.stream.removeprefix("session:"), mode, **options)
                    assert report["diverged"] is None and report["equal"] is not False, (seed, mode, plan(seed))


@contextmanager
def calm_clock(site: Site, seed: int) -> Iterator[tuple[SimulatedPorts, Host]]:
    """A process in which time passes only when nobody can go on; the same seed would name the same session."""
    _LOGS.clear()
    with SimulatedPorts(seed) as ports, Host.open(site.project, ports=ports) as host:
        ports.baton.flow = 0.0
        yield ports, host


@pytest.mark.inv("I-10", "I-22")
def test_a_short_timer_that_comes_while_a_long_one_is_waited_for_wakes_at_once(site: Site) -> None:
    for seed in SEEDS:
        with calm_clock(site, seed) as (_, host):
            found = host.run("9000 | call 30 call")["id"]
            events = tuple(host.events(found))
        late = [waited - delay for delay, waited in waits(events)]
        assert max(late) < 0.01, seed  # not at the next look into the inbox, a quarter of a second later


@pytest.mark.inv("I-20")
def test_a_session_is_given_back_for_a_late_timer_alone_and_gone_on_with_when_it_is_due(site: Site) -> None:
    with calm_clock(site, 1) as (ports, host):
        began = ports.clock.monotonic()
        parked = host.run(f"{PARKED_MS} | 9000 call")
        assert 9 <= ports.clock.monotonic() - began < 10  # for the one that is due soon it stayed
        assert (parked["status"], [one["kind"] for one in parked["waiting"]]) == ("active", ["timer"])
        still = host.resume(parked["id"])
        assert (still["last_seq"], still["waiting"]) == (parked["last_seq"], parked["waiting"])
        ports.clock.sleep(PARKED_MS / 1000 - (ports.clock.monotonic() - began) - 5)
        assert host.resume(parked["id"])["status"] == "completed"  # the rest is short enough to stay
        assert PARKED_MS / 1000 <= ports.clock.monotonic() - began < PARKED_MS / 1000 + 1


@pytest.mark.inv("I-20", "I-38")
@pytest.mark.parametrize("verb", ["pause", "cancel", "interrupt"])
def test_whoever_stops_a_session_never_waits_for_its_timers(site: Site, verb: str) -> None:
    for seed in SEEDS:
        with calm_clock(site, seed) as (ports, host):
            found = host.start("9000")
            while "timer.requested" not in [event.type for event in host.events(found)]:
                ports.clock.sleep(0.01)
            began = ports.clock.monotonic()
            getattr(host, verb)("interrupted" if verb == "interrupt" else found)
            document = host.wait(found)
            assert document["status"] == ("cancelled" if verb == "cancel" else "paused"), seed
            assert ports.clock.monotonic() - began < 1, seed
            if verb != "cancel":
                assert host.resume(found)["status"] == "completed", seed


def test_with_one_thread_whoever_waits_for_the_session_waits_for_its_timers(site: Site) -> None:
    with Host.open(site.project, ports="inline") as host:
        assert host.run("20 5 | 10")["status"] == "completed"
        parked = host.run(f"5 | {PARKED_MS}")
        assert (parked["status"], len(parked["waiting"])) == ("active", 1)
