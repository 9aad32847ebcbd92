"""The number of a child in; its group, its descendants and whoever holds its pipes killed."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psutil import Process

__all__ = ["kill_all", "kill_pipe_holders", "started_ticks"]

_LOOKS = 8
_PROC = "/proc"


def kill_all(pid: int, *, descendants: bool) -> None:
    """Kill the process group of a child that was not reaped yet, and on request every descendant.

    Descendants are looked for while the child lives, since they lose their parent with it, and stopped before they
    are killed, so that none starts another meanwhile.
    """
    if descendants:
        _kill_tree(pid)
    _signal_group(pid, signal.SIGKILL)


def _kill_tree(pid: int) -> None:
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


def started_ticks(pid: int) -> int:
    """When a process started, in the kernel's ticks; ``-1`` where there is nothing to read it from."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # its name, in brackets, may hold anything
    except OSError:
        return -1
    return int(fields[19])


def kill_pipe_holders(fds: Collection[int], since_ticks: int) -> None:
    """Kill every process that can still write into one of these pipes and is no older than the child (Linux only).

    An older one, a daemon that was handed the pipe, is nobody's descendant here. Only the end for writing counts: a
    process that this one is starting in this moment has the end for reading too.
    """
    if since_ticks < 0:
        return
    wanted = {f"pipe:[{os.fstat(fd).st_ino}]" for fd in fds}
    for pid in _processes():
        folder = f"{_PROC}/{pid}/fd"
        if any(_writes_to(f"{folder}/{fd}", wanted) for fd in _names(folder)) and started_ticks(pid) >= since_ticks:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in _names(_PROC) if name.isdecimal() and int(name) != own)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # gone, another person's, or there is no such folder here
        return []


def _writes_to(link: str, wanted: set[str]) -> bool:
    try:
        return os.readlink(link) in wanted and bool(os.lstat(link).st_mode & stat.S_IWUSR)
    except OSError:
        return False


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
