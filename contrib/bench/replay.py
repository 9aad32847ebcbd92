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

from ._agent import agent_turns
from ._inference import skipped_seconds
from ._peers import peer
from ._rig import SESSION_ID, STREAM
from ._whole import whole_steps
from .measure import Figure, at_least, at_most, cpu_microseconds, medians

__all__ = ["NAME", "run"]

NAME = "replay"

FEW, MANY = 1_110, 11_110  # steps, nine events each: ten thousand events and a hundred thousand
OPENED = (20, 800)  # turns of a role call, and role calls: a hundred thousand events and some
PEER_EVENTS = 10_000
QUOTED = 47 / 585
"""The rate of eventsourcing beside two columns, orjson and a fold, quoted from a quiet machine (thousand events/s)."""
ROUNDS = 5


def run() -> Iterator[Figure]:
    """From the file to a state; the length of a log must not matter."""
    few, many = _rates(FEW), _rates(MANY)
    bare = ("two columns, orjson, a count", many["ours"] / many["bare"])
    yield at_least("replay.fold", many["ours"], "events/s CPU", of=bare, must=0.40, aim=0.60)
    short = (f"a log of {FEW} steps", many["ours"] / few["ours"])
    yield at_least(f"replay.of_{MANY}_steps", many["ours"], "events/s CPU", of=short, must=0.90, aim=1.0)
    yield at_least("replay.eventsourcing", few["ours"], "events/s CPU", of=_beside(few), must=4.0, aim=6.0)
    yield at_most("replay.opens_100000_events", _opened_milliseconds(), "ms CPU", must=20.0, aim=5.0)
    yield at_most("replay.skip_inference", skipped_seconds(), "s CPU for 1000 turns", must=0.2, aim=0.03)


def _beside(few: dict[str, float]) -> tuple[str, float]:
    get = peer("eventsourcing_get", PEER_EVENTS)
    if get is None:
        return "eventsourcing, quoted, not run", few["ours"] / few["bare"] / QUOTED
    return "eventsourcing, repository.get", few["ours"] / get()


def _rates(steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        host = FakeHost(Path(folder))
        store = open_store(Settings(synchronous="NORMAL"), host)
        whole_steps(store, steps)
        count = store.head(STREAM).seq
        file = str(host.data_dir / "harness.db")
        contestants = {
            "ours": lambda: cpu_microseconds(lambda: _fold(store, count), count),
            "bare": lambda: cpu_microseconds(lambda: _bare(file, count), count),
        }
        found = medians(contestants, rounds=ROUNDS)
        store.close()
    return {name: 1e6 / cost for name, cost in found.items()}


def _fold(store: Store, count: int) -> None:
    nothing: Any = None
    machine = SessionMachine(SESSION_ID, nothing, store.blob)
    assert fold_on(store, machine, events_apart=count + 1).seq == count  # from the first event: none is kept


def _opened_milliseconds() -> float:
    """CPU of opening a long session of the agent's, whose snapshots somebody before has kept."""
    with tempfile.TemporaryDirectory() as folder:
        host = FakeHost(Path(folder))
        store = open_store(Settings(synchronous="NORMAL"), host)
        agent_turns(store, *OPENED)
        assert store.head(STREAM).seq > 100_000
        store.close()
        _open(host)  # keeps the snapshots
        return medians({"opens": lambda: cpu_microseconds(lambda: _open(host), 1000)}, rounds=ROUNDS)["opens"]


def _open(host: FakeHost) -> None:
    """What whoever goes on with a session does first: open the log and fold on from the nearest snapshot."""
    nothing: Any = None
    store = open_store(Settings(), host)
    fold_on(store, SessionMachine(SESSION_ID, nothing, store.blob))
    store.close()


def _bare(file: str, count: int) -> None:
    """The least that reads a log: every payload decoded, every type counted."""
    types: Counter[str] = Counter()
    with closing(sqlite.connect(file)) as connection:
        for envelope, payload in connection.execute("SELECT envelope, payload FROM events ORDER BY seq"):
            orjson.loads(payload)
            types[envelope.split("\n", 2)[1]] += 1
    assert types.total() == count
