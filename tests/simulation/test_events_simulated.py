"""Events from outside beside calls and timers, delivered at any instant, again, by others; a failure names its seed."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell.posting import delivery_id_of, inbox_row
from harness_core.shell.redaction import Redactor
from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.store import Store
from tests.reference import Site, payloads
from tests.simulation.storm import CALM, CRASH, FOREIGN, JUMPS, Weather, judged, play, unlimited, write_waiting

pytestmark = pytest.mark.gate("G4")
SEEDS = range(400 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 20)
WEATHERS: Mapping[str, Weather] = {"calm": CALM, "foreign": FOREIGN, "crash": CRASH, "jumps": JUMPS}
MODES: Mapping[str, Mapping[str, Any]] = {
    "full": {}, "partial": {"until": 9}, "cursor": {"first": 7}, "skip-inference": {}, "simulate": {},
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with unlimited() as patch:
        found = write_waiting(tmp_path_factory.mktemp("events")).enter(patch)
        with Host.open(found.project) as host:
            host.run("call")  # what is tried and imported once is not part of an order
        yield found


def plan(seed: int) -> str:
    """Some branches with at least one event."""
    chance = random.Random(f"{seed}/plan")
    steps = ["call", "call", "3", "?paid", "?paid", "?sent"]
    branches = [" ".join(chance.choices(steps, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
    return " | ".join(["?paid", *branches])


def deliveries(text: str, seed: int) -> Sequence[tuple[str, str]]:
    """As many as the plan has waits, in any order, each with an id of its own."""
    names = [step[1:] for step in text.split() if step.startswith("?")]
    random.Random(f"{seed}/order").shuffle(names)
    return [(f"d{number}", name) for number, name in enumerate(names)]


def delivering(weather: Weather, text: str, seed: int) -> Weather:
    """The weather with somebody who delivers while the session runs, and somebody else who does so once more while
    nobody runs it."""
    given = deliveries(text, seed)

    def beside(ports: Any, host: Host, session_id: str) -> None:
        for delivery_id, name in given:
            ports.clock.sleep(ports.random.uniform(0.0, 0.01))
            with suppress(IllegalMove):  # somebody else was first, and the session has ended by now
                host.deliver_event(session_id, name, delivery_id, delivery_id=delivery_id, by="sender")
        if weather.beside is not None:
            weather.beside(ports, host, session_id)

    def between(store: Store, stream: str) -> None:
        session_id = stream.removeprefix("session:")
        for delivery_id, name in given:
            row = inbox_row("event", {"name": name, "payload": delivery_id, "by": "sender"}, Redactor())
            store.post(session_id, delivery_id_of(session_id, delivery_id), row)
        if weather.between is not None:
            weather.between(store, stream)

    return weather._replace(beside=beside, between=between)


def wanted(text: str) -> str:
    branches = [["waited" if step.isdecimal() else "said" for step in one.split()] for one in text.split("|")]
    return " | ".join(" ".join(one) for one in branches)


@pytest.mark.inv("I-5", "I-16", "I-17", "I-20")
@pytest.mark.parametrize("name", WEATHERS)
def test_each_wait_gets_one_delivery_in_any_order_and_any_weather(site: Site, name: str) -> None:
    for seed in SEEDS:
        text = plan(seed)
        weather = delivering(WEATHERS[name], text, seed)
        played = play(site, seed, weather, text=text)
        assert judged(played, weather) == (), (seed, text)
        given = [one["delivery_id"].rpartition(":")[2] for one in payloads(played.events, "external.delivered")]
        assert sorted(given) == sorted(delivery_id for delivery_id, _ in deliveries(text, seed)), (seed, text)
        if played.status == "completed":
            [proposed] = payloads(played.events, "artifact.proposed")
            assert json.loads(played.content[proposed["output_ref"]]) == {"text": wanted(text)}, (seed, text)


@pytest.mark.inv("I-18")
def test_a_session_that_waited_for_events_is_replayed_in_each_mode(site: Site) -> None:
    for seed in SEEDS:
        for weather in (CALM, CRASH):
            text = plan(seed)
            played = play(site, seed, delivering(weather, text, seed), text=text)
            with Host.open(site.project) as host:
                for mode, options in MODES.items():
                    report: Any = host.replay(played.stream.removeprefix("session:"), mode, **options)
                    assert report["diverged"] is None and report["equal"] is not False, (seed, mode, text)
