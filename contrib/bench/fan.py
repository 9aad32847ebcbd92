"""Goal 3: steps go through the session loop in 100 branches, rates beside bare group commits and a peer come out."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

from harness_core.shell.host import SWITCH_INTERVAL_SECONDS
from harness_hookspecs.store import Store

from ._branches import branch_steps, steps_beside_a_slow_branch
from ._kernel import bare_rate, kernel_steps
from ._peers import beside_langgraph, peer
from ._stores import new_store
from .measure import Figure, at_least, at_most, paired, turns

__all__ = ["BRANCHES", "NAME", "run"]

NAME = "fan"

BRANCHES, STEPS, ROUNDS = 100, 2_000, 5  # 100 branches as in goal 3; 20 rounds of them are a turn of half a second
WHOLE_STEPS = 1_000


def run() -> Iterator[Figure]:
    """On the disk with FULL, and under the switch interval that a host sets."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        yield from _figures()
    finally:
        sys.setswitchinterval(before)


def _figures() -> Iterator[Figure]:
    contestants: dict[str, Callable[[], float]] = {
        "kernel": lambda: _rate(_kernel, STEPS),
        "bare": lambda: bare_rate(STEPS, BRANCHES),
        "whole": lambda: _rate(_whole, WHOLE_STEPS),
    }
    langgraph = peer("langgraph_fan", STEPS)
    if langgraph is not None:
        contestants["langgraph"] = langgraph
    found = turns(contestants, rounds=ROUNDS)
    kernel, whole = statistics.median(found["kernel"]), statistics.median(found["whole"])
    bare = ("bare group commit", paired(found, "kernel", "bare"))
    yield at_least("fan.kernel.full", kernel, "steps/s", of=bare, must=0.25, aim=0.50)
    yield at_most("fan.kernel.commits", _commits(_kernel, STEPS), "commits/step", must=0.10, aim=0.10)
    # The goal speaks of steps as the bare group commit makes them; of whole ones as goal 2b does.
    yield at_least("fan.kernel.langgraph", kernel, "steps/s", of=beside_langgraph(found, "kernel"), must=5.0, aim=10.0)
    yield at_least("fan.whole.langgraph", whole, "steps/s", of=beside_langgraph(found, "whole"), must=1.5, aim=2.5)
    yield at_most("fan.whole.commits", _commits(_whole, WHOLE_STEPS), "commits/step", must=0.10, aim=0.10)
    with new_store("FULL") as store:
        share = steps_beside_a_slow_branch(store, WHOLE_STEPS, BRANCHES)
    of = ("all that they have to make, while one branch stands still", share)
    yield at_least("fan.fast_branches", share * 100, "% of their steps", of=of, must=1.0, aim=1.0)


def _kernel(store: Store, steps: int) -> None:
    kernel_steps(store, steps, BRANCHES)


def _whole(store: Store, steps: int) -> None:
    branch_steps(store, steps, BRANCHES)


def _rate(made: Callable[[Store, int], None], steps: int) -> float:
    with new_store("FULL") as store:
        begin = time.perf_counter()
        made(store, steps)
        return steps / (time.perf_counter() - begin)


def _commits(made: Callable[[Store, int], None], steps: int) -> float:
    with new_store("FULL") as store:
        made(store, steps)
        return store.commits / steps
