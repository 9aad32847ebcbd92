"""An argument list in; the child's bounded output and its end out, and nothing it started left behind."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

from harness_hookspecs.host import CancelToken, Completed

from .guarded import Child
from .survivors import kill_tree
from .wake import Wake

__all__ = ["RealProcesses"]

_READ_BYTES = 65_536
_STOP_SECONDS = 3.0  # for everything to be gone once it was killed
_DRAIN_SECONDS = 0.5  # for pipes that a process out of reach holds
_LOOK_SECONDS = 0.02  # where the kernel cannot tell of a child's end by a descriptor


class RealProcesses:
    """Children in a session of their own, which ends with the call.

    On Linux everything the child started ends with it, also what has left its session or lost its parent, and also
    when this process is killed. Elsewhere that is its process group and the descendants found at the end.
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
        talk = _Talk(Child(argv, cwd, env), stdin, limit_bytes)
        forget = cancel.on_cancel(talk.wake) if cancel is not None else None
        try:
            ended = talk.until(time.monotonic() + timeout_seconds)
        finally:
            if forget is not None:
                forget()
            talk.end()
        if ended == "cancelled" and cancel is not None:
            cancel.raise_if_cancelled()
        return talk.completed(timed_out=ended == "timeout")


class _Talk:
    """One child: what it says is read, what it is told is written, until it ends; one thread does it all."""

    def __init__(self, child: Child, stdin: bytes, limit_bytes: int) -> None:
        process = child.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.wake = Wake()
        self._child, self._process = child, process
        self._stdin: IO[bytes] = process.stdin
        self._unsent = memoryview(stdin)
        self._outputs = (_Bounded(process.stdout, limit_bytes), _Bounded(process.stderr, limit_bytes))
        self._open = {output.fd: output for output in self._outputs}
        self._exit_fd = _exit_fd(process.pid)
        self._exited = False
        self._heeds_wake = True
        os.set_blocking(self._stdin.fileno(), False)
        self._feed()

    def until(self, deadline: float) -> str:
        """Talk until the child has ``exited``, the ``timeout`` or until it was ``cancelled``."""
        while True:
            ready = self._poll(deadline - time.monotonic())
            if self.wake.fd in ready:
                return "cancelled"
            if self._exited:
                return "exited"
            if time.monotonic() >= deadline:
                return "timeout"

    def end(self) -> None:
        """Have everything killed that is left, read what is left in the pipes, reap the child."""
        try:
            self._heeds_wake = False
            self._child.stop()
            self._wait(time.monotonic() + (_STOP_SECONDS if self._child.guarded else 0.0))
            if not (self._exited and self._child.guarded):
                kill_tree(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel holds it; it cannot be waited for
                self._process.wait(_STOP_SECONDS)
            self._drain(time.monotonic() + _DRAIN_SECONDS)
        finally:
            self._child.close()
            if self._exit_fd is not None:
                os.close(self._exit_fd)
            for pipe in (self._stdin, *(output.pipe for output in self._outputs)):
                pipe.close()

    def completed(self, *, timed_out: bool) -> Completed:
        stdout, stderr = self._outputs
        cut = stdout.cut or stderr.cut
        return Completed(self._child.returncode(), stdout.data(), stderr.data(), timed_out, cut)

    def _wait(self, deadline: float) -> None:
        while not self._exited and (left := deadline - time.monotonic()) > 0:
            self._poll(left)

    def _drain(self, deadline: float) -> None:
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._poll(left)

    def _poll(self, seconds: float) -> set[int]:
        """Wait until something happens, read and write what can be; gives the descriptors that are ready."""
        poll = select.poll()
        for fd in (*self._open, *([self.wake.fd] if self._heeds_wake else [])):
            poll.register(fd, select.POLLIN)
        if self._exit_fd is not None and not self._exited:
            poll.register(self._exit_fd, select.POLLIN)
        if self._unsent:
            poll.register(self._stdin, select.POLLOUT)
        seconds = seconds if self._exit_fd is not None else min(seconds, _LOOK_SECONDS)
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        for fd in ready & self._open.keys():
            if not self._open[fd].read():
                del self._open[fd]
        if self._unsent and self._stdin.fileno() in ready:
            self._feed()
        self._exited = self._exited or self._has_exited(ready)
        return ready

    def _has_exited(self, ready: set[int]) -> bool:
        """Whether the child has ended; told by the kernel it is not reaped yet, so its number is still its own."""
        return self._exit_fd in ready if self._exit_fd is not None else self._process.poll() is not None

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
