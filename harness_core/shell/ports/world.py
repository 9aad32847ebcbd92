"""The real clock, ids, randomness and processes."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from harness_hookspecs.errors import Cancelled, NotFound
from harness_hookspecs.host import CancelToken, Completed

__all__ = ["RealClock", "RealIds", "RealProcesses", "RealRandom", "timestamp_of"]

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DRAIN_SECONDS = 2.0


def timestamp_of(moment: datetime) -> str:
    """UTC text with milliseconds, ``2026-11-29T18:30:05.123Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def timestamp(self) -> str:
        seconds, rest = divmod(time.time_ns() // 1_000_000, 1000)
        return time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(seconds)) + f"{rest:03d}Z"

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        if cancel is None:
            time.sleep(seconds)
            return
        flag = threading.Event()
        forget = cancel.on_cancel(flag.set)
        try:
            flag.wait(seconds)
        finally:
            forget()
        cancel.raise_if_cancelled()


class RealIds:
    """UUIDv7 (RFC 9562) and ULIDs; monotone within the process."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def uuid7(self) -> str:
        with self._lock:
            # 48 bits of milliseconds, 12 bits of a counter, then chance: sorts by creation within one process.
            stamp = max((time.time_ns() // 1_000_000) << 12, self._last + 1)
            self._last = stamp
        high = ((stamp >> 12) << 16) | 0x7000 | (stamp & 0xFFF)
        low = (0b10 << 62) | int.from_bytes(os.urandom(8), "big") >> 2
        text = f"{high:016x}{low:016x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def ulid(self, prefix: str) -> str:
        number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
        return f"{prefix}_" + "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


class RealRandom:
    """The machine's randomness."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)  # jitter, not a secret


class RealProcesses:
    """Children in a process group of their own, which ends with the call."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        cancel: CancelToken | None = None,
        limit_bytes: int = 1_048_576,
    ) -> Completed:
        try:
            child = subprocess.Popen(  # the caller names the program; no shell
                list(argv),
                cwd=cwd,
                env=dict(env) if env is not None else None,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise NotFound(f"there is no program {argv[0]}", program=argv[0]) from error
        forget = cancel.on_cancel(lambda: _kill_group(child.pid)) if cancel else (lambda: None)
        try:
            return _collect(child, stdin, timeout_seconds, limit_bytes)
        finally:
            forget()
            _kill_group(child.pid)
            if cancel is not None and cancel.cancelled():
                raise Cancelled(f"cancelled: {cancel.reason}")


def _collect(child: subprocess.Popen[bytes], stdin: bytes, timeout_seconds: float, limit_bytes: int) -> Completed:
    outputs = [_Bounded(limit_bytes), _Bounded(limit_bytes)]
    pumps = [
        threading.Thread(target=output.drain, args=(pipe,), daemon=True)
        for output, pipe in zip(outputs, (child.stdout, child.stderr), strict=True)
    ]
    for pump in pumps:
        pump.start()
    feeder = threading.Thread(target=_feed, args=(child, stdin), daemon=True)
    feeder.start()
    timed_out = False
    try:
        child.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
    _kill_group(child.pid)  # also what the child left behind: it would hold the pipes open
    child.wait()
    for pump in pumps:
        pump.join(_DRAIN_SECONDS)
    stdout, stderr = outputs
    return Completed(child.returncode, stdout.data(), stderr.data(), timed_out, stdout.cut or stderr.cut)


def _feed(child: subprocess.Popen[bytes], data: bytes) -> None:
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError, OSError):
        child.stdin.write(data)
    with contextlib.suppress(BrokenPipeError, OSError):
        child.stdin.close()


class _Bounded:
    """Keeps the first bytes of a pipe and goes on reading, so that the child never blocks on it."""

    def __init__(self, limit_bytes: int) -> None:
        self._room = limit_bytes
        self._pieces: list[bytes] = []
        self.cut = False

    def drain(self, pipe: object) -> None:
        with contextlib.suppress(OSError, ValueError):
            for piece in iter(lambda: pipe.read1(65536), b""):  # type: ignore[attr-defined]
                self.cut = self.cut or len(piece) > self._room
                self._pieces.append(piece[: self._room])
                self._room -= min(len(piece), self._room)
            pipe.close()  # type: ignore[attr-defined]

    def data(self) -> bytes:
        return b"".join(self._pieces)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
