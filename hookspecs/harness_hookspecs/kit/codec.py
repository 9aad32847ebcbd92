"""Strict JSON both ways: plain values to bytes and bytes to plain values, or a CodecError that says why not.

Refused both ways: NaN and infinities, integers beyond 2^53-1, lone surrogates, keys that are not text, nesting
beyond the limit. Refused on reading besides: duplicate keys, a byte order mark, what is not UTF-8, anything after the
value, anything over the size limit. NUL is legal text and is written escaped. ``CodecError.code`` is one of
``codec.syntax``, ``duplicate_key``, ``not_finite``, ``integer_range``, ``surrogate``, ``key``, ``type``, ``too_deep``,
``too_large``, ``bom``, ``not_utf8`` (each with the prefix ``codec.``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, Final, NoReturn

import orjson

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.strict import MAX_INTEGER, MAX_WRITE_DEPTH, fault

__all__ = ["MAX_BYTES", "MAX_DEPTH", "dumps", "lenient_object", "loads", "loads_trusted"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Default size limit of one document from outside, in bytes."""

MAX_DEPTH: Final = 64
"""Default nesting limit of one document from outside; ``[]`` has depth 1."""

_WRITE: Final = orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_SPACE: Final = " \t\r\n"
# Strict JSON never starts with either mark, so looking for them first cannot change the meaning of plain JSON.
_WRAPPERS: Final = (
    ("think", re.compile(r"<think>.*?</think>(?P<rest>.*)", re.DOTALL)),
    ("fence", re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*(?i:json)?[ \t]*\r?\n(?P<rest>.*)\n[ \t]*(?P=mark)", re.DOTALL)),
)
_NOT_FINITE: Final = re.compile(r"-?(NaN|Infinity)", re.IGNORECASE)


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Write a plain JSON value as compact UTF-8 JSON.

    Args:
        value: dict, list, tuple, str, int, float, bool, None, or subclasses of the first three.
        sort_keys: Sort keys by code point instead of keeping their order. This is not the canonical form.

    Raises:
        CodecError: The value is not strict JSON; ``where`` is the JSON pointer of the first offender.
    """
    try:
        data = orjson.dumps(value, option=_WRITE | orjson.OPT_SORT_KEYS if sort_keys else _WRITE)
    except orjson.JSONEncodeError as error:
        _refuse(value, f"The value is not strict JSON: {error}.")
    # orjson writes NaN and infinities as null, so only an output that holds a null is worth a walk.
    if data.find(b"null") >= 0 and _holds_non_finite(value):
        _refuse(value, "A number is NaN or infinite.")
    return data


def _holds_non_finite(value: Any) -> bool:
    waiting = [value]
    for item in waiting:  # grows while it is read; orjson has proved that it ends
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
        elif isinstance(item, float) and not isfinite(item):
            return True
    return False


def _refuse(value: Any, otherwise: str) -> NoReturn:
    found = fault(value)
    if found is None:
        raise CodecError(otherwise)
    raise CodecError(found.reason, code=found.code, where=found.pointer or None)


def loads_trusted(data: bytes) -> Any:
    """Read bytes that ``dumps`` wrote (a stored payload); checks the grammar only.

    Raises:
        CodecError: The bytes are not JSON at all.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _syntax_error(data, error) from error


def loads(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Read one JSON document that came from outside.

    Args:
        data: The whole document, as UTF-8 bytes or as text.
        max_bytes: Size limit; text counts as UTF-8.
        max_depth: Nesting limit, at most 254.

    Raises:
        CodecError: The document is not strict JSON; ``code`` names the reason, ``where`` is the offset in
            characters where one is known.
    """
    raw = _head(data, max_bytes)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _syntax_error(raw, error) from error
    if _is_deeper(value, raw, min(max_depth, MAX_WRITE_DEPTH)):
        raise CodecError(f"The document is nested deeper than {max_depth} levels.", code="codec.too_deep")
    # What orjson would write just so holds no duplicate key and no integer that it silently made a float.
    try:
        settled = orjson.dumps(value, option=_WRITE) == raw
    except orjson.JSONEncodeError:
        settled = False
    if not settled:
        _check_again(raw)
    return value


def _head(data: bytes | str, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise CodecError(f"The document is over the limit of {max_bytes} bytes.", code="codec.too_large")
    try:
        raw = data.encode() if isinstance(data, str) else bytes(data)
    except UnicodeEncodeError as error:
        where = f"offset {error.start}"
        raise CodecError("The text holds a lone surrogate.", code="codec.surrogate", where=where) from error
    if len(raw) > max_bytes:
        raise CodecError(f"The document is over the limit of {max_bytes} bytes.", code="codec.too_large")
    if raw.startswith(_MARKS):
        raise CodecError("The document starts with a byte order mark.", code="codec.bom", where="offset 0")
    return raw


def _syntax_error(raw: bytes, error: orjson.JSONDecodeError) -> CodecError:
    try:
        text = raw.decode()
    except UnicodeDecodeError as cause:
        return CodecError("The document is not UTF-8.", code="codec.not_utf8", where=f"offset {cause.start}")
    where = f"offset {error.pos}"
    if "infinity" in error.msg or _NOT_FINITE.match(text, max(error.pos - 1, 0)) or _NOT_FINITE.match(text, error.pos):
        return CodecError("A number is NaN or infinite.", code="codec.not_finite", where=where)
    if "surrogate" in error.msg:
        return CodecError("A text holds a lone surrogate.", code="codec.surrogate", where=where)
    if "depth" in error.msg:
        return CodecError("The document is nested too deep.", code="codec.too_deep", where=where)
    return CodecError(f"This is not JSON: {error.msg}.", code="codec.syntax", where=where)


def _is_deeper(value: Any, raw: bytes, max_depth: int) -> bool:
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return False
    level = [value]
    for _ in range(max_depth):
        level = [child for item in level if isinstance(item, (dict, list)) for child in _inside(item)]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def _inside(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def _check_again(raw: bytes) -> None:
    """Refuse duplicate keys and integers out of range, which orjson lets pass."""
    try:
        json.loads(raw, object_pairs_hook=_unique, parse_int=_small)
    except RecursionError as error:
        raise CodecError("The document is nested too deep for this stack.", code="codec.too_deep") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = _first_repeated(pairs)
        raise CodecError(f"The key {twice[:100]!r} stands twice in one object.", code="codec.duplicate_key")
    return found


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _small(digits: str) -> int:
    # Long digits are never converted: int() is quadratic and has a limit of its own.
    number = int(digits) if len(digits) <= 17 else MAX_INTEGER + 1
    if abs(number) > MAX_INTEGER:
        raise CodecError(f"The integer {digits[:40]} is beyond 2^53-1.", code="codec.integer_range")
    return number


def lenient_object(
    text: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read a model's answer that should be one JSON object and nothing else.

    Strict JSON is taken as it is. Otherwise a think block at the very start, and a Markdown fence (tagged json or
    not tagged) around all of the rest, are taken away once each; what is left must be strict JSON. Nothing is
    searched for, mended or guessed: an unclosed block, text around the object or a raw newline in a string is refused.

    Returns:
        The object, and what was taken away, in order: ``"think"``, ``"fence"``; empty for plain JSON.

    Raises:
        CodecError: There is no such object; ``codec.not_object`` when the JSON is something else.
    """
    notes: tuple[str, ...] = ()
    rest = text.strip(_SPACE)
    for note, pattern in _WRAPPERS:
        match = pattern.fullmatch(rest)
        if match is not None:
            rest, notes = match["rest"].strip(_SPACE), (*notes, note)
    value = loads(rest, max_bytes=max_bytes, max_depth=max_depth)
    if not isinstance(value, dict):
        raise CodecError("The answer is JSON, but not an object.", code="codec.not_object")
    return value, notes
