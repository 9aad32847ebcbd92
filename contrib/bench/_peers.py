"""Other runtimes: a name goes in, a function that runs it once in an environment of its own comes out, or nothing."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

__all__ = ["PEERS", "peer"]

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent.parent / ".bench"
PEERS = {
    "langgraph_sync": ("langgraph", "langgraph-checkpoint-sqlite"),
    "langgraph_fan": ("langgraph", "langgraph-checkpoint-sqlite"),
    "dbos_sqlite": ("dbos",),
    "eventsourcing_get": ("eventsourcing",),
}
"""What each contestant of ``contestants/`` needs, the newest there is: it is they who are compared."""


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
