"""Commands that note their processes, and a host of their own for what may not happen to the one that runs the tests.

Shared by the tests of ``Processes``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness_core.shell.ports import HostPorts
from harness_hookspecs.host import Completed

__all__ = ["LINUX_ONLY", "QUICK_SECONDS", "TREE", "guard_of", "host", "kill_noted", "lives", "noted", "shell", "until"]

ROOT = Path(__file__).resolve().parents[1]
QUICK_SECONDS = 10.0  # far below the sleeps of the commands, far above what a busy machine needs
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a process of ours")
TREE = "note $$; sh -c ': > \"$PIDS/$$\"; sleep 300; true' & setsid sh -c ': > \"$PIDS/$$\"; sleep 300; true'"
"""Notes itself, a child and a child in a session of its own."""


def until(holds: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + QUICK_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def noted(folder: Path) -> list[int]:
    """The numbers that commands have noted."""
    return [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]


def kill_noted(folder: Path) -> None:
    """End what a broken promise has left."""
    for pid in noted(folder):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.create_time() < (folder / str(pid)).stat().st_mtime + 1.0:  # else the number is another's by now
                for one in (*process.children(recursive=True), process):
                    one.kill()


def lives(pid: int) -> bool:
    """Whether it can still do something: who adopts what has ended may leave it a zombie for a while."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def shell(ports: HostPorts, folder: Path, script: str, **options: Any) -> Completed:
    """Run a script that may ``note`` a number and wait until one is ``noted``."""
    note = 'note() { : > "$PIDS/$1"; }\nnoted() { until ls "$PIDS" | grep -q .; do :; done; }\n'
    env = {"PATH": os.environ["PATH"], "PIDS": str(folder)}
    return ports.processes.run(["sh", "-c", note + script], env=env, **options)


@contextmanager
def host(code: str, *words: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with ``ports``, and its output; it and its forks are gone afterwards, and so is what was noted."""
    begin = "import os, signal, sys\nfrom harness_core.shell.ports import make_ports\nports = make_ports('threads')\n"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PIDS": str(folder)}
    argv = [sys.executable, "-c", begin + code, *words]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as process:

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        late = threading.Timer(3 * QUICK_SECONDS, kill)  # what waits for its output fails then
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            kill()
            kill_noted(folder)


def guard_of(pid: int) -> psutil.Process:
    """The guard of a command, by the number of it or of what it started."""
    process = psutil.Process(pid)
    while "guard.py" not in " ".join(process.cmdline()):
        parent = process.parent()
        assert parent is not None
        process = parent
    return process
