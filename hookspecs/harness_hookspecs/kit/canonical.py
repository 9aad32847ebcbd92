"""Content identity: a plain JSON value goes in, its RFC 8785 canonical bytes or their SHA-256 come out."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.strict import MAX_INTEGER, fault

__all__ = ["canonical", "digest", "read_canonical", "sha256"]

_SORTED: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
_AS_ZEROS: Final = bytes(ord("0" if chr(byte).isdecimal() and byte < 128 else " ") for byte in range(256))
_LONG: Final = b"0" * 16  # as many digits as 2^53 has; most documents hold no such run
_PLAIN: Final = frozenset({str, int, bool, type(None)})


def canonical(value: Any) -> bytes:
    """The canonical form of a JSON value (RFC 8785): one value, one sequence of bytes.

    Raises:
        CodecError: The value is not strict JSON.
    """
    try:
        data = orjson.dumps(value, option=_SORTED)
    except orjson.JSONEncodeError as error:
        raise _refusal(value, str(error)) from error
    return data if _is_orderly(value, data.isascii()) else _by_the_book(value)


def read_canonical(data: bytes) -> Any:
    """Read what ``canonical`` wrote, so that it could be written again.

    1e16 is written there without an exponent, like an integer; it is read as the float that it was.

    Raises:
        CodecError: The bytes are not JSON at all.
    """
    value = loads_trusted(data)  # always the same reader: what it refuses is refused whatever digits stand in it
    # A tenth of what a regular expression takes, and of large documents that would be more than the reading.
    return _with_floats(value) if _LONG in data.translate(_AS_ZEROS) else value


def _with_floats(value: Any) -> Any:
    """The value just read, with integers beyond what strict JSON keeps as the floats that they were."""
    whole = [value]
    waiting: list[Any] = [whole]
    for item in waiting:  # grows while it is read
        for place, child in item.items() if isinstance(item, dict) else enumerate(item):
            if type(child) is int and abs(child) > MAX_INTEGER:
                item[place] = float(child)
            elif isinstance(child, (dict, list)):
                waiting.append(child)
    return whole[0]


def _is_orderly(value: Any, keys_are_ascii: bool) -> bool:
    """Whether orjson's bytes are canonical: no floats (JCS prints them otherwise), no keys beyond ASCII
    (JCS sorts by UTF-16 unit) and nothing that orjson turns into JSON by itself.
    """
    waiting = [value]
    for item in waiting:  # grows while it is read; orjson has proved that it ends
        kind = type(item)
        if kind in _PLAIN:
            continue
        if isinstance(item, dict):
            if not keys_are_ascii and not all(map(str.isascii, item)):
                return False
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
        else:
            return False
    return True


def _by_the_book(value: Any) -> bytes:
    import rfc8785

    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise _refusal(value, str(error)) from error


def _refusal(value: Any, otherwise: str) -> CodecError:
    found = fault(value)
    if found is None:
        return CodecError(f"The value has no canonical form: {otherwise}.")
    return CodecError(found.reason, code=found.code, where=found.pointer or None)


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, as 64 lower-case hexadecimal digits.

    Raises:
        CodecError: The value is not strict JSON.
    """
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256(data: bytes) -> bytes:
    """SHA-256 of bytes, as 32 bytes."""
    return hashlib.sha256(data).digest()
