"""Goal 10b: commits go into the store while other threads compute in Python, their rate beside quiet comes out."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness_core.shell.host import SWITCH_INTERVAL_SECONDS
from harness_hookspecs.contracts.store_case import draft

from ._rig import STREAM
from ._stores import new_store
from .measure import Figure, at_least, paired, turns

__all__ = ["NAME", "run"]

NAME = "busy"

SECONDS, ROUNDS = 0.5, 5
CASES = ((1, "one", 0.10, 0.40), (4, "four", 0.03, 0.15))  # threads, their name, must, aim


def run() -> Iterator[Figure]:
    """Two events a commit, FULL, under the switch interval that a host sets."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        contestants = {0: lambda: _rate(0)} | {threads: lambda n=threads: _rate(n) for threads, *_ in CASES}
        found = turns({str(threads): rate for threads, rate in contestants.items()}, rounds=ROUNDS)
    finally:
        sys.setswitchinterval(before)
    for threads, name, must, aim in CASES:
        quiet = ("no other thread", paired(found, str(threads), "0"))
        rate = statistics.median(found[str(threads)])
        yield at_least(f"busy.{name}", rate, "commits/s", of=quiet, must=must, aim=aim)


def _rate(threads: int) -> float:
    with new_store("FULL") as store, _computing(threads):
        begin, commits = time.perf_counter(), 0
        while (spent := time.perf_counter() - begin) < SECONDS:
            drafts = [draft(2 * commits + number) for number in (0, 1)]
            store.append(STREAM, drafts, expected_seq=2 * commits)
            commits += 1
        return commits / spent


@contextmanager
def _computing(threads: int) -> Iterator[None]:
    """So many threads that never wait for anything, as a plugin that parses or compares would."""
    over = threading.Event()

    def compute() -> None:
        number = 0
        while not over.is_set():
            for _ in range(1000):
                number = (number * 31 + 7) % 1_000_003

    workers = [threading.Thread(target=compute, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        over.set()
        for worker in workers:
            worker.join()
