"""Goals 2a and 2b: kernel steps and whole steps go through the loop, rates beside a bare loop come out."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import orjson
from pysqlite3 import dbapi2 as sqlite

from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.shell.loop import SessionLoop
from harness_core.shell.loop_parts import LoopHooks
from harness_core.shell.ports import make_ports
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.events import check_payload
from harness_hookspecs.store import Store, StoredEvent
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from ._peers import PEERS, peer
from ._whole import SESSION_ID, STEPS, whole_steps
from .measure import Figure, at_least, at_most, cpu_microseconds, medians, paired, turns

__all__ = ["NAME", "run"]

NAME = "step"

ROUNDS = 7
STREAM = f"session:{SESSION_ID}"


def run() -> Iterator[Figure]:
    """Rates on the disk with FULL, CPU with fsync out of the way (NORMAL), commits counted at the store."""
    peers = {name: run for name in PEERS if (run := peer(name, STEPS)) is not None}
    full = turns(
        {
            "kernel": lambda: _rate(_kernel_steps),
            "bare": _bare_rate,
            "whole": lambda: _rate(whole_steps),
            **peers,
        },
        rounds=ROUNDS,
    )
    kernel = statistics.median(full["kernel"])
    bare = ("bare loop", paired(full, "kernel", "bare"))
    yield at_least("step.kernel.full", kernel, "steps/s", of=bare, must=0.60, aim=0.80)
    yield at_most("step.kernel.commits", _commits(_kernel_steps), "commits/step", must=1.05, aim=1.05)
    soft = medians(
        {"kernel": lambda: _cpu(_kernel_steps), "whole": lambda: _cpu(whole_steps)},
        rounds=ROUNDS,
    )
    yield at_most("step.kernel.cpu", soft["kernel"], "us CPU/step", must=120.0, aim=45.0)
    yield at_most("step.whole.commits", _commits(whole_steps), "commits/step", must=1.05, aim=1.05)
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


Steps = Callable[["CountingStore"], None]


class CountingStore:
    """The store, and how often it committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits = 0
        self.ids = itertools.count(1)

    def append(self, *args: Any, **kwargs: Any) -> tuple[StoredEvent, ...]:
        self.commits += 1
        return self._store.append(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def _store(synchronous: Literal["FULL", "NORMAL"]) -> Iterator[CountingStore]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-")))
        store = open_store(Settings(synchronous=synchronous), FakeHost(folder))
        stack.callback(store.close)
        yield CountingStore(store)


def _rate(steps: Steps) -> float:
    with _store("FULL") as store:
        begin = time.perf_counter()
        steps(store)
        return STEPS / (time.perf_counter() - begin)


def _cpu(steps: Steps) -> float:
    with _store("NORMAL") as store:
        return cpu_microseconds(lambda: steps(store), STEPS)


def _commits(steps: Steps) -> float:
    with _store("NORMAL") as store:
        steps(store)
        return store.commits / STEPS


# -- the bare loop: the least that requests, completes, folds and is durable ---


def _bare_rate() -> float:
    """Two events a step in one transaction of the same library, encoded and folded."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-"))
        database = sqlite.connect(f"{folder}/bare.db", isolation_level=None)
        stack.callback(database.close)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE events (stream TEXT, seq INTEGER, type TEXT, payload BLOB, UNIQUE (stream, seq))"
        )
        insert = "INSERT INTO events VALUES (?, ?, ?, ?), (?, ?, ?, ?)"
        state: dict[str, Any] = {"done": 0}
        begin = time.perf_counter()
        for step in range(STEPS):
            payload = orjson.dumps(_payload(step))
            database.execute(
                insert, (STREAM, 2 * step, "requested", payload, STREAM, 2 * step + 1, "completed", payload)
            )
            state["done"] += 1
        return STEPS / (time.perf_counter() - begin)


def _payload(step: int) -> dict[str, Any]:
    return {
        "effect_id": f"eff_{step:026d}",
        "effect_class": "keyed",
        "visit_id": "stg_00000000000000000000000001",
        "attempt": 1,
    }


# -- 2a: the loop with a machine that asks for one effect after another ---


class _Effect:
    def __init__(self, step: int) -> None:
        self.key = str(step)
        self.step = step


class _StepMachine:
    """Requested and completed, a real vocabulary and real checks, nothing else."""

    waiting_types = frozenset({"context.requested"})

    def new_state(self) -> dict[str, int]:
        return {"requested": 0, "completed": 0}

    def decide(self, command: Any, state: Any) -> Decision:
        error = {"name": "Done", "message": ""}
        return Decision((Fact("context.failed", {"effect_id": f"eff_{command:026d}", "error": error}),))

    def advance(self, state: Any, running: frozenset[str]) -> Decision:
        if state["requested"] > state["completed"] or state["requested"] == STEPS:
            return Decision()
        return Decision((Fact("context.requested", _payload(state["requested"])),))

    def evolve(self, state: Any, event: Event) -> None:
        state["requested" if event.type == "context.requested" else "completed"] += 1

    def react(self, state: Any) -> list[_Effect]:
        return [_Effect(state["completed"])] if state["requested"] > state["completed"] else []

    def check(self, decision: Decision) -> None:
        for fact in decision.facts:
            check_payload(fact.type, fact.payload)

    def cause(self, fact: Fact, state: Any) -> None:
        return None

    def version(self, event_type: str) -> int:
        return 1

    def blob(self, digest: str) -> bytes:
        return b""

    def summary(self, state: Any, events: Any) -> None:
        return None


def _kernel_steps(store: CountingStore) -> None:
    loop = SessionLoop(
        STREAM,
        ports=make_ports("threads"),
        store=store,
        machine=_StepMachine(),
        hooks=LoopHooks(lambda effect: effect.step),
    )
    loop.submit(None)
    loop.wait_quiescent()
    assert loop.state["completed"] == STEPS
