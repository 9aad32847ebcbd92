"""An argument list in; a command under a guard out, whose end is the end of everything it started (Linux)."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import weakref
from array import array
from collections.abc import Mapping, Sequence
from io import FileIO
from typing import TYPE_CHECKING

from .command import Pipes, not_started

if TYPE_CHECKING:
    import socket

__all__ = ["GuardedCommand", "Guards"]

_GUARD = os.path.join(os.path.dirname(__file__), "guard.py")
_STATUS_BYTES = 64
_END_SECONDS = 1.0


class Guards:
    """The process whose forks are the guards (see ``guard.py``).

    It is started for the first command, and ends with this object or with the host.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._socket: socket.socket | None = None
        self._owner_pid = 0

    def start(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> GuardedCommand:
        """Have a command started; whether it could be, its ``returncode`` tells.

        Raises:
            OSError: There is no such folder, or no descriptor or process is left.
            ValueError: A word of it holds a zero byte.
        """
        spec = _spec(argv, env)
        number = next(self._numbers)
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            folder_fd = os.open(cwd or ".", os.O_PATH | os.O_DIRECTORY)
            theirs.callback(os.close, folder_fd)
            status_fd, told_fd = _pipe(ours, theirs)
            tell_fd, spec_fd = _pipe(ours, theirs, inward=True)
            stdin_fd, in_fd = _pipe(ours, theirs, inward=True)
            stdout_fd, out_fd = _pipe(ours, theirs)
            stderr_fd, err_fd = _pipe(ours, theirs)
            self._order(number, (told_fd, spec_fd, folder_fd, in_fd, out_fd, err_fd))
            ours.pop_all()
        with contextlib.suppress(BrokenPipeError), open(tell_fd, "wb") as pipe:
            pipe.write(spec)
        pipes = (FileIO(stdin_fd, "wb"), FileIO(stdout_fd, "rb"), FileIO(stderr_fd, "rb"))
        return GuardedCommand(self, number, argv[0], status_fd, pipes)

    def tell(self, word: str, number: int) -> None:
        """``stop`` or ``kill`` a guard; one that has ended, or whose server has, needs no telling."""
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if self._socket is not None and self._owner_pid == os.getpid():
                self._socket.send(b"%s %d" % (word.encode(), number))

    def _order(self, number: int, fds: Sequence[int]) -> None:
        import socket  # late: many a process runs no command

        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))]
        with self._lock:
            if self._socket is None or self._owner_pid != os.getpid():
                self._socket = self._serve()
            try:
                self._socket.sendmsg([b"run %d" % number], extra)
            except (BrokenPipeError, ConnectionResetError):  # somebody has killed it
                self._finish()
                self._socket = self._serve()
                self._socket.sendmsg([b"run %d" % number], extra)

    def _serve(self) -> socket.socket:
        import socket

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            nowhere = subprocess.DEVNULL
            call = [sys.executable, "-I", "-S", _GUARD, str(theirs.fileno()), str(os.getpid())]
            process = subprocess.Popen(
                call,
                cwd="/",
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._owner_pid = os.getpid()
        self._finish = weakref.finalize(self, _end, ours, process)
        return ours


def _end(channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Hang up, at which the server ends, and reap it."""
    channel.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack, *, inward: bool = False) -> tuple[int, int]:
    """Our end and the other one of a pipe from the command, or ``inward`` to it."""
    read_fd, write_fd = os.pipe()
    mine, other = (write_fd, read_fd) if inward else (read_fd, write_fd)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other


class GuardedCommand:
    """A command that was handed to a guard; see ``Command``."""

    def __init__(self, guards: Guards, number: int, program: str, status_fd: int, pipes: Pipes) -> None:
        self._guards, self._number, self._program = guards, number, program
        self._told = b""
        self._ended = False
        self.pipes: Pipes = pipes
        self.end_fd: int | None = status_fd

    def look(self, ready: bool) -> bool:
        if ready and not self._ended and self.end_fd is not None:
            piece = os.read(self.end_fd, _STATUS_BYTES)
            self._told += piece
            self._ended = not piece  # the guard is gone, and all that it guarded
        return self._ended

    def stop(self) -> None:
        if not self._ended:
            self._guards.tell("stop", self._number)

    def kill(self) -> None:
        self._guards.tell("kill", self._number)

    def close(self) -> None:
        if self.end_fd is not None:
            os.close(self.end_fd)
            self.end_fd = None

    def returncode(self) -> int:
        word, _, number = self._told.partition(b" ")
        if word == b"error":
            error = OSError(int(number), os.strerror(int(number)))  # the subclass that fits the number
            raise not_started(self._program, error) from error
        return os.waitstatus_to_exitcode(int(number)) if word == b"ended" else -signal.SIGKILL


def _spec(argv: Sequence[str], env: Mapping[str, str] | None) -> bytes:
    pairs = os.environb if env is None else {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    words = [*map(os.fsencode, argv), *(name + b"=" + value for name, value in pairs.items())]
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    told = b"".join(word + b"\0" for word in words)
    return b"%d %d\0" % (len(argv), len(told)) + told
