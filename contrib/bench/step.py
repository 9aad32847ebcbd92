"""Goals 2a and 2b: kernel steps and whole steps go through the loop, rates beside a bare loop come out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from harness_hookspecs.store import Store

from ._kernel import bare_rate, kernel_steps
from ._peers import beside_peers, peers_found
from ._stores import new_store
from ._whole import STEPS, ready_steps
from .measure import Figure, at_least, at_most, cpu_microseconds, medians, paired, turns

__all__ = ["NAME", "run"]

NAME = "step"

ROUNDS = 7


def run() -> Iterator[Figure]:
    """Rates on the disk with FULL, CPU with fsync out of the way (NORMAL), commits counted at the store."""
    full = turns(
        {
            "kernel": lambda: _rate(_kernel),
            "bare": lambda: bare_rate(STEPS),
            "whole": lambda: _rate(ready_steps),
            **peers_found(STEPS),
        },
        rounds=ROUNDS,
    )
    kernel = statistics.median(full["kernel"])
    bare = ("bare loop", paired(full, "kernel", "bare"))
    yield at_least("step.kernel.full", kernel, "steps/s", of=bare, must=0.60, aim=0.80)
    yield at_most("step.kernel.commits", _commits(_kernel), "commits/step", must=1.05, aim=1.05)
    soft = medians(
        {"kernel": lambda: _cpu(_kernel), "whole": lambda: _cpu(ready_steps)},
        rounds=ROUNDS,
    )
    yield at_most("step.kernel.cpu", soft["kernel"], "us CPU/step", must=120.0, aim=45.0)
    yield at_most("step.whole.commits", _commits(ready_steps), "commits/step", must=1.05, aim=1.05)
    yield at_most("step.whole.cpu", soft["whole"], "us CPU/step", must=700.0, aim=300.0)
    yield from beside_peers("step.whole", full, "whole")


Ready = Callable[[Store], AbstractContextManager[Callable[[], None]]]
"""Steps of one kind that stand ready in a store; what is given makes all of them."""


@contextmanager
def _kernel(store: Store) -> Iterator[Callable[[], None]]:
    yield lambda: kernel_steps(store, STEPS)


def _rate(ready: Ready) -> float:
    with new_store("FULL") as store, ready(store) as play:
        begin = time.perf_counter()
        play()
        return STEPS / (time.perf_counter() - begin)


def _cpu(ready: Ready) -> float:
    with new_store("NORMAL") as store, ready(store) as play:
        return cpu_microseconds(play, STEPS)


def _commits(ready: Ready) -> float:
    with new_store("NORMAL") as store, ready(store) as play:
        play()
        return store.commits / STEPS
