"""Sessions of every weather in, each replayed on its own record: what happened around one is no divergence in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.store import StoredEvent
from harness_store_memory.store import _LOGS
from tests.reference import Site, calls, one_stage, payloads, says, write_site
from tests.simulation.storm import (
    CALM,
    CANCEL,
    CRASH,
    DENIED,
    FOREIGN,
    HASTY,
    JUMPS,
    MEMORY,
    Weather,
    judged,
    play,
    unlimited,
    write_storm,
)

WEATHERS: Mapping[str, tuple[Weather, Sequence[int]]] = {
    "calm": (CALM, range(3)),
    "foreign": (FOREIGN, (*range(5), 16, 29)),  # ends that were written apart, and ends that were written together
    "cancel": (CANCEL, (*range(12), 24, 41, 301, 362)),  # it is heard, or a call is refused, or an end is late
    "crash": (CRASH, (*range(5), 21, 44, 51, 55, 78, 84, 89)),  # amid several calls, of which one is in doubt then
    "jumps": (JUMPS, range(3)),
    "denied": (DENIED, range(3)),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with unlimited() as patch:
        yield write_storm(tmp_path_factory.mktemp("replayed")).enter(patch)


@pytest.mark.req("B-97")
@pytest.mark.parametrize("weather", WEATHERS)
def test_a_session_of_any_weather_comes_out_the_same_when_it_is_simulated(site: Site, weather: str) -> None:
    around, seeds = WEATHERS[weather]
    for seed in seeds:
        played = play(site, seed, around)
        with Host.open(site.project) as host:
            report: Mapping[str, Any] = host.replay(played.stream.removeprefix("session:"), "simulate")
        assert (report["diverged"], report["equal"], report["events"]) == (None, True, len(played.events)), seed
        assert report["state_hash"] == played.state_hash, seed


@pytest.mark.req("B-97")
def test_questions_that_were_asked_side_by_side_and_beside_other_calls_are_given_up_as_they_were(
    tmp_path: Path,
) -> None:
    asked = [("network", {"note": note}) for note in "ab"]
    replies = [calls(*asked, ("slow", {"note": "c", "seconds": 0.002, "line": "after"})), says("done")]
    named = set()
    with unlimited() as patch:
        site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY).enter(patch)
        for seed in range(12):
            played = play(site, seed)
            with Host.open(site.project) as host:
                report: Mapping[str, Any] = host.replay(played.stream.removeprefix("session:"), "simulate")
            assert (report["diverged"], report["equal"]) == (None, True), seed
            [suspended] = payloads(played.events, "role.suspended")
            [*ids] = [asked["approval_id"] for asked in payloads(played.events, "approval.requested")]
            named.add(ids.index(suspended["wait_id"]))
    assert named >= {0, 1}  # now the one, now the other


MANY: Sequence[tuple[str, Mapping[str, Any]]] = (
    *(("slow", {"note": note, "seconds": 0.002, "deaf": True}) for note in "ab"),
    ("keyed", {"note": "c"}),
    ("unkeyed", {"note": "d"}),
    ("keyed", {"note": "e"}),
    *(("network", {"note": note}) for note in "fg"),
)
ASKED: Sequence[tuple[str, Mapping[str, Any]]] = (
    *(("network", {"note": note}) for note in "abcde"),
    ("keyed", {"note": "f"}),
    ("unkeyed", {"note": "g"}),
)
BESIDE: Mapping[str, tuple[Any, Weather, Sequence[int]]] = {
    "many crash": (MANY, CRASH, (3, 11, 15, 33, 171)),  # it was suspended by another than was given up first
    "many hasty": (MANY, HASTY, (7, 10, 21, 26, 126, 198, 291)),  # a doubt was settled of which it was not suspended
    "asked calm": (ASKED, CALM, range(3)),
    "asked crash": (ASKED, CRASH, (*range(4), 44)),
    "asked hasty": (ASKED, HASTY, (2, 4, 11, 29, 32, 44, 50, 149, 164, 235)),  # an answer came to what was given up
    "asked and lost": (ASKED, HASTY, (121, 228, 278)),  # the place of a call that a crash took away was another one's
}


@pytest.mark.req("B-97")
@pytest.mark.parametrize("name", BESIDE)
def test_each_of_the_calls_that_a_crash_left_side_by_side_is_in_doubt_or_not_as_it_was(
    tmp_path: Path, name: str
) -> None:
    asked, around, seeds = BESIDE[name]
    with unlimited() as patch:
        tools = {"tools": {"effects": {"probes": False}}}
        replies = [calls(*asked), says("done")]
        site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY, tools=tools).enter(patch)
        for seed in seeds:
            played = play(site, seed, around)
            with Host.open(site.project) as host:
                report: Mapping[str, Any] = host.replay(played.stream.removeprefix("session:"), "simulate")
            assert (report["diverged"], report["state_hash"]) == (None, played.state_hash), seed


def answered(ports: SimulatedPorts, host: Host, _found: str) -> None:
    """Somebody says yes or no to whatever waits, now and then in the middle of the session."""
    for _ in range(12):
        ports.clock.sleep(ports.random.uniform(0.0, 0.002))
        for item in host.approvals():
            said = "approve" if ports.random.uniform(0.0, 1.0) < 0.6 else "deny"
            with suppress(HarnessError):  # the session has ended, or another answer came first
                host.answer(item["id"], said, digest=item["digest"])


ANSWERED: Mapping[str, tuple[Any, Sequence[int]]] = {
    "few": (
        (("network", {"note": "a"}), ("slow", {"note": "b", "seconds": 0.004})),
        range(4),
    ),
    "asked": (ASKED, (1, 3, 31, 38)),  # each that was given up was so before its answer came, and each other one after
}


@pytest.mark.req("B-97")
@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_that_comes_while_other_calls_are_made_comes_to_the_calls_that_had_waited_for_it(
    tmp_path: Path, name: str
) -> None:
    asked, seeds = ANSWERED[name]
    with unlimited() as patch:
        tools = {"tools": {"effects": {"probes": False}}}
        replies = [calls(*asked), says("done")]
        site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY, tools=tools).enter(patch)
        for seed in seeds:
            played = play(site, seed, Weather(beside=answered))
            with Host.open(site.project) as host:
                report: Mapping[str, Any] = host.replay(played.stream.removeprefix("session:"), "simulate")
            assert (report["diverged"], report["state_hash"]) == (None, played.state_hash), seed


@pytest.mark.inv("I-17")
def test_a_role_call_that_goes_on_as_soon_as_it_is_suspended_knows_what_it_has_done(tmp_path: Path) -> None:
    with unlimited() as patch:
        tools = {"tools": {"effects": {"probes": False}}}
        replies = [calls(*ASKED), says("done")]
        site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=MEMORY, tools=tools).enter(patch)
        assert judged(play(site, 82, HASTY), HASTY) == ()  # what suspended it is granted before it is suspended


def cancelled_at(site: Site, seed: int, seq: int) -> tuple[str, str]:
    """A session that is cancelled as soon as that event is told; gives its id and where that left it."""
    site.effects_file.unlink(missing_ok=True)
    _LOGS.clear()

    def told(event: StoredEvent) -> None:
        if event.seq == seq:
            host.cancel(session_id)

    with SimulatedPorts(seed) as ports, Host.open(site.project, ports=ports, on_event=told) as host:
        session_id = host.start("Go.", on_ask="suspend")
        host.wait(session_id)
        document = host.session(session_id)
    return session_id, document["status"]


BESIDE_A_CANCEL: Sequence[tuple[str, Mapping[str, Any]]] = tuple(
    ("slow", {"note": f"{number}", "seconds": 0.002 * (number % 7), "deaf": bool(number % 2)})
    if number % 4 == 0
    else (("pure", "keyed", "unkeyed")[number % 3], {"note": f"{number}"})
    for number in range(12)
)


@pytest.mark.req("B-97")
def test_calls_side_by_side_are_refused_by_a_cancel_in_the_order_in_which_they_were(tmp_path: Path) -> None:
    replies = [calls(*BESIDE_A_CANCEL), says("done")]
    harness = {**MEMORY, "run": {"cancel_grace_sec": 0.5, "max_parallel_tools": 4}}
    with unlimited() as patch:
        tools = {"tools": {"effects": {"probes": False}}}
        site = write_site(tmp_path, stages=one_stage(), replies=replies, harness=harness, tools=tools).enter(patch)
        for seed, seq in ((143, 22), (248, 30), (25, 34), (78, 28)):  # first two are refused, then two come too late
            session_id, status = cancelled_at(site, seed, seq)
            with Host.open(site.project) as host:
                report: Mapping[str, Any] = host.replay(session_id, "simulate")
            assert (report["diverged"], status) == (None, "cancelled"), seed
