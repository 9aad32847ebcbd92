"""The number of a child in; the child, its group and every descendant that can still be found killed."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psutil import Process

__all__ = ["kill_tree"]

_LOOKS = 8


def kill_tree(pid: int) -> None:
    """Kill a child that was not reaped yet, its process group and its descendants.

    Descendants are looked for while the child lives, since they lose their parent with it, and stopped before they
    are killed, so that none starts another meanwhile.
    """
    import psutil  # late: only what does not end by itself needs it

    _signal_group(pid, signal.SIGSTOP)
    found: set[Process] = set()
    with contextlib.suppress(psutil.Error):
        for _ in range(_LOOKS):
            new = set(psutil.Process(pid).children(recursive=True)) - found
            if not new:
                break
            found |= new
            for process in new:
                with contextlib.suppress(psutil.Error):
                    process.suspend()
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _signal_group(pid, signal.SIGKILL)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
