"""An argument list in; the child's bounded output and its end out, and nothing it started left behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.host import CancelToken, Completed

from .survivors import kill_all, kill_pipe_holders, started_ticks
from .wake import Wake

__all__ = ["RealProcesses"]

_READ_BYTES = 65_536
_DRAIN_SECONDS = 0.5  # for the pipes, once everything of the child is killed
_HOLDERS_SECONDS = 0.05  # then somebody outside the child's group must be holding a pipe
_REAP_SECONDS = 3.0
_LOOK_SECONDS = 0.02  # where the kernel cannot tell of a child's end by a descriptor
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class RealProcesses:
    """Children in a session of their own, which ends with the call.

    Killed are: the child's process group; on a timeout or a cancel every descendant besides; and on Linux whoever
    still holds a pipe of the child. Out of reach is one that left the group, closed the pipes and outlived its
    parent: against that stands the sandbox.
    """

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        cancel: CancelToken | None = None,
        limit_bytes: int = 1_048_576,
    ) -> Completed:
        """See ``Processes.run``; the limit holds for each of the two outputs.

        Raises:
            NotFound: ``process.no_program`` or ``process.no_folder``.
            HarnessError: ``process.not_started``: not executable, too long, out of processes.
            Cancelled: The token was set before the child had ended; nothing of it is left.
        """
        if cancel is not None:
            cancel.raise_if_cancelled()
        talk = _Talk(_start(argv, cwd, env), stdin, limit_bytes)
        forget = cancel.on_cancel(talk.wake) if cancel is not None else None
        ended = "interrupted"
        try:
            ended = talk.until(time.monotonic() + timeout_seconds)
        finally:
            if forget is not None:
                forget()
            talk.end(everyone=ended != "exited")
        if ended == "cancelled" and cancel is not None:
            cancel.raise_if_cancelled()
        return talk.completed(timed_out=ended == "timeout")


def _start(argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(  # the caller names the program; no shell
            list(argv),
            bufsize=0,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise NotFound(f"there is no folder {cwd}", code="process.no_folder", folder=cwd) from error
        raise NotFound(f"there is no program {argv[0]}", code="process.no_program", program=argv[0]) from error
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"{argv[0]} cannot be started: {error}", code="process.not_started", program=argv[0]
        ) from error


class _Talk:
    """One child: what it says is read, what it is told is written, until it ends; one thread does it all."""

    def __init__(self, child: subprocess.Popen[bytes], stdin: bytes, limit_bytes: int) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        self.wake = Wake()
        self._child = child
        self._stdin: IO[bytes] = child.stdin
        self._unsent = memoryview(stdin)
        self._outputs = (_Bounded(child.stdout, limit_bytes), _Bounded(child.stderr, limit_bytes))
        self._open = {output.fd: output for output in self._outputs}
        self._exit_fd = _exit_fd(child.pid)
        os.set_blocking(self._stdin.fileno(), False)
        self._feed()

    def until(self, deadline: float) -> str:
        """Talk until the child has ``exited``, the ``timeout`` or until it was ``cancelled``."""
        while True:
            ready = self._poll(deadline - time.monotonic())
            if self.wake.fd in ready:
                return "cancelled"
            if _has_exited(self._child, self._exit_fd, ready):
                return "exited"
            if time.monotonic() >= deadline:
                return "timeout"

    def end(self, *, everyone: bool) -> None:
        """Kill what is left, read what is left in the pipes, reap the child."""
        pid = self._child.pid
        since_ticks = started_ticks(pid)
        try:
            kill_all(pid, descendants=everyone)
            _reap(self._child)
            started = time.monotonic()
            self._drain(started + _HOLDERS_SECONDS)
            if self._open:
                kill_pipe_holders(self._open, since_ticks)
                self._drain(started + _DRAIN_SECONDS)
        finally:
            if self._exit_fd is not None:
                os.close(self._exit_fd)
            for pipe in (self._stdin, *(output.pipe for output in self._outputs)):
                pipe.close()

    def completed(self, *, timed_out: bool) -> Completed:
        code = self._child.returncode
        stdout, stderr = self._outputs
        cut = stdout.cut or stderr.cut
        return Completed(-signal.SIGKILL if code is None else code, stdout.data(), stderr.data(), timed_out, cut)

    def _drain(self, deadline: float) -> None:
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._poll(left)

    def _poll(self, seconds: float) -> set[int]:
        """Wait until something happens, read and write what can be; gives the descriptors that are ready."""
        poll = select.poll()
        for fd in (*self._open, self.wake.fd, *([] if self._exit_fd is None else [self._exit_fd])):
            poll.register(fd, select.POLLIN)
        if self._unsent:
            poll.register(self._stdin, select.POLLOUT)
        seconds = seconds if self._exit_fd is not None else min(seconds, _LOOK_SECONDS)
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        for fd in ready & self._open.keys():
            if not self._open[fd].read():
                del self._open[fd]
        if self._unsent and self._stdin.fileno() in ready:
            self._feed()
        return ready

    def _feed(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # the child reads no further
            self._unsent = self._unsent[:0]
        self._stdin.close()


class _Bounded:
    """Keeps the first bytes of a pipe and goes on reading, so that the child never blocks on it."""

    def __init__(self, pipe: IO[bytes], limit_bytes: int) -> None:
        self.pipe, self.fd = pipe, pipe.fileno()
        self.cut = False
        self._room = limit_bytes
        self._pieces: list[bytes] = []

    def read(self) -> bool:
        """Take what is there; ``False`` at the end."""
        piece = os.read(self.fd, _READ_BYTES)
        self.cut = self.cut or len(piece) > self._room
        self._pieces.append(piece[: self._room])
        self._room -= min(len(piece), self._room)
        return bool(piece)

    def data(self) -> bytes:
        return b"".join(self._pieces)


def _exit_fd(pid: int) -> int | None:
    """A descriptor that becomes readable when the child ends, where the kernel has such (Linux 5.3)."""
    open_pidfd = getattr(os, "pidfd_open", None)
    if open_pidfd is None:
        return None
    with contextlib.suppress(OSError):
        return int(open_pidfd(pid))
    return None


def _has_exited(child: subprocess.Popen[bytes], exit_fd: int | None, ready: set[int]) -> bool:
    """Whether the child has ended; on Linux it is not reaped yet, so its number is still its own."""
    return exit_fd in ready if exit_fd is not None else child.poll() is not None


def _reap(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel holds it; it cannot be waited for
        child.wait(_REAP_SECONDS)
