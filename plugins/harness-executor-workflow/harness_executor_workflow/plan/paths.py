"""Step paths: segments go in and one text comes out, ``audit[pkg_a].scan.visit[1]``, and the same segments again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from harness_hookspecs.errors import ValidationFailed

__all__ = ["MAX_KEY_BYTES", "Segment", "format_path", "parse_path"]

MAX_KEY_BYTES: Final = 256
"""Of a key in UTF-8: a path stands in every event of its branch."""

_SEGMENT: Final = re.compile(
    r"([a-z][a-z0-9_]{0,63})(?:\[((?:[A-Za-z0-9_-]|%[0-9A-F]{2})*)\])?(?:\.visit\[(0|[1-9][0-9]*)\])?(?:\.(?=.)|$)",
    re.ASCII,
)
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Segment(NamedTuple):
    """One step on the way: the branch of a parallel step has a key, a step that may be visited again has a visit."""

    step: str
    key: str | None = None
    visit: int | None = None


def format_path(segments: Iterable[Segment]) -> str:
    """Write a path; different segments never give the same text.

    Raises:
        UnicodeEncodeError: A key is no text that UTF-8 can carry.
        ValidationFailed: ``path.key_too_long`` for a key of more than ``MAX_KEY_BYTES``.
    """
    return ".".join(_written(segment) for segment in segments)


def parse_path(text: str) -> tuple[Segment, ...]:
    """Read a path.

    Raises:
        ValidationFailed: ``path.syntax``, or ``path.key_too_long``, for what ``format_path`` would not have written.
    """
    segments, at = [], 0
    while (found := _SEGMENT.match(text, at)) is not None and at < len(text):
        step, key, visit = found.groups()
        segments.append(
            Segment(step, None if key is None else _decoded(key, text), None if visit is None else int(visit))
        )
        at = found.end()
    if not segments or at != len(text) or format_path(segments) != text:
        raise _refusal(text)
    return tuple(segments)


def _written(segment: Segment) -> str:
    key = "" if segment.key is None else f"[{_encoded(segment)}]"
    visit = "" if segment.visit is None else f".visit[{segment.visit}]"
    return f"{segment.step}{key}{visit}"


def _encoded(segment: Segment) -> str:
    data = (segment.key or "").encode()
    if len(data) > MAX_KEY_BYTES:
        shown = f"The key {data[:40].decode(errors='ignore')!r}... of a branch of {segment.step}"
        message = f"{shown} has {len(data)} bytes; the limit is {MAX_KEY_BYTES}."
        raise ValidationFailed(message, code="path.key_too_long", hint="take a short name for itemKey")
    # The branch 0 of a step named visit would read like the visit 0 of the step before it.
    plain = frozenset[int]() if segment.step == "visit" and data.isdigit() else _PLAIN
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in data)


def _decoded(key: str, text: str) -> str:
    data = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), key.encode())
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _refusal(text) from error


def _refusal(text: str) -> ValidationFailed:
    message = f"{text[:200]!r} is not a step path; one looks like audit[pkg_a].scan.visit[1]."
    return ValidationFailed(message, code="path.syntax")
