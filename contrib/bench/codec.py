"""Goal 10: a stored row or a payload goes in, microseconds to make an event or bytes of it come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness_hookspecs.contracts.store_case import STREAM
from harness_hookspecs.kit.codec import dumps
from harness_store_sqlite.rows import event

from .measure import Figure, at_most, cpu_microseconds, medians

__all__ = ["NAME", "run"]

NAME = "codec"

PAYLOAD = {
    "callId": "call_00000000000000000000000001",
    "toolName": "filesystem_read",
    "args": {"path": "src/harness/example.py", "limit": 100, "flags": ["numbers", "links"]},
    "digest": "sha256-" + "0" * 64,
    "effect": "pure",
    "tokens": {"prompt": 1234, "completion": 56},
    "text": "x" * 150,
    "ok": True,
}
ENVELOPE = """019b76da-a800-7000-8000-000000000001
harness.tool_call.started
1
kernel
2026-01-01T00:00:00.000Z
{"causation_id":"019b76da-a800-7000-8000-000000000000"}"""
COUNT = 20_000


def run() -> Iterator[Figure]:
    """From a row to a ``StoredEvent``, whose payload stays bytes until somebody needs it; from a payload to bytes."""
    row = (1, 2, ENVELOPE, dumps(PAYLOAD), b"h" * 32)
    found = medians({"load": _each(lambda: event(STREAM, row)), "dump": _each(lambda: dumps(PAYLOAD))}, rounds=9)
    yield at_most("codec.load", found["load"], "us CPU/event", must=1.5, aim=0.8)
    yield at_most("codec.dump", found["dump"], "us CPU/event", must=1.0, aim=0.6)


def _each(function: Callable[[], object]) -> Callable[[], float]:
    def again() -> None:
        for _ in range(COUNT):
            function()

    return lambda: cpu_microseconds(again, COUNT)
