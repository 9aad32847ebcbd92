"""A worker's process id goes in, a way to end just that process from any thread comes out."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from harness_hookspecs.host import WaitLock

__all__ = ["Killable"]


class Killable:
    """A process that may be ended until it is let go; afterwards its id may mean another one."""

    def __init__(self, pid: int, lock: WaitLock) -> None:
        self._pid, self._lock = pid, lock
        self._handle = _handle(pid)
        self._held = True

    def kill(self) -> None:
        """End it, unless it was let go."""
        with self._lock:
            if not self._held:
                return
            with suppress(ProcessLookupError):
                if self._handle is None:
                    os.kill(self._pid, signal.SIGKILL)
                else:
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def let_go(self) -> None:
        """Nobody ends it any more."""
        with self._lock:
            self._held = False
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _handle(pid: int) -> int | None:
    """A handle that stays with the process, where the system has such."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
