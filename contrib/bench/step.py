"""Goals 2a and 2b: kernel steps and whole steps go through the loop, rates beside a bare loop come out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from harness_hookspecs.store import Store

from ._kernel import bare_rate, kernel_steps
from ._peers import peer
from ._stores import new_store
from ._whole import STEPS, ready_steps
from .measure import Figure, at_least, at_most, cpu_microseconds, medians, paired, turns

__all__ = ["NAME", "run"]

NAME = "step"

ROUNDS = 7


def run() -> Iterator[Figure]:
    """Rates on the disk with FULL, CPU with fsync out of the way (NORMAL), commits counted at the store."""
    peers = {name: run for name in ("langgraph_sync", "dbos_sqlite") if (run := peer(name, STEPS)) is not None}
    full = turns(
        {
            "kernel": lambda: _rate(_kernel),
            "bare": lambda: bare_rate(STEPS),
            "whole": lambda: _rate(ready_steps),
            **peers,
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
    yield from _beside_peers(full)


def _beside_peers(full: Mapping[str, list[float]]) -> Iterator[Figure]:
    """A whole step beside one step of each peer; one that is not there is taken at its share of a bare loop, quoted
    from a quiet machine (873 and 532 of 3,680 steps/s).
    """
    for name, quoted, must, aim in (("langgraph_sync", 873 / 3680, 1.5, 2.5), ("dbos_sqlite", 532 / 3680, 2.5, 4.2)):
        if name in full:
            beside = (name, paired(full, "whole", name))
        else:
            beside = (f"{name}, quoted, not run", paired(full, "whole", "bare") / quoted)
        yield at_least(f"step.whole.{name}", statistics.median(full["whole"]), "steps/s", of=beside, must=must, aim=aim)


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
