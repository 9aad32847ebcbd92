"""How figures are taken: contestants go in, medians of interleaved rounds come out, and the verdict on each."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Figure", "at_least", "at_most", "cpu_microseconds", "medians", "microseconds", "paired", "turns"]


class Figure(NamedTuple):
    """One line of output; ``must`` and ``aim`` are bounds of the ratio where there is one, else of the value."""

    bench: str
    value: float
    unit: str
    ratio: float | None
    against: str | None
    must: float
    aim: float
    ok: bool


def medians(contestants: Mapping[str, Callable[[], float]], *, rounds: int = 5) -> dict[str, float]:
    """The median of each contestant over so many turns."""
    return {name: statistics.median(values) for name, values in turns(contestants, rounds=rounds).items()}


def turns(contestants: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, list[float]]:
    """Let the contestants run in turns, so that a slow minute hits all of them; gives what each of them took.

    What was there before is kept out of the collections between the turns: a walk over all of it would leave cold
    caches to a turn that takes a millisecond, and would be what is measured.
    """
    results: dict[str, list[float]] = {name: [] for name in contestants}
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for name, run in contestants.items():
                gc.collect()
                results[name].append(run())
    finally:
        gc.unfreeze()
    return results


def paired(results: Mapping[str, list[float]], one: str, other: str) -> float:
    """The median of the ratios of each turn: a disk that is quick now and slow then was the same for both of a turn."""
    return statistics.median(a / b for a, b in zip(results[one], results[other], strict=True))


def microseconds(function: Callable[[], object], count: int) -> float:
    """Microseconds per item of one call that handles ``count`` items."""
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) / count * 1e6


def cpu_microseconds(function: Callable[[], object], count: int) -> float:
    """The same of this process's CPU time, for what neither waits nor writes: neighbours disturb it less."""
    begin = time.process_time()
    function()
    return (time.process_time() - begin) / count * 1e6


def at_least(bench: str, value: float, unit: str, *, of: tuple[str, float], must: float, aim: float) -> Figure:
    """A rate, judged by its ratio to another rate, given with the other's name; the greater the better."""
    against, ratio = of
    return Figure(bench, round(value, 2), unit, round(ratio, 3), against, must, aim, ratio >= must)


def at_most(
    bench: str, value: float, unit: str, *, of: tuple[str, float] | None = None, must: float, aim: float
) -> Figure:
    """A cost, judged by itself or by its ratio to another cost; the smaller the better."""
    if of is None:
        return Figure(bench, round(value, 3), unit, None, None, must, aim, value <= must)
    against, other = of
    ratio = value / other
    return Figure(bench, round(value, 3), unit, round(ratio, 3), against, must, aim, ratio <= must)
