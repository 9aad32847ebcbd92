"""A mode and a count go in, one thing is done once, and one JSON line comes out, beside which others can be run.

``python -m contrib.bench.modes MODE [COUNT] [FOLDER]``: ``seq`` makes so many whole steps one after another, ``fan`` as
many on 100 branches, ``rehydrate`` folds a session of so many steps, ``agent`` makes so many turns of an agent with a
tool call each, all with every event on the disk. ``kill-child`` makes a session of so many calls in a folder, to be
killed from outside; ``kill-resume`` goes on with it there and says what came of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_core.shell.host import SWITCH_INTERVAL_SECONDS
from harness_core.shell.machine import SessionMachine
from harness_core.shell.snapshots import fold_on
from harness_hookspecs.store import Store

from ._agent import agent_turns
from ._branches import branch_steps
from ._kill import Site
from ._rig import SESSION_ID, STREAM
from ._stores import new_store
from ._whole import whole_steps

__all__ = ["MODES", "main"]

BRANCHES = 100
Printed = Mapping[str, Any]


def _made(count: int, make: Callable[[Store], object]) -> Printed:
    """What it costs to make so many steps on a store that waits for the disk."""
    with new_store("FULL") as store:
        begin, used = time.perf_counter(), time.process_time()
        make(store)
        return {**_costs(count, begin, used), "commits_per_step": round(store.commits / count, 4)}


def _costs(count: int, begin: float, used: float) -> dict[str, float]:
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    rates = {"per_second": round(count / seconds, 1), "cpu_us": round(cpu / count * 1e6, 1)}
    return {"seconds": round(seconds, 4), **rates}


def seq(count: int, folder: Path) -> Printed:
    """Whole steps, one after another."""
    return _made(count, lambda store: whole_steps(store, count))


def fan(count: int, folder: Path) -> Printed:
    """Tool calls on 100 branches; the count is rounded down to a multiple of two each."""
    steps = max(1, count // (2 * BRANCHES)) * 2 * BRANCHES
    return {"count": steps, "branches": BRANCHES, **_made(steps, lambda store: branch_steps(store, steps, BRANCHES))}


def agent(count: int, folder: Path) -> Printed:
    """Turns of one agent, each with a model call and a tool call."""
    return _made(count, lambda store: agent_turns(store, count))


def rehydrate(count: int, folder: Path) -> Printed:
    """A session of so many steps from its first event on, then again with the snapshots that were kept on the way."""
    with new_store("NORMAL") as store:
        whole_steps(store, count)
        events = store.head(STREAM).seq
        begin, used = time.perf_counter(), time.process_time()
        _fold(store)
        whole = _costs(events, begin, used)
        begin = time.perf_counter()
        _fold(store)
        return {"events": events, **whole, "again_ms": round((time.perf_counter() - begin) * 1000, 2)}


def _fold(store: Store) -> None:
    nothing: Any = None
    fold_on(store, SessionMachine(SESSION_ID, nothing, store.blob))


def kill_child(count: int, folder: Path) -> Printed:
    """Become the process of a session of so many calls; its line comes when nobody kills it."""
    folder.mkdir(parents=True)
    site = Site(folder, "seq", count)
    site.make()
    site.become()


def kill_resume(count: int, folder: Path) -> Printed:
    """Go on, in a new process, with the session of a ``kill-child`` that was killed, and see what came of it."""
    return Site(folder, "seq", count).go_on()._asdict()


MODES: Mapping[str, Callable[[int, Path], Printed]] = {
    "seq": seq,
    "fan": fan,
    "rehydrate": rehydrate,
    "agent": agent,
    "kill-child": kill_child,
    "kill-resume": kill_resume,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one thing and print its line."""
    parser = argparse.ArgumentParser(prog="python -m contrib.bench.modes", description="Do one thing, print one line.")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("count", nargs="?", type=int, help="steps, turns or calls; of kill-* at most 99")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(".bench-kill"), help="of kill-*: a new one")
    given = parser.parse_args(arguments)
    count = given.count or (60 if given.mode.startswith("kill") else 300)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)  # as a host does
    print(json.dumps({"mode": given.mode, "count": count, **MODES[given.mode](count, given.folder)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
