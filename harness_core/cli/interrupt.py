"""Long work and a host in, the work's result and the signal that cut it short, if any, out."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from .output import complain

__all__ = ["GRACE_SECONDS", "Interruptible", "interruptible"]

T = TypeVar("T")

GRACE_SECONDS = 4.0
"""How long what is in flight may take to stop after the first signal."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruptible(Protocol):
    """What can be stopped from outside while it works."""

    def interrupt(self, reason: str, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop, saving what there is."""


def interruptible(host: Interruptible, work: Callable[[], T], forced: Callable[[int], Any]) -> tuple[T, int | None]:
    """Do the work on a worker; the first SIGINT or SIGTERM stops the host gracefully, the second ends the process.

    Args:
        host: What is interrupted.
        work: What is done; it returns soon after an interrupt.
        forced: Called with the signal's number before the process ends at once, to print what has to be printed.

    Returns:
        The result and the number of the first signal, ``None`` when there was none.
    """
    from harness_core.shell.ports import make_ports

    ports = make_ports("threads")
    happened = ports.wait.queue()
    results: list[T] = []

    def do() -> None:
        try:
            results.append(work())
        finally:
            happened.put(0)

    first: int | None = None
    with _handlers(lambda number, _: happened.put(number)):
        task = ports.spawn(do, name="command")
        # A handler may only put: the interrupted thread could be anywhere, so this one acts on it.
        while number := happened.get():
            if first is not None:
                _leave(number, forced)
            first = number
            complain(f"harness: {signal.Signals(number).name}: stopping; once more to stop at once")
            ports.spawn(host.interrupt, signal.Signals(number).name, GRACE_SECONDS, name="interrupt")
        task.join()
    return results[0], first


@contextlib.contextmanager
def _handlers(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle the two signals meanwhile; only the main thread of a process can."""
    before: dict[signal.Signals, Any] = {}
    with contextlib.suppress(ValueError):
        for number in _SIGNALS:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _leave(number: int, forced: Callable[[int], Any]) -> None:
    forced(number)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(128 + number)
