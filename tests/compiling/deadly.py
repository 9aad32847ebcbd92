"""A plugin of rules for tests that misbehaves: an expression that names a misfortune goes in, and it happens."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any

from harness_hookspecs.offer import Offer
from harness_rules_cel.rules import CelRules

__all__ = ["harness_provide_rules"]


class PanicError(BaseException):
    """What a binding in Rust raises is no Exception."""


class DeadlyRules(CelRules):
    """An engine whose parser is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def compile(self, text: str, *, roots: Any) -> Any:
        for word, misfortune in MISFORTUNES.items():
            if word in text:
                misfortune()
        if "keep" in text:
            if self.kept:
                os._exit(1)
            self.kept.append(text)
        return super().compile(text, roots=roots)


def panic() -> None:
    """What a binding in Rust does."""
    raise PanicError("index out of bounds")


def tell_environment() -> None:
    """Whatever is in it may be told."""
    raise PanicError(" ".join(sorted({*os.environ.values(), "told"}))[-190:])


MISFORTUNES: dict[str, Callable[[], object]] = {
    "segfault": lambda: ctypes.string_at(0),
    "hang": lambda: ctypes.PyDLL(None).pause(),  # and keeps the lock of the interpreter
    "exit": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory": lambda: [bytes(1024 * 1024) for _ in range(10_000)],
    "panic": panic,
    "environment": tell_environment,
    "print": lambda: os.write(1, b'["end", 0, [["surprise"]]]\n'),
}


def harness_provide_rules() -> list[Offer[Any]]:
    """The engine ``deadly``."""
    return [Offer(kind="rules", name="deadly", build=lambda settings, host: DeadlyRules())]
