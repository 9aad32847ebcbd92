"""Running simulations in; a dump of all stacks on stderr when one of them stands still in real time out."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
import weakref
from typing import Protocol

__all__ = ["Watched", "watch"]

_GIVE_UP_FACTOR = 5  # a busy machine may be slow; so much later the one who waits is told
_STDERR = 2


class Watched(Protocol):
    """What the watchdog looks at."""

    watchdog_seconds: float

    def pulse(self) -> object | None:
        """Changes with each step; ``None`` while nothing has to happen."""

    def give_up(self) -> None:
        """Nothing happened for five times ``watchdog_seconds``."""


class _Look:
    """When a simulation was last seen to move."""

    def __init__(self, watched: Watched) -> None:
        self.watched = weakref.ref(watched)
        self.pulse: object | None = None
        self.since = time.monotonic()
        self.told = 0  # 1: dumped, 2: given up


_looks: list[_Look] = []
_lock = threading.Lock()
os.register_at_fork(after_in_child=_looks.clear)


def watch(watched: Watched) -> None:
    """Look after a simulation until it is collected or has ended for good; costs nothing at its steps."""
    with _lock:
        _looks.append(_Look(watched))
        if len(_looks) == 1:
            threading.Thread(target=_patrol, name="simulation-watchdog", daemon=True).start()


def _patrol() -> None:
    while True:
        pause_seconds = min((_visit(look) for look in list(_looks)), default=0.0)
        with _lock:
            _looks[:] = [look for look in _looks if look.watched() is not None]
            if not _looks:
                return
        time.sleep(pause_seconds)


def _stacks() -> str:
    """Where every thread stands; ``faulthandler`` leaves out all but the first hundred."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    standing = sys._current_frames().items()
    return "".join(f"Thread {names.get(one, one)}:\n{''.join(traceback.format_stack(at))}" for one, at in standing)


def _visit(look: _Look) -> float:
    watched = look.watched()
    if watched is None:
        return 0.0
    pulse, now = watched.pulse(), time.monotonic()
    if pulse is None or pulse != look.pulse:
        look.pulse, look.since, look.told = pulse, now, 0
    still_seconds = now - look.since
    if still_seconds >= watched.watchdog_seconds and look.told == 0:
        look.told = 1
        text = f"simulation: no port call for {watched.watchdog_seconds} s; someone blocks on what is no port\n"
        os.write(_STDERR, f"{text}{_stacks()}".encode(errors="backslashreplace"))
    elif still_seconds >= _GIVE_UP_FACTOR * watched.watchdog_seconds and look.told == 1:
        look.told = 2
        watched.give_up()
    return watched.watchdog_seconds / 4
