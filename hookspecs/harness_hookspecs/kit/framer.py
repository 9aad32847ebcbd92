"""Framing of JSON Lines: chunks of bytes go in as they arrive, whole JSON values and typed errors come out in order."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import CodecError, IllegalMove
from harness_hookspecs.kit import codec

__all__ = ["MAX_LINE_BYTES", "Frame", "FrameError", "Framer"]

MAX_LINE_BYTES: Final = 1024 * 1024
"""Default limit of one line, its line feed not counted."""

_SPACE: Final = b" \t\r"


class Frame(NamedTuple):
    """One line that was strict JSON: its value, its bytes without the line feed, and its number from 1."""

    value: Any
    line: bytes
    number: int


class FrameError(NamedTuple):
    """One line that was not: what was wrong, and its number from 1. The stream goes on with the next line.

    ``code`` is ``frame.too_long`` (told once, as soon as it is known), ``frame.incomplete`` (the stream ended inside
    the line) or the codec's own, for example ``codec.syntax`` or ``codec.not_utf8``.
    """

    code: str
    reason: str
    number: int


class Framer:
    """Cuts a byte stream at line feeds only, keeps at most one line in memory, never raises for what it reads.

    Blank lines are skipped. A carriage return before the line feed counts as space.

    Args:
        max_line_bytes: Longest line that is accepted, its line feed not counted.
        max_depth: Nesting limit of a value.
    """

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES, max_depth: int = codec.MAX_DEPTH) -> None:
        self._max_line_bytes = max_line_bytes
        self._max_depth = max_depth
        self._kept = bytearray()
        self._number = 1
        self._skipping = False
        self._closed = False

    def feed(self, chunk: bytes) -> list[Frame | FrameError]:
        """Take the next bytes; returns what they complete.

        Raises:
            IllegalMove: The framer was closed.
        """
        if self._closed:
            raise IllegalMove("The framer was closed and takes no more bytes.")
        found: list[Frame | FrameError] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk, start, end, found)
            self._end_line(found)
            start = end + 1
        self._keep(chunk, start, len(chunk), found)
        return found

    def close(self) -> list[Frame | FrameError]:
        """The stream has ended; a last line without a line feed may be cut short and is an error, whatever it holds."""
        half = bool(self._kept.strip(_SPACE)) and not self._closed
        self._closed = True
        reason = f"The stream ended inside a line, after {len(self._kept)} bytes."
        self._kept.clear()
        return [FrameError("frame.incomplete", reason, self._number)] if half else []

    def _keep(self, chunk: bytes, start: int, end: int, found: list[Frame | FrameError]) -> None:
        if self._skipping:
            return
        if len(self._kept) + end - start > self._max_line_bytes:
            self._skipping = True
            self._kept.clear()
            reason = f"The line is longer than {self._max_line_bytes} bytes."
            found.append(FrameError("frame.too_long", reason, self._number))
        else:
            self._kept += memoryview(chunk)[start:end]

    def _end_line(self, found: list[Frame | FrameError]) -> None:
        line = bytes(self._kept)
        if not self._skipping and line.strip(_SPACE):
            found.append(self._read(line))
        self._skipping = False
        self._kept.clear()
        self._number += 1

    def _read(self, line: bytes) -> Frame | FrameError:
        try:
            value = codec.loads(line, max_bytes=self._max_line_bytes, max_depth=self._max_depth)
        except CodecError as error:
            return FrameError(error.code, str(error), self._number)
        return Frame(value, line, self._number)
