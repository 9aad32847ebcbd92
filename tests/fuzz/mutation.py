"""Bytes that were right and a source of chance in, bytes that are nearly right out: what a fuzz test feeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["mutated"]

_TOKENS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r\n", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"NaN", b"1e999", b"-0", b"9007199254740993", b"null", b"true", b"&a ", b"*a", b"<<: ", b"!!python/object ", b"- ",
    b"? ", b"| ", b"\\ud800", b"\\u0000", b"__proto__", b"(", b")", b" && ", b" ? ", b".map(x, ", b"matches(",
    b"```json\n", b"<think>",
)  # fmt: skip
"""What the readers treat in a way of its own."""


def mutated(corpus: Sequence[bytes], chance: Random) -> bytes:
    """One of the corpus with up to six changes; now and then two of them cut together, or one of great depth."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(0, 6)):
        at, upto = sorted(chance.randint(0, len(data)) for _ in range(2))
        chance.choice(_CHANGES)(data, at, min(upto, at + 64), corpus, chance)
    return bytes(data)


def _flip(data: bytearray, at: int, upto: int, corpus: Sequence[bytes], chance: Random) -> None:
    if at < len(data):
        data[at] ^= 1 << chance.randrange(8)


def _insert(data: bytearray, at: int, upto: int, corpus: Sequence[bytes], chance: Random) -> None:
    data[at:at] = chance.choice(_TOKENS) * chance.choice((1, 1, 1, 2, 70))


def _remove(data: bytearray, at: int, upto: int, corpus: Sequence[bytes], chance: Random) -> None:
    del data[at:upto]


def _repeat(data: bytearray, at: int, upto: int, corpus: Sequence[bytes], chance: Random) -> None:
    data[at:at] = data[at:upto] * chance.choice((1, 3, 50))


def _splice(data: bytearray, at: int, upto: int, corpus: Sequence[bytes], chance: Random) -> None:
    other = chance.choice(corpus)
    data[at:] = other[chance.randint(0, len(other)) :]


_CHANGES: Sequence[Callable[[bytearray, int, int, Sequence[bytes], Random], None]] = (
    _flip, _insert, _insert, _remove, _repeat, _splice,
)  # fmt: skip
