"""The loop interrupted between any two instructions of its own, as real threads are, and not at port calls alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness_core.shell import due, loop, loop_parts
from tests.simulation import test_loop_simulated as played
from tests.simulation.preempting import PreemptingPorts

SEEDS = played.SEEDS[: len(played.SEEDS) // 4]
WORK = {
    "no command is lost": played._all_added_are_closed,
    "rest means rest": played._rest_means_rest,
    "stop releases everyone": played._nobody_hangs,
    "a failed append ends it for everyone": played._full_for_all,
    "what is shown is stored": played._shown_is_stored,
    "a moved head loses nothing": played._foreign_events,
    "no effect waits for another": played._all_begun_at_once,
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_promise_of_the_loop_holds_when_it_is_interrupted_anywhere(work: Callable[[Any], None]) -> None:
    for seed in SEEDS:
        for probability in (0.005, 0.03):
            files = [due.__file__, loop.__file__, loop_parts.__file__]
            ports = PreemptingPorts(seed, files=files, probability=probability)
            with played.told(f"seed {seed}, probability {probability}"), ports:
                work(played.World(ports))
