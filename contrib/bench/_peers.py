"""Other runtimes: a name goes in, a function that runs it once in an environment of its own comes out, or nothing.

What they took beside what we took comes out as figures; one that is not there is quoted from a quiet machine, as its
share of a bare loop there.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .measure import Figure, at_least, paired

__all__ = ["PEERS", "beside_langgraph", "beside_peers", "peer", "peers_found"]

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent.parent / ".bench"
PEERS = {
    "langgraph_sync": ("langgraph", "langgraph-checkpoint-sqlite"),
    "langgraph_fan": ("langgraph", "langgraph-checkpoint-sqlite"),
    "dbos_sqlite": ("dbos",),
    "eventsourcing_get": ("eventsourcing",),
}
"""What each contestant of ``contestants/`` needs, the newest there is: it is they who are compared."""

_ONE_BY_ONE = (("langgraph_sync", 873 / 3680, 1.5, 2.5), ("dbos_sqlite", 532 / 3680, 2.5, 4.2))
"""Who makes steps one after another, its quoted share of a bare loop (steps/s), and what goal 2b asks for beside it."""
_FAN_QUOTED = 1488 / 31486
"""LangGraph's rate beside the bare group commit, quoted likewise."""


def peers_found(count: int) -> dict[str, Callable[[], float]]:
    """Those of goal 2b that are there, to be run for so many steps."""
    return {name: run for name, *_ in _ONE_BY_ONE if (run := peer(name, count)) is not None}


def beside_peers(bench: str, found: Mapping[str, list[float]], ours: str) -> Iterator[Figure]:
    """A whole step beside one step of each peer of goal 2b."""
    for name, quoted, must, aim in _ONE_BY_ONE:
        if name in found:
            beside = (name, paired(found, ours, name))
        else:
            beside = (f"{name}, quoted, not run", paired(found, ours, "bare") / quoted)
        yield at_least(f"{bench}.{name}", statistics.median(found[ours]), "steps/s", of=beside, must=must, aim=aim)


def beside_langgraph(found: Mapping[str, list[float]], ours: str) -> tuple[str, float]:
    """What 100 branches of ours are beside LangGraph's, and how it was run."""
    if "langgraph" in found:
        return "LangGraph, durability=sync", paired(found, ours, "langgraph")
    return "LangGraph, quoted, not run", paired(found, ours, "bare") / _FAN_QUOTED


def peer(name: str, count: int) -> Callable[[], float] | None:
    """Install a peer where it is not yet, and give what runs it: its steps (or events) per second.

    ``None``, and a line on stderr, where it cannot be installed.
    """
    folder = ENVIRONMENTS / PEERS[name][0]  # contestants of one peer share it
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        call = [str(python), "-m", "pip", "install", "--quiet", *PEERS[name]]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{name} does not install here and is quoted, not run: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        (folder / "ready").touch()

    def rate() -> float:
        call = [str(python), str(HERE / "contestants" / f"{name}.py"), str(count)]
        return float(subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()[-1])

    return rate
