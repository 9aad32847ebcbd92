"""Strict JSON: plain values go in and bytes come out, or bytes go in and plain values come out, or a CodecError says why not.

Refused both ways: NaN and infinities, integers beyond 2^53-1, lone surrogates, keys that are not text, nesting
beyond the limit. Refused on reading besides: duplicate keys, a byte order mark, anything that is not UTF-8, anything
after the value, anything over the size limit.
"""

from __future__ import annotations

import json
import math
from json import JSONDecodeError
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.scan_json import locate

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_INTEGER", "MAX_WRITE_DEPTH", "Fault", "dumps", "fault", "loads", "loads_trusted"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Default size limit of one document that is read, in bytes."""

MAX_DEPTH: Final = 64
"""Default nesting limit of one document that is read; ``[]`` has depth 1."""

MAX_WRITE_DEPTH: Final = 100
"""Nesting limit of values kept in models; orjson itself writes at most 254 levels."""

MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8259, section 6)."""

_WRITE: Final = orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class Fault(NamedTuple):
    """Why a Python value is not strict JSON, and where: a stable code, a sentence and a JSON pointer."""

    code: str
    reason: str
    pointer: str


def dumps(value: Any) -> bytes:
    """Write a plain JSON value as compact UTF-8 JSON, keys in their own order.

    Args:
        value: dict, list, tuple, str, int, float, bool, None, or subclasses of the first three.

    Raises:
        CodecError: The value is not strict JSON; ``where`` is the JSON pointer of the first offender.
    """
    try:
        data = orjson.dumps(value, option=_WRITE)
    except orjson.JSONEncodeError as error:
        _refuse_value(value, str(error))
    # orjson writes NaN and infinities as null, so only an output with a null is worth a walk.
    if data.find(b"null") >= 0:
        found = fault(value)
        if found is not None and found.code == "codec.not_finite":
            raise CodecError(found.reason, code=found.code, where=found.pointer)
    return data


def _refuse_value(value: Any, reason: str) -> NoReturn:
    found = fault(value)
    if found is None:
        raise CodecError(f"The value is not strict JSON: {reason}.")
    raise CodecError(found.reason, code=found.code, where=found.pointer)


def fault(value: Any, *, max_depth: int = 254) -> Fault | None:
    """Find the first thing in a value that strict JSON does not allow, or None.

    Walks without recursion, so that a cyclic value ends as ``codec.too_deep``.
    """
    open_items: list[tuple[Any, str, int]] = [(value, "", 0)]
    while open_items:
        item, pointer, depth = open_items.pop()
        if isinstance(item, (dict, list, tuple)):
            if depth >= max_depth:
                return Fault("codec.too_deep", f"The value is nested deeper than {max_depth} levels.", pointer)
            if isinstance(item, dict):
                bad = next((key for key in item if not isinstance(key, str) or _has_surrogate(key)), None)
                if bad is not None:
                    return _bad_key(bad, pointer)
                children = [(child, f"{pointer}/{_escape(key)}", depth + 1) for key, child in item.items()]
            else:
                children = [(child, f"{pointer}/{index}", depth + 1) for index, child in enumerate(item)]
            open_items.extend(reversed(children))
        elif (found := _scalar_fault(item, pointer)) is not None:
            return found
    return None


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _bad_key(key: Any, pointer: str) -> Fault:
    if isinstance(key, str):
        return Fault("codec.surrogate", "A key holds a lone surrogate.", pointer)
    return Fault("codec.key", f"A key is {type(key).__name__}, not text.", pointer)


def _scalar_fault(item: Any, pointer: str) -> Fault | None:
    if isinstance(item, str):
        return Fault("codec.surrogate", "The text holds a lone surrogate.", pointer) if _has_surrogate(item) else None
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, int):
        small = -MAX_INTEGER <= item <= MAX_INTEGER
        return None if small else Fault("codec.integer_range", "The integer is beyond 2^53-1.", pointer)
    if isinstance(item, float):
        return None if math.isfinite(item) else Fault("codec.not_finite", "The number is NaN or infinite.", pointer)
    return Fault("codec.type", f"A value of type {type(item).__name__} is not JSON.", pointer)


def loads_trusted(data: bytes) -> Any:
    """Read bytes that this program wrote itself (a stored payload); checks grammar only.

    Raises:
        CodecError: The bytes are not JSON at all.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CodecError(f"The stored bytes are not JSON: {error.msg}.", code="codec.syntax", where=f"offset {error.pos}") from error


def loads(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Read one JSON document that came from outside.

    Args:
        data: The whole document, as bytes or text.
        max_bytes: Size limit; text is counted as UTF-8.
        max_depth: Nesting limit, at most 254.

    Raises:
        CodecError: The document is not strict JSON; ``code`` names the reason, ``where`` is a JSON pointer
            or an offset in characters.
    """
    _check_head(data, max_bytes)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _syntax_error(data, error) from error
    # What orjson would write itself has no duplicate keys and no integer that it silently made a float.
    try:
        same = orjson.dumps(value, option=_WRITE) == (data if isinstance(data, bytes) else data.encode())
    except orjson.JSONEncodeError:
        same = False
    if max_depth < 254 and _deeper_than(value, data, max_depth):
        raise CodecError(f"The document is nested deeper than {max_depth} levels.", code="codec.too_deep")
    return value if same else _reread(data, value)


def _check_head(data: bytes | str, max_bytes: int) -> None:
    size = len(data)
    if size <= max_bytes and isinstance(data, str) and size * 4 > max_bytes:
        size = len(data.encode(errors="surrogatepass"))
    if size > max_bytes:
        raise CodecError(f"The document has {size} bytes, over the limit of {max_bytes}.", code="codec.too_large")
    if data.startswith("\ufeff") if isinstance(data, str) else data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise CodecError("The document starts with a byte order mark.", code="codec.bom", where="offset 0")
