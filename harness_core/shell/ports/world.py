"""The real clock, ids, randomness and processes, and the texts of times and ids for every set of ports."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import threading
import time
from datetime import UTC, datetime, timedelta

from harness_hookspecs.host import CancelToken

from .processes import RealProcesses

__all__ = ["RealClock", "RealIds", "RealProcesses", "RealRandom", "open_gate", "timestamp_of", "ulid_of", "uuid7_of"]

_CHANCES_AT_ONCE = 128
_VARIANTS = {digit: "89ab"[int(digit, 16) >> 2] for digit in "0123456789abcdef"}
_WITH_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))
_LAST_OF_A_MOMENT = 0xFFF
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_of(moment_ms: int) -> str:
    """UTC text of milliseconds since 1970, ``2026-11-29T18:30:05.123Z``, in every time zone and language."""
    seconds, rest = divmod(moment_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(seconds)) + f"{rest:03d}Z"


def uuid7_of(stamp: int, chance: bytes) -> str:
    """A UUIDv7 (RFC 9562) of a 60-bit stamp (48 bits of milliseconds, 12 of a counter) and eight bytes of chance."""
    return _uuid7(stamp, _tail_of(chance.hex()))


def _uuid7(stamp: int, tail: str) -> str:
    return f"{_head_of(stamp >> 12)}{stamp & 0xFFF:03x}-{tail}"


def _head_of(moment_ms: int) -> str:
    """The groups of a UUIDv7 before its counter: 48 bits of milliseconds and the version."""
    return f"{moment_ms >> 16:08x}-{moment_ms & 0xFFFF:04x}-7"


def _tail_of(digits: str) -> str:
    """The last two groups of a UUID: sixteen digits of chance, the first two bits given away to the variant."""
    return f"{_VARIANTS[digits[0]]}{digits[1:4]}-{digits[4:]}"


def _tails(count: int) -> list[str]:
    """So many of them at once: no call for each, since every event has an id."""
    fours, twelves = bytearray(os.urandom(2 * count)), os.urandom(6 * count)
    fours[::2] = fours[::2].translate(_WITH_VARIANT)
    return list(map("-".join, zip(fours.hex("-", 2).split("-"), twelves.hex("-", 6).split("-"), strict=True)))


def ulid_of(prefix: str, moment_ms: int, chance: bytes) -> str:
    """``prefix_`` and the ULID of a moment and ten bytes of chance."""
    number = moment_ms << 80 | int.from_bytes(chance, "big")
    return f"{prefix}_" + "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=time.time_ns() // 1_000_000)

    def __init__(self) -> None:
        self._second = (-1, "")

    def timestamp(self) -> str:
        seconds, rest = divmod(time.time_ns() // 1_000_000, 1000)
        known, text = self._second
        if known != seconds:  # formatting a date is dear, and most events of a second share it
            text = timestamp_of(seconds * 1000)[:-4]
            self._second = (seconds, text)
        return f"{text}{rest:03d}Z"

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        seconds = max(0.0, seconds)
        if cancel is None:
            time.sleep(seconds)
            return
        gate = threading.Lock()  # bare, so that a signal handler may cancel
        gate.acquire()
        forget = cancel.on_cancel(lambda: open_gate(gate))
        try:
            gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))
        finally:
            forget()
        cancel.raise_if_cancelled()


def open_gate(gate: threading.Lock) -> None:
    """Let the one who waits at a bare lock go on; harmless when the gate is open already."""
    with contextlib.suppress(RuntimeError):
        gate.release()


class RealIds:
    """UUIDv7 and ULIDs; UUIDs rise within the process, also when the clock is set back."""

    def __init__(self) -> None:
        self._moment_ms, self._count, self._head = 0, 0, _head_of(0)
        self._lock = threading.Lock()
        self._tails: list[str] = []

    def uuid7(self) -> str:
        with self._lock:
            moment_ms = time.time_ns() // 1_000_000
            if moment_ms > self._moment_ms:
                self._moment_ms, self._count, self._head = moment_ms, 0, _head_of(moment_ms)
            elif self._count < _LAST_OF_A_MOMENT:  # most of a step's ids share one
                self._count += 1
            else:
                self._moment_ms, self._count = self._moment_ms + 1, 0
                self._head = _head_of(self._moment_ms)
            if not self._tails:  # one call to the system for many ids
                self._tails = _tails(_CHANCES_AT_ONCE)
            return f"{self._head}{self._count:03x}-{self._tails.pop()}"

    def ulid(self, prefix: str) -> str:
        return ulid_of(prefix, time.time_ns() // 1_000_000, os.urandom(10))


class RealRandom:
    """The machine's randomness."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)  # jitter, not a secret
