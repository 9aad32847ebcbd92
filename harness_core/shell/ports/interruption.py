"""An exception in, whether it is meant to end this thread's work out: what a person or a simulation asks for."""

from __future__ import annotations

import threading

from .strand import Abandoned

__all__ = ["is_interruption"]


def is_interruption(error: BaseException) -> bool:
    """Whether an exception is nobody's mistake: Ctrl-C, which comes to the main thread alone, or a simulation's end.

    Asked where an exception of a plugin is caught, in the thread that it was raised in.
    """
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, Abandoned)
