"""Goal 6: logs of two lengths are read from the first event to the last, the peak of a process's memory comes out.

Read by the store alone, and folded to a session's state by what looks at sessions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import STREAM, draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from ._rig import SESSION_ID
from ._whole import whole_steps
from .measure import Figure, at_most

__all__ = ["NAME", "run"]

NAME = "memory"

FEW, MANY = 10_000, 100_000
BATCH = 100
PEAK = """
from re import search
print(int(search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) / 1024)
"""
"""Not the resource usage, which remembers what the process was before it became this program: a copy of its parent."""

READER = f"""
import sys
from pathlib import Path
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import STREAM
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store
store = open_store(Settings(), FakeHost(Path(sys.argv[1])))
assert sum(1 for _ in store.read(STREAM)) == int(sys.argv[2])
{PEAK}"""
STEPS = 11_110  # nine events each: a hundred thousand
FOLDER = f"""
import sys
from pathlib import Path
from harness_core.shell.replaying import fold_session
from harness_hookspecs.contracts.host import FakeHost
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store
store = open_store(Settings(), FakeHost(Path(sys.argv[1])))
assert fold_session(store, sys.argv[2]).seq == int(sys.argv[3])
{PEAK}"""


def run() -> Iterator[Figure]:
    """In a process of its own each, since a peak never goes down again."""
    few, many = _peak_mebibytes(FEW), _peak_mebibytes(MANY)
    yield at_most(f"memory.of_{MANY}_events", many, "MiB", must=90.0, aim=65.0)
    yield at_most("memory.constant", many / few, f"{MANY} against {FEW} events", must=1.10, aim=1.0)
    yield at_most(f"memory.of_{STEPS}_steps_folded", _folding_mebibytes(), "MiB", must=90.0, aim=65.0)


def _peak_mebibytes(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Settings(synchronous="NORMAL"), FakeHost(Path(folder)))
        for number in range(0, count, BATCH):
            store.append(STREAM, [draft(number + index) for index in range(BATCH)], expected_seq=number)
        store.close()
        return _peak(READER, folder, str(count))


def _folding_mebibytes() -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Settings(synchronous="NORMAL"), FakeHost(Path(folder)))
        whole_steps(store, STEPS)
        count = store.head(f"session:{SESSION_ID}").seq
        store.close()
        return _peak(FOLDER, folder, SESSION_ID, str(count))


def _peak(code: str, *words: str) -> float:
    command = [sys.executable, "-c", code, *words]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
