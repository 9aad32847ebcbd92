"""Simulated ports and files in; ports out under which a thread may also be interrupted between two instructions there.

A simulation switches at port calls, so what stands between two of them never overlaps. Real threads are interrupted
anywhere. Here each instruction of the named files is a switch point with a small probability, drawn from the seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

from harness_core.shell.ports.simulated import SimulatedPorts

__all__ = ["PreemptingPorts"]


class PreemptingPorts(SimulatedPorts):
    """Simulated ports whose participants, the main one apart, are interrupted inside ``files``.

    Args:
        seed: Decides where, as it decides everything else.
        files: Paths of source files.
        probability: Of an interruption at one instruction.
    """

    def __init__(self, seed: int, *, files: Collection[str], probability: float) -> None:
        super().__init__(seed)
        self._names = frozenset(files)
        self._chance = random.Random(f"{seed}/preempt")
        self._probability = probability

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> Any:
        return super().spawn(self._traced, function, args, name=name)

    def _traced(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            function(*args)
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self._names:
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and self._chance.random() < self._probability:
            self.baton.call(f"interrupted at {frame.f_lineno}")
        return self._step
