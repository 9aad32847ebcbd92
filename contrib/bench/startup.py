"""Goal 7: imports go into fresh processes, their CPU time comes out beside that of the libraries alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from .measure import Figure, at_most, medians

__all__ = ["NAME", "run"]

NAME = "startup"

IMPORTS = {
    "bare": "pass",
    "libraries": "import peewee, pydantic, orjson",
    "ours": "import harness_store_sqlite.store; from harness_core import Host",
}
ROUNDS = 11


def run() -> Iterator[Figure]:
    """The interpreter's own start is taken off."""
    found = medians({name: _started(code) for name, code in IMPORTS.items()}, rounds=ROUNDS)
    ours, libraries = found["ours"] - found["bare"], found["libraries"] - found["bare"]
    unit = f"times peewee, pydantic and orjson ({libraries:.0f} ms CPU)"
    yield at_most("startup.import", ours / libraries, unit, must=1.3, aim=1.0)


def _started(code: str) -> Callable[[], float]:
    def milliseconds() -> float:
        process = subprocess.Popen([sys.executable, "-c", code])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, code
        return (used.ru_utime + used.ru_stime) * 1000

    return milliseconds
