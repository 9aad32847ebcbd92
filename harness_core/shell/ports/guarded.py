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
from typing import TYPE_CHECKING, Literal

from .command import Orders, Pipes, not_started

if TYPE_CHECKING:
    import socket

__all__ = ["GuardedCommand", "Guards"]

_GUARD = os.path.join(os.path.dirname(__file__), "guard.py")
_STATUS_BYTES = 64
_BEGIN_SECONDS = 20.0
_END_SECONDS = 0.6  # for the server to end as it is told
_REAP_SECONDS = 0.6  # for one that was killed to be gone
_GONE = (BrokenPipeError, ConnectionResetError, BlockingIOError)
"""How a socket answers whose other end was killed, or stopped until nothing more fitted into it."""


class Guards:
    """The process whose forks are the guards (see ``guard.py``).

    It is started for the first command, and ends when it is closed, with this object or with the host. What the
    commands inherit from it (umask, limits, niceness) is what the host had for its first one. A fork of the host begins
    one of its own.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._begin()

    def _begin(self) -> None:
        self._owner_pid = os.getpid()
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def start(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> GuardedCommand:
        """Have a command started; whether it could be, its ``returncode`` tells.

        Raises:
            OSError: There is no such folder, no descriptor or process is left, or there can be no guard.
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
            server = self._order(number, (told_fd, spec_fd, folder_fd, in_fd, out_fd, err_fd))
            ours.pop_all()
        pipes = (FileIO(stdin_fd, "wb"), FileIO(stdout_fd, "rb"), FileIO(stderr_fd, "rb"))
        return GuardedCommand(self, server, number, argv[0], status_fd, pipes, (FileIO(tell_fd, "wb"), spec))

    def tell(self, server: _Server, word: Literal["stop", "kill"], number: int) -> None:
        """Tell a guard; one that has ended, or whose server has, needs no telling."""
        self._heed_fork()
        with self._lock, contextlib.suppress(*_GONE):
            if server is self._server:
                server.say(f"{word} {number}")

    def close(self, server: _Server | None = None) -> None:
        """End the server, or the one that is meant, and with it what it guards; the next command begins another."""
        self._heed_fork()
        with self._lock:
            ending = server or self._server
            if ending is self._server:
                self._server = None
        if ending is not None:
            ending.finish()

    def _order(self, number: int, fds: Sequence[int]) -> _Server:
        self._heed_fork()
        with contextlib.ExitStack() as later, self._lock:  # nobody waits at the lock for the end of a server
            if self._server is not None:
                with contextlib.suppress(*_GONE):
                    self._server.say(f"run {number}", fds)
                    return self._server
                later.callback(self._server.finish)
                self._server = None  # at once: it may be that no other one can be started
            self._server = server = _Server(self)
            server.say(f"run {number}", fds)
            return server

    def _heed_fork(self) -> None:
        """Forget what a fork has of the host; its lock may be held by a thread that is not in the fork."""
        if self._owner_pid != os.getpid():
            self._begin()


class _Server:
    """A running process of ``guard.py``, which ends with ``owner`` at the latest.

    Raises:
        OSError: It cannot be started, or ends as it begins.
    """

    def __init__(self, owner: Guards) -> None:
        import socket  # late: many a process runs no command

        self._rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as failed:
            failed.callback(ours.close)
            with theirs:
                process = _started(theirs.fileno())
            self._socket = ours
            self.finish = weakref.finalize(owner, _end, ours, process, os.getpid())
            failed.callback(self.finish)
            ours.settimeout(_BEGIN_SECONDS)
            if ours.recv(_STATUS_BYTES) != b"ready":
                self.finish()
                raise OSError(f"its guard ended with status {process.returncode} as it began")
            ours.setblocking(False)
            failed.pop_all()

    def say(self, message: str, fds: Sequence[int] = ()) -> None:
        """Send a message without waiting.

        Raises:
            OSError: One of ``_GONE`` when nobody hears it.
        """
        extra = [(*self._rights, array("i", fds))] if fds else []
        self._socket.sendmsg([message.encode()], extra)


def _started(socket_fd: int) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    # A command may read its parent's environment: of the host's there is only what a Python may need to be found.
    env = {name: value for name, value in os.environ.items() if name.startswith("LD_")}
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", _GUARD, str(socket_fd), str(os.getpid())],
            cwd="/",
            env=env,
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
            pass_fds=(socket_fd,),
        )
    except OSError as error:  # that a program is missing would be said of the command
        raise OSError(f"its guard cannot be: {error}") from error


def _end(channel: socket.socket, process: subprocess.Popen[bytes], owner_pid: int) -> None:
    """Have the server end, and reap it; a fork of the host only lets go of the channel.

    It is told so, since another fork may hold the channel; and killed when it does not hear.
    """
    with channel:
        if os.getpid() != owner_pid:
            return
        with contextlib.suppress(OSError):
            channel.setblocking(False)
            channel.send(b"end")
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel holds it; it cannot be waited for
            process.wait(_REAP_SECONDS)


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack, *, inward: bool = False) -> tuple[int, int]:
    """Our end and the other one of a pipe from the command, or ``inward`` to it."""
    read_fd, write_fd = os.pipe()
    mine, other = (write_fd, read_fd) if inward else (read_fd, write_fd)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other


class GuardedCommand:
    """A command that was handed to a guard; see ``Command``."""

    def __init__(
        self,
        guards: Guards,
        server: _Server,
        number: int,
        program: str,
        status_fd: int,
        pipes: Pipes,
        orders: Orders,
    ) -> None:
        self._guards, self._server, self._number, self._program = guards, server, number, program
        self.orders: Orders | None = orders
        self._told = b""
        self._ended = False
        self.pipes: Pipes = pipes
        self.end_fd: int | None = status_fd

    def look(self, ready: bool) -> bool:
        if ready and not self._ended and self.end_fd is not None:
            self._told = os.read(self.end_fd, _STATUS_BYTES)
            # All that it guarded is gone, or the guard is; not the end of the pipe, which a fork of the host may hold.
            self._ended = True
        return self._ended

    def stop(self) -> None:
        if not self._ended:
            self._guards.tell(self._server, "stop", self._number)

    def kill(self) -> None:
        self._guards.tell(self._server, "kill", self._number)

    def force(self) -> None:
        self._guards.close(self._server)  # who does not do as he is told guards nothing; at his end everything ends

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
    inherited = {name: value for name, value in os.environb.items() if name}  # what begins with "=" comes without one
    pairs = inherited if env is None else {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    words = [*map(os.fsencode, argv), *(word for pair in pairs.items() for word in pair)]
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    told = b"".join(word + b"\0" for word in words)
    return b"%d %d\n" % (len(told), len(argv)) + told
