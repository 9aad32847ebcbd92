"""A number of branches and of steps goes in, the session loop makes them: requested and completed, nothing else.

A step is an effect on a worker thread, with a real vocabulary and real checks. Beside it stands what does the same in
bare statements: the least that requests, completes, folds and is durable.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from pysqlite3 import dbapi2 as sqlite

from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.shell.loop import SessionLoop
from harness_core.shell.loop_parts import LoopHooks
from harness_core.shell.ports import make_ports
from harness_hookspecs.events import check_payload
from harness_hookspecs.store import Store

from ._rig import STREAM

__all__ = ["bare_rate", "kernel_steps"]


def kernel_steps(store: Store, steps: int, branches: int = 1) -> None:
    """Make so many steps in all, each branch one after another and the branches side by side."""
    ports = make_ports("threads")
    machine = _StepMachine(steps // branches, branches)
    loop = SessionLoop(STREAM, ports=ports, store=store, machine=machine, hooks=LoopHooks(lambda effect: effect.key))
    loop.submit(None)
    loop.wait_quiescent()
    assert loop.state["completed"] == steps // branches * branches
    ports.close()


def _payload(effect_id: str) -> dict[str, Any]:
    visit_id = "stg_00000000000000000000000001"
    return {"effect_id": effect_id, "effect_class": "keyed", "visit_id": visit_id, "attempt": 1}


class _Effect:
    def __init__(self, branch: int, step: int) -> None:
        self.branch, self.step = branch, step
        self.key = f"eff_{branch:013d}{step:013d}"


class _StepMachine:
    """Each branch asks for one effect after another; a state is what is asked for next and what is under way."""

    waiting_types = frozenset({"context.requested"})

    def __init__(self, steps: int, branches: int) -> None:
        self._steps, self._branches = steps, branches

    def new_state(self) -> dict[str, Any]:
        ready = deque(_Effect(branch, 0) for branch in range(self._branches))
        return {"ready": ready, "open": {}, "completed": 0}

    def decide(self, command: Any, state: Any) -> Decision:
        error = {"name": "Done", "message": ""}
        return Decision((Fact("context.failed", {"effect_id": command, "error": error}),))

    def advance(self, state: Any, running: Collection[str]) -> Decision:
        return Decision(tuple(Fact("context.requested", _payload(effect.key)) for effect in state["ready"]))

    def evolve(self, state: Any, event: Event) -> None:
        if event.type == "context.requested":  # they come in the order in which they are ready
            effect = state["ready"].popleft()
            state["open"][effect.key] = effect
            return
        effect = state["open"].pop(event.payload["effect_id"])
        state["completed"] += 1
        if effect.step + 1 < self._steps:
            state["ready"].append(_Effect(effect.branch, effect.step + 1))

    def react(self, state: Any) -> list[_Effect]:
        return list(state["open"].values())

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


def bare_rate(steps: int, branches: int = 1) -> float:
    """Steps per second: two events a step, one transaction for one step of every branch, encoded and folded."""
    rounds = steps // branches
    with _bare() as database:
        state: dict[str, Any] = {"done": 0}
        begin = time.perf_counter()
        for step in range(rounds):
            rows = []
            for branch in range(branches):
                payload = orjson.dumps(_payload(f"eff_{branch:013d}{step:013d}"))
                seq = 2 * (step * branches + branch)
                rows += [(STREAM, seq, "requested", payload), (STREAM, seq + 1, "completed", payload)]
                state["done"] += 1
            _insert(database, rows)
        seconds = time.perf_counter() - begin
    assert state["done"] == rounds * branches
    return rounds * branches / seconds


@contextmanager
def _bare() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        database = sqlite.connect(f"{folder}/bare.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE events (stream TEXT, seq INTEGER, type TEXT, payload BLOB, UNIQUE (stream, seq))"
        )
        yield database
        database.close()


def _insert(database: Any, rows: list[tuple[Any, ...]]) -> None:
    if len(rows) == 2:  # one statement is a transaction of its own, the quickest there is
        database.execute("INSERT INTO events VALUES (?, ?, ?, ?), (?, ?, ?, ?)", (*rows[0], *rows[1]))
        return
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    database.execute("COMMIT")
