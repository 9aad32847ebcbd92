"""Goal 4: a recorded session goes in, the rates at which it is folded come out, beside rows, orjson and a count."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
from pysqlite3 import dbapi2 as sqlite

from harness_core.shell.machine import SessionMachine
from harness_core.shell.snapshots import fold_on
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.store import Store
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from ._whole import SESSION_ID, whole_steps
from .measure import Figure, at_least, cpu_microseconds, medians

__all__ = ["NAME", "run"]

NAME = "replay"

FEW, MANY = 1_110, 11_110  # steps, nine events each: ten thousand events and a hundred thousand
ROUNDS = 5


def run() -> Iterator[Figure]:
    """From the file to a state; the length of a log must not matter."""
    few, many = _rates(FEW), _rates(MANY)
    bare = ("two columns, orjson, a count", many["ours"] / many["bare"])
    yield at_least("replay.fold", many["ours"], "events/s CPU", of=bare, must=0.40, aim=0.60)
    short = (f"a log of {FEW} steps", many["ours"] / few["ours"])
    yield at_least(f"replay.of_{MANY}_steps", many["ours"], "events/s CPU", of=short, must=0.90, aim=1.0)


def _rates(steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        host = FakeHost(Path(folder))
        store = open_store(Settings(synchronous="NORMAL"), host)
        whole_steps(store, steps)
        count = store.head(f"session:{SESSION_ID}").seq
        file = str(host.data_dir / "harness.db")
        contestants = {
            "ours": lambda: cpu_microseconds(lambda: _fold(store, count), count),
            "bare": lambda: cpu_microseconds(lambda: _bare(file, count), count),
        }
        found = medians(contestants, rounds=ROUNDS)
        store.close()
    return {name: 1e6 / microseconds for name, microseconds in found.items()}


def _fold(store: Store, count: int) -> None:
    nothing: Any = None
    machine = SessionMachine(SESSION_ID, nothing, store.blob)
    assert fold_on(store, machine, events_apart=count + 1).seq == count  # from the first event: none is kept


def _bare(file: str, count: int) -> None:
    """The least that reads a log: every payload decoded, every type counted."""
    types: Counter[str] = Counter()
    with closing(sqlite.connect(file)) as connection:
        for envelope, payload in connection.execute("SELECT envelope, payload FROM events ORDER BY seq"):
            orjson.loads(payload)
            types[envelope.split("\n", 2)[1]] += 1
    assert types.total() == count
