"""A file descriptor and a cancel token in, whether the descriptor can be read out."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable

from harness_hookspecs.host import CancelToken

__all__ = ["Wake", "readable"]


class Wake:
    """Called from anywhere, also from a signal handler, it makes ``fd`` readable.

    The pipe is closed when the last reference goes, never earlier: a canceller that holds it still may write, and the
    number of a descriptor closed too early would by then be another file's.
    """

    def __init__(self) -> None:
        self._fds: tuple[int, ...] = ()  # until there are descriptors for it
        self._fds = self.fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)

    def __call__(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is readable already
            os.write(self._write_fd, b"x")

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        for fd in self._fds:
            close(fd)


def readable(fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
    """Wait until ``fd`` can be read; ``False`` on timeout or when the token is set."""
    timeout_seconds = None if timeout_seconds is None else max(0.0, timeout_seconds)
    if cancel is None:
        return bool(select.select([fd], [], [], timeout_seconds)[0])
    wake = Wake()
    forget = cancel.on_cancel(wake)
    try:
        ready = select.select([fd, wake.fd], [], [], timeout_seconds)[0]
    finally:
        forget()
    return fd in ready and not cancel.cancelled()
