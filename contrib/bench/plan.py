"""Goals 2b and 3 for plans: a thousand steps in one branch and in 100 go in, rates beside bare statements come out."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator

from harness_core.shell.host import SWITCH_INTERVAL_SECONDS

from ._kernel import bare_rate
from ._peers import beside_langgraph, beside_peers, peer, peers_found
from ._plans import STEPS, Commits, planned, raw_rate
from .measure import Figure, at_least, at_most, paired, turns

__all__ = ["BRANCHES", "NAME", "run"]

NAME = "plan"

BRANCHES, ROUNDS = 100, 5


def run() -> Iterator[Figure]:
    """On the disk with FULL; CPU with fsync out of the way (NORMAL), and under the switch interval of a host."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        yield from _one_after_another()
        yield from _side_by_side()
    finally:
        sys.setswitchinterval(before)


def _one_after_another() -> Iterator[Figure]:
    found, last = _taken(1, {"bare": lambda: bare_rate(STEPS), **peers_found(STEPS)})
    yield _beside_raw("plan.sequence.full", found, must=0.15, aim=0.30)
    yield from beside_peers("plan.sequence", found, "plan")
    yield at_most("plan.sequence.commits", len(last.batches) / STEPS, "commits/step", must=1.05, aim=1.05)
    yield _cpu("plan.sequence.cpu", 1)


def _side_by_side() -> Iterator[Figure]:
    langgraph = peer("langgraph_fan", STEPS)
    others = {"bare": lambda: bare_rate(STEPS, BRANCHES), **({} if langgraph is None else {"langgraph": langgraph})}
    found, last = _taken(BRANCHES, others)
    yield _beside_raw("plan.branches.full", found, must=0.05, aim=0.10)
    beside, rate = beside_langgraph(found, "plan"), statistics.median(found["plan"])
    yield at_least("plan.branches.langgraph", rate, "steps/s", of=beside, must=1.5, aim=2.5)
    yield at_most("plan.branches.commits", len(last.batches) / STEPS, "commits/step", must=0.10, aim=0.10)
    yield _cpu("plan.branches.cpu", BRANCHES)


def _taken(branches: int, others: dict[str, Callable[[], float]]) -> tuple[dict[str, list[float]], Commits]:
    """What plans took, bare statements that write what the plan of the same turn wrote, and the others."""
    runs: list[Commits] = []

    def plan() -> float:
        runs.append(planned("FULL", branches))
        return STEPS / runs[-1].seconds

    found = turns({"plan": plan, "raw": lambda: raw_rate(runs[-1]), **others}, rounds=ROUNDS)
    return found, runs[-1]


def _beside_raw(bench: str, found: dict[str, list[float]], *, must: float, aim: float) -> Figure:
    of = ("raw sqlite3, the same commits", paired(found, "plan", "raw"))
    return at_least(bench, statistics.median(found["plan"]), "steps/s", of=of, must=must, aim=aim)


def _cpu(bench: str, branches: int) -> Figure:
    taken = statistics.median(planned("NORMAL", branches).cpu_seconds for _ in range(ROUNDS))
    return at_most(bench, taken / STEPS * 1e6, "us CPU/step", must=700.0, aim=300.0)
