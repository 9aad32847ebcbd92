"""A session with children in many orders and every weather: one end, each child once; a failure names its seed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harness_core import Host
from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import History
from harness_store_memory.store import _LOGS
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import Site, payloads, write_site
from tests.simulation.storm import CALM, CANCEL, CRASH, FOREIGN, JUMPS, MEMORY, Weather, judged, play, unlimited

pytestmark = pytest.mark.gate("G4")
SEEDS = range(200 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 15)
WEATHERS: Mapping[str, Weather] = {
    "calm": CALM, "foreign": FOREIGN, "crash": CRASH, "jumps": JUMPS, "cancel": CANCEL,
}  # fmt: skip
NOTES = ("one", "two", "three", "four", "five")
AT_ONCE = 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    replies = [
        planner(), chief(1, *map(start, NOTES[:3])), chief(2, *map(start, NOTES[3:])), chief(3, text="all"),
        *[{**worker(note), "delay_ms": delay} for note, delay in zip(NOTES, (3, 0, 1, 2, 0), strict=True)],
    ]  # fmt: skip
    harness = {**MEMORY, "run": {"cancel_grace_sec": 0.001, "max_concurrent_sub_runs": AT_ONCE}}
    with unlimited() as patch:
        root = tmp_path_factory.mktemp("orchestra")
        found = write_site(root, stages=lead(), replies=replies, harness=harness).enter(patch)
        with Host.open(found.project) as host:
            host.run("Go.")  # what is tried and imported once is not part of an order
        yield found


def family_is_sound(root: str, status: str) -> None:
    """Each child that was reserved is there once and has ended with its parent, and every log keeps its promises."""
    [log] = _LOGS.values()
    streams = {name: one for name, one in log.streams.items() if name.startswith("session:")}
    asked = [one["child_id"] for one in payloads(streams[root].events, "child.requested")]
    assert len(asked) == len({*asked})
    assert streams.keys() - {root} <= {f"session:{one}" for one in asked}
    for name, one in streams.items():
        assert check(History(name, tuple(one.events), one.head, content=log.blobs.__getitem__)).broken == (), name
        ends = {event.type for event in one.events} & {"session.completed", "session.cancelled", "session.failed"}
        assert ends and ends <= {"session.completed", f"session.{status}"}, (name, status)


@pytest.mark.req("A-91")
@pytest.mark.inv("I-16", "I-17", "I-18", "I-20")
@pytest.mark.parametrize("name", WEATHERS)
def test_in_any_order_and_any_weather_each_child_is_begun_once_and_all_come_to_an_end(site: Site, name: str) -> None:
    weather = WEATHERS[name]
    for seed in SEEDS:
        played = play(site, seed, weather, text="Go.")
        assert judged(played, weather) == (), seed
        family_is_sound(played.stream, played.status)
        if played.status == "completed":
            assert len(payloads(played.events, "child.completed")) == len(NOTES), seed
        running = most = 0
        for event in played.events:
            running += {"child.granted": 1, "child.completed": -1, "child.failed": -1}.get(event.type, 0)
            most = max(most, running)
        assert most <= AT_ONCE, seed


@pytest.mark.inv("I-18")
def test_a_session_with_children_is_replayed_in_each_mode_and_so_is_each_child(site: Site) -> None:
    for seed in SEEDS:
        for weather in (CALM, CRASH):
            play(site, seed, weather, text="Go.")
            with Host.open(site.project) as host:
                for one in host.sessions():
                    for mode in ("full", "skip-inference", "simulate"):
                        report: Any = host.replay(one["id"], mode)
                        assert report["diverged"] is None and report["equal"] is not False, (seed, mode, one["id"])
