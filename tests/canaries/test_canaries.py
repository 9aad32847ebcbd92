"""The checks see: each bug that is put in on purpose is found, and where none is put in, nothing is.

A bug replaces one function, in a module of its own beside this one, and is never a switch in the product. The seed that
has found it is printed; the same seed finds it again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from tests.canaries.hunts import HUNTS
from tests.crash.killing import Driver, Reference
from tests.reference import Site, write_reference
from tests.simulation import storm

pytestmark = pytest.mark.gate("G5")
SEEDS = 1_000
"""Within so many seeds a bug must be found; nearly all are found by one of the first."""

QUIET = 200 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 10
"""With so many seeds each way to look is tried where no bug is."""

FOUND_BY = {
    "approval_not_bound": "calm",
    "batch_torn": "foreign",
    "budget_not_reserved": "calm",
    "cached_counted_twice": "calm",
    "cancel_not_heeded": "cancel",
    "chain_from_memory": "foreign",
    "chunk_by_chunk": "chunks",
    "commit_skipped": "calm",
    "conflict_not_folded": "foreign",
    "doubt_forgotten": "crash",
    "end_left_open": "cancel",
    "grant_used_twice": "calm",
    "head_not_compared": "contract",
    "intent_after_effect": "crash",
    "join_early": "branches",
    "key_of_the_moment": "calm",
    "keys_forgotten": "contract",
    "late_result_kept": "cancel",
    "newer_events_written": "newer",
    "pass_by_default": "denied",
    "path_by_prefix": "paths",
    "result_forgotten": "crash",
    "result_twice": "calm",
    "seq_outside": "foreign",
    "snapshot_forgets": "snapshots",
    "snapshot_trusted": "stale snapshot",
    "time_of_day": "jumps",
    "timer_lost": "timers",
    "timer_twice": "timers",
    "upcaster_skipped": "older",
}
KILLED = ("commit_late",)
"""Found where a process is killed."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with storm.unlimited() as patch:
        found = storm.write_storm(tmp_path_factory.mktemp("storm")).enter(patch)
        with Host.open(found.project) as host:
            host.run("Warm up.", on_ask="suspend")  # what is tried and imported once is not part of an order
        yield found


def test_there_are_twenty_canaries_and_each_is_hunted() -> None:
    no_bugs = {"__init__", "hunts", "test_canaries"}
    assert {file.stem for file in Path(__file__).parent.glob("*.py")} - no_bugs == {*FOUND_BY, *KILLED}
    assert {*FOUND_BY.values()} == {*HUNTS}
    assert len(FOUND_BY) + len(KILLED) >= 20


@pytest.mark.inv("I-1", "I-2", "I-3", "I-4", "I-5", "I-7", "I-10", "I-11", "I-12", "I-15", "I-16", "I-17", "I-20")
@pytest.mark.inv("I-21", "I-23", "I-24", "I-27", "I-29", "I-34")
@pytest.mark.parametrize("name", FOUND_BY)
def test_each_canary_is_found(
    name: str, site: Site, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    import_module(f"tests.canaries.{name}").plant(monkeypatch)
    hunt = HUNTS[FOUND_BY[name]]
    seed = next((seed for seed in range(SEEDS) if list(hunt(site, seed))), None)
    assert seed is not None, f"none of {SEEDS} seeds has found it"
    again = list(hunt(site, seed))
    assert again, f"seed {seed} has found it once only"
    print(f"{name}: seed {seed}: {again[0]}")
    record_property("canaries", 1)


@pytest.mark.parametrize("hunt", HUNTS)
def test_where_there_is_no_canary_none_is_found(hunt: str, site: Site) -> None:
    for seed in range(QUIET):
        assert not list(HUNTS[hunt](site, seed)), f"seed {seed}"


@pytest.mark.inv("I-1")
@pytest.mark.parametrize("name", KILLED)
def test_each_canary_is_found_where_a_process_is_killed(name: str, tmp_path: Path, record_property: Any) -> None:
    with Driver(write_reference(tmp_path, probes=False)) as driver:
        driver(plant=f"tests.canaries.{name}")
        with pytest.raises(AssertionError) as found:
            _kill(driver)
    print(f"{name}: {found.value}")
    record_property("canaries", 1)


def _kill(driver: Driver) -> None:
    reference = Reference(driver)  # a bug may show already where nobody is killed
    assert reference.disturbed("begin", "intent.committed@3:kill")["killed"] == signal.SIGKILL
    reference.check(1)
