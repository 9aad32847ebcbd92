"""Long work and a host in, the work's result and the signal that cut it short, if any, out."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from harness_hookspecs.host import Waiting

from .output import complain

__all__ = ["GRACE_SECONDS", "Beginning", "Interruptible", "interruptible"]

T = TypeVar("T")

GRACE_SECONDS = 4.0
"""How long what is in flight may take to stop after the first signal."""

_DONE = b"\0"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptible(Protocol):
    """What can be stopped from outside while it works."""

    def interrupt(self, reason: str, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop, saving what there is."""


class Beginning:
    """A host that is to begin something: what it was told to stop before that, it stops as soon as it has begun.

    Args:
        host: Stops what it has begun, and knows of nothing else.
    """

    def __init__(self, host: Interruptible) -> None:
        self._host = host
        self._told: tuple[str, float] | None = None

    def interrupt(self, reason: str, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop, saving what there is."""
        self._told = reason, grace_seconds  # first, so that what is begun at this moment is stopped by one of the two
        self._host.interrupt(reason, grace_seconds)

    def begun(self, begin: Callable[[], T]) -> T:
        """Begin it."""
        result = begin()
        if self._told is not None:
            self._host.interrupt(*self._told)
        return result


def interruptible(host: Interruptible, work: Callable[[], T], forced: Callable[[int], Any]) -> tuple[T, int | None]:
    """Do the work on a worker; the first signal stops the host gracefully, a second SIGINT or SIGTERM the process.

    SIGHUP, which says that the terminal was closed, is a first one only. What the process was started to ignore stays
    ignored: a shell without job control starts what runs in the background so that Ctrl-C reaches only what is in
    front, and ``nohup`` what is to outlive its terminal.

    Args:
        host: What is interrupted.
        work: What is done; it returns soon after an interrupt.
        forced: Called with the signal's number before the process ends at once, to print what has to be printed.

    Returns:
        The result and the number of the first signal, ``None`` when there was none.
    """
    from harness_core.shell.ports import make_ports

    ports = make_ports("threads")
    results: list[T] = []
    first: int | None = None
    with _bytes_of_signals() as (happened, tell):

        def do() -> None:
            try:
                results.append(work())
            finally:
                os.write(tell, _DONE)

        task = ports.spawn(do, name="command")
        while number := _next(ports.wait, happened):
            if first is not None:
                if number == signal.SIGHUP:
                    continue  # one closed terminal is told of twice: by the shell, and by the kernel as the shell ends
                _leave(number, forced)
            first = number
            complain(f"harness: {signal.Signals(number).name}: stopping; once more to stop at once")
            ports.spawn(host.interrupt, signal.Signals(number).name, GRACE_SECONDS, name="interrupt")
        task.join()
    return results[0], first


def _next(wait: Waiting, happened: int) -> int:
    """The number of the next signal, 0 when the work has ended."""
    while True:
        wait.readable(happened)
        number = os.read(happened, 1)[0]
        if number in (0, *_SIGNALS):  # a byte comes for any signal that somebody handles
            return number


@contextlib.contextmanager
def _bytes_of_signals() -> Iterator[tuple[int, int]]:
    """A pipe, its reading and its writing end, with a byte for each signal meanwhile.

    A signal may reach any thread, and a thread that waits for a lock does not hear of one that reached another. Its
    byte wakes whoever waits for the pipe. Only the main thread of a process can ask for that.
    """
    happened, tell = os.pipe()
    os.set_blocking(tell, False)
    before: dict[signal.Signals, Any] = {}
    woken: int | None = None
    with contextlib.suppress(ValueError):
        woken = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, lambda *_: None)
    try:
        yield happened, tell
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        if woken is not None:
            signal.set_wakeup_fd(woken)
        os.close(happened)
        os.close(tell)


def _leave(number: int, forced: Callable[[int], Any]) -> None:
    with contextlib.suppress(OSError, ValueError):
        forced(number)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(128 + number)
