"""The main of a small process between the host and a command: it takes the command from a pipe, runs it, and ends only
when the command and all that it started are gone, whatever session or parent they have by then (Linux).

It imports next to nothing, so that it starts in a few milliseconds, and is run as a file, never imported by the host.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the half of it that needs no enums
import ctypes
import os
import sys

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_DEFAULT_PATH = b"/bin:/usr/bin"
_FAILED = 127


class _Stopped(BaseException):
    """The host wants an end, or is dead."""


def main(spec_fd: int, status_fd: int, host_pid: int) -> None:
    """Run the command that ``spec_fd`` tells; on ``status_fd`` comes ``error N`` or, at the very end, ``ended S``."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _stop)
    child, status = 0, int(signal.SIGKILL)
    try:
        if os.getppid() != host_pid:  # it died before the signal of its death was asked for
            return
        child = _start(*_spec(spec_fd), status_fd)
        status = _wait_for(child)
    except _Stopped:
        pass
    status = _kill_rest(child, status)
    if child >= 0:
        os.write(status_fd, b"ended %d" % status)


def _stop(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Stopped


def _spec(fd: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    with open(fd, "rb") as file:
        count, *words = file.read().split(b"\0")
    argv, pairs = words[: int(count)], words[int(count) : -1]
    return argv, {name: value for name, _, value in (pair.partition(b"=") for pair in pairs)}


def _start(argv: list[bytes], env: dict[bytes, bytes], status_fd: int) -> int:
    """Start the command in a session of its own; the number is negative when that failed."""
    failed_fd, tell_fd = os.pipe()  # closed by a successful exec
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            os.write(tell_fd, b"%d" % _execute(argv, env))
        finally:
            os._exit(_FAILED)
    os.close(tell_fd)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # the pipes are the command's alone
        os.dup2(nowhere, fd)
    error = os.read(failed_fd, 16)
    if error:
        os.write(status_fd, b"error " + error)
        return -1
    return child


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> int:
    """Become the command; when it cannot be, why: the number of the first error that says more than "not here"."""
    program = argv[0]
    folders = [b""] if b"/" in program else env.get(b"PATH", _DEFAULT_PATH).split(b":")
    telling = 0
    for folder in folders:
        try:
            os.execve(os.path.join(folder, program), argv, env)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                telling = telling or error.errno or 0
    return telling or 2


def _wait_for(child: int) -> int:
    while child > 0:
        pid, status = os.waitpid(-1, 0)  # orphans that end meanwhile are reaped too
        if pid == child:
            return status
    return 0


def _kill_rest(child: int, status: int) -> int:
    """Kill children until there are none; the children of each become ours, and have their turn."""
    while True:
        for pid in _children():
            for kill in (os.killpg, os.kill):  # a whole group at once, before it can grow
                try:
                    kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue  # it leads no group, or runs as somebody else and is waited for
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == child:
            status = ended


def _children() -> list[int]:
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent_of(name) == os.getpid()]


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
