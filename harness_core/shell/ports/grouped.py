"""An argument list in; a command out that ends with its process group and the descendants that can be found."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from .command import Orders, Pipes
from .survivors import kill_tree

__all__ = ["GroupedCommand"]

_REAP_SECONDS = 0.4  # of one that has ended it takes none


class GroupedCommand:
    """A command where there are no guards; see ``Command``.

    Raises:
        OSError, ValueError: It cannot be started.
    """

    def __init__(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> None:
        pipe = subprocess.PIPE
        self._process = process = subprocess.Popen(  # the caller names the program; no shell
            list(argv),
            bufsize=0,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.pipes: Pipes = (process.stdin, process.stdout, process.stderr)
        self.orders: Orders | None = None
        self.end_fd = _exit_fd(process.pid)

    def look(self, ready: bool) -> bool:
        """One that the kernel told of is not reaped yet, so that its number is still its own."""
        return ready if self.end_fd is not None else self._process.poll() is not None

    def stop(self) -> None:
        kill_tree(self._process.pid)

    def kill(self) -> None:
        kill_tree(self._process.pid)

    def force(self) -> None:
        kill_tree(self._process.pid)

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel holds it; it cannot be waited for
            self._process.wait(_REAP_SECONDS)
        if self.end_fd is not None:
            os.close(self.end_fd)
            self.end_fd = None

    def returncode(self) -> int:
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code


def _exit_fd(pid: int) -> int | None:
    """A descriptor that becomes readable when the child ends, where the kernel has such (Linux 5.3)."""
    open_pidfd = getattr(os, "pidfd_open", None)
    if open_pidfd is None:
        return None
    with contextlib.suppress(OSError):
        return int(open_pidfd(pid))
    return None
