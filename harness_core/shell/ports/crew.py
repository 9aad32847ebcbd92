"""A function in, an operating-system thread that runs it; threads are kept and used again between simulations."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

__all__ = ["run_on_thread"]

_MAX_IDLE = 128
_Mailbox = queue.SimpleQueue[Callable[[], None]]
_idle: list[_Mailbox] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


def run_on_thread(work: Callable[[], None]) -> None:
    """Run ``work`` on a daemon thread; it must not raise."""
    try:
        _idle.pop().put(work)
    except IndexError:
        threading.Thread(target=_serve, args=(work,), name="simulated", daemon=True).start()


def _serve(work: Callable[[], None] | None) -> None:
    mailbox: _Mailbox = queue.SimpleQueue()
    while work is not None:
        work()
        work = None  # an idle thread keeps nothing of a finished run alive
        if len(_idle) >= _MAX_IDLE:
            return
        _idle.append(mailbox)
        work = mailbox.get()
