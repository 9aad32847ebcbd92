"""An argument list in; the child's bounded output and its end out, and nothing it started left behind."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from io import RawIOBase
from typing import IO

from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.host import CancelToken, Completed

from .command import Command, not_started
from .grouped import GroupedCommand
from .guarded import Guards
from .wake import Wake

__all__ = ["RealProcesses"]

_READ_BYTES = 65_536
# A call is back five seconds after its time-out: three steps, the pipes, and what a command's ``close`` may take.
_STOP_SECONDS = 1.2  # for everything to be gone at each step, what the step itself takes included
_DRAIN_SECONDS = 0.5  # for pipes that a process out of reach holds
_POLL_SECONDS = 86_400.0  # at most in one call, which counts in 31 bits of milliseconds
_LOOK_SECONDS = 0.02  # where the kernel cannot tell of a child's end by a descriptor
_GUARDED = sys.platform == "linux"


class RealProcesses:
    """Children in a session of their own, which ends with the call.

    On Linux everything the child started ends with it, also what has left its session or lost its parent, and also
    when this process is killed. Elsewhere that is its process group and the descendants found at the end.
    """

    def __init__(self) -> None:
        self._guards = Guards() if _GUARDED and sys.executable else None

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
            HarnessError: ``process.not_started``: not executable, too long, out of processes, no program at all.
            Cancelled: The token was set before the child had ended; nothing of it is left.
        """
        if cancel is not None:
            cancel.raise_if_cancelled()
        if not argv:
            raise HarnessError("there is no program to start: the list is empty", code="process.not_started")
        talk = _Talk(*self._start(argv, cwd, env), stdin, limit_bytes)
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

    def close(self) -> None:
        """End what children still need beside them; a child that runs ends too."""
        if self._guards is not None:
            self._guards.close()

    def _start(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> tuple[Wake, Command]:
        try:
            for name in env or ():
                if not name or "=" in name:
                    raise ValueError(f"{name!r} is no name of an environment variable")
            wake = Wake()  # first: where there is no descriptor for it nothing is started
            if self._guards is None:
                return wake, GroupedCommand(argv, cwd, env)
            return wake, self._guards.start(argv, cwd, env)
        except (OSError, ValueError) as error:
            if cwd is not None and isinstance(error, OSError) and not os.path.isdir(cwd):
                raise NotFound(f"there is no folder {cwd}", code="process.no_folder", folder=cwd) from error
            raise not_started(argv[0], error) from error


class _Talk:
    """One child: what it says is read, what it is told is written, until it ends; one thread does it all."""

    def __init__(self, wake: Wake, command: Command, stdin: bytes, limit_bytes: int) -> None:
        self.wake, self._command = wake, command
        self._stdin, stdout, stderr = command.pipes
        first = [] if command.orders is None else [_Unsent(*command.orders)]
        self._unsent = [*first, _Unsent(self._stdin, stdin)]
        self._outputs = (_Bounded(stdout, limit_bytes), _Bounded(stderr, limit_bytes))
        self._open = {output.fd: output for output in self._outputs}
        self._exited = False
        self._heeds_wake = True
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
        """Have everything ended that is left, and read what is left in the pipes."""
        try:
            self._heeds_wake = False
            for end in (self._command.stop, self._command.kill, self._command.force):
                deadline = time.monotonic() + _STOP_SECONDS
                end()
                self._wait(deadline)
                if self._exited:
                    break
            self._drain(time.monotonic() + _DRAIN_SECONDS)
        finally:
            self._command.close()
            for unsent in self._unsent:
                unsent.pipe.close()
            for pipe in (self._stdin, *(output.pipe for output in self._outputs)):
                pipe.close()

    def completed(self, *, timed_out: bool) -> Completed:
        stdout, stderr = self._outputs
        cut = stdout.cut or stderr.cut
        return Completed(self._command.returncode(), stdout.data(), stderr.data(), timed_out, cut)

    def _wait(self, deadline: float) -> None:
        """Wait for the end; looked for once also where the time is over."""
        left = 1.0
        while not self._exited and left > 0:
            left = deadline - time.monotonic()
            self._poll(left)

    def _drain(self, deadline: float) -> None:
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._poll(left)

    def _poll(self, seconds: float) -> set[int]:
        """Wait until something happens, read and write what can be; gives the descriptors that are ready."""
        poll = select.poll()
        end_fd = self._command.end_fd
        for fd in (*self._open, *([self.wake.fd] if self._heeds_wake else [])):
            poll.register(fd, select.POLLIN)
        if end_fd is not None and not self._exited:
            poll.register(end_fd, select.POLLIN)
        for unsent in self._unsent:
            poll.register(unsent.pipe, select.POLLOUT)
        seconds = min(seconds, _POLL_SECONDS if end_fd is not None else _LOOK_SECONDS)
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        for fd in ready & self._open.keys():
            if not self._open[fd].read():
                del self._open[fd]
        self._feed()
        self._exited = self._exited or self._command.look(end_fd in ready)
        return ready

    def _feed(self) -> None:
        self._unsent = [unsent for unsent in self._unsent if not unsent.write()]


class _Unsent:
    """Writes into a pipe what it takes, and closes it after the last byte, or when nobody reads further."""

    def __init__(self, pipe: IO[bytes] | RawIOBase, content: bytes) -> None:
        self.pipe = pipe
        self._left = memoryview(content)
        os.set_blocking(pipe.fileno(), False)

    def write(self) -> bool:
        """Write without waiting; whether it is done."""
        try:
            while self._left:
                self._left = self._left[os.write(self.pipe.fileno(), self._left) :]
        except BlockingIOError:
            return False
        except OSError:  # the child reads no further
            pass
        self.pipe.close()
        return True


class _Bounded:
    """Keeps the first bytes of a pipe and goes on reading, so that the child never blocks on it."""

    def __init__(self, pipe: IO[bytes] | RawIOBase, limit_bytes: int) -> None:
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
