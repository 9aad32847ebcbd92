"""A plugin of rules for tests that misbehaves: an expression that names a misfortune goes in, and it happens."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

from harness_hookspecs.offer import Offer
from harness_rules_cel.rules import CelRules

__all__ = ["harness_provide_rules"]


class Panic(BaseException):
    """What a binding in Rust raises is no Exception."""


class DeadlyRules(CelRules):
    """An engine whose parser is broken."""

    def compile(self, text: str, *, roots: Any) -> Any:
        if "segfault" in text:
            ctypes.string_at(0)
        if "hang" in text:
            ctypes.PyDLL(None).pause()  # and keeps the lock of the interpreter
        if "exit" in text:
            os._exit(0)
        if "kill" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "memory" in text:
            return [bytes(1024 * 1024) for _ in range(10_000)]
        if "panic" in text:
            raise Panic("index out of bounds")
        if "print" in text:
            os.write(1, b'["end", 0, [["surprise"]]]\n')
        return super().compile(text, roots=roots)


def harness_provide_rules() -> list[Offer[Any]]:
    """The engine ``deadly``."""
    return [Offer(kind="rules", name="deadly", build=lambda settings, host: DeadlyRules())]
