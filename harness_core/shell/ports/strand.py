"""A participant of a simulation: what it is made of, and where in its code it stands."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

__all__ = ["Abandoned", "Strand", "Switch", "place_of"]

_HERE = os.path.dirname(__file__)


class Abandoned(BaseException):
    """The simulation is over: whoever still waits in it unwinds and ends."""


class Switch(NamedTuple):
    """One step of a simulation: who made which port call at which virtual time."""

    at_ns: int
    strand: str
    call: str


class Strand:
    """One participant: a thread that runs only while it holds the baton."""

    def __init__(self, name: str, body: Callable[[], object] | None = None) -> None:
        self.name = name
        self.body = body
        self.error: BaseException | None = None  # how its body ended
        self.ended = False
        self.started = False
        self.waits = ""  # for what, while it is blocked
        self.blocked = False
        self.woken = False  # by somebody, not by its timer
        self.turn = 0  # of its waits; tells a timer that outlived its wait
        self.failure: BaseException | None = None  # to be raised where it waits
        self.told = False  # that it is over
        self.ident = -1
        self.joiners: list[Strand] = []
        self.gate = _closed_lock()
        self.over = _closed_lock()


def _closed_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def place_of(strand: Strand) -> str:
    """The line outside this package where a strand is."""
    frame: FrameType | None = sys._current_frames().get(strand.ident)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return "not begun" if frame is None else f"at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
