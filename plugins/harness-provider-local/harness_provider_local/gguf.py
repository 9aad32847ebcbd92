"""The bytes of a model file go in; what its header says, or why it is no whole GGUF file, comes out.

llama.cpp says little more than "failed" about a bad file and crashes on some, so the header is read before the engine
sees it: every tensor must lie inside the file.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, Protocol

from harness_hookspecs.errors import ProviderError

__all__ = ["ModelFile", "read_header"]

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
DEFAULT_ALIGNMENT: Final = 32

# GGUF metadata value types: the struct format of each scalar; 8 is a string and 9 an array.
SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING: Final = 8
ARRAY: Final = 9

# ggml tensor types: (values per block, bytes per block). A type that is missing here is not measured.
BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}  # fmt: skip


class Bytes(Protocol):
    """A file mapped into memory, or just bytes."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice, /) -> bytes: ...


class ModelFile(NamedTuple):
    """What the header of a GGUF file says; ``None`` is "it does not say"."""

    architecture: str | None
    name: str | None
    context_tokens: int | None
    layers: int | None
    chat_template: str | None
    tensors: int
    tensor_bytes: int


class _Cursor:
    """Reads little-endian values one after the other."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.size = len(data)
        self.at = 0

    def scalar(self, form: str) -> Any:
        width = struct.calcsize("<" + form)
        (value,) = struct.unpack("<" + form, self.take(width))
        return value

    def text(self) -> str:
        return self.take(self.scalar("Q")).decode("utf-8", "replace")

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > self.size:
            raise _bad("truncated", f"The model file ends in its header, at byte {self.size}.")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.size:
            raise _bad("truncated", f"The model file ends in its header, at byte {self.size}.")


def read_header(data: Bytes) -> ModelFile:
    """Read and check the header of a GGUF file.

    Args:
        data: The whole file; only the header's pages are touched.

    Raises:
        ProviderError: ``provider.model_file`` with ``reason`` ``empty``, ``not_gguf``, ``version``, ``truncated`` or
            ``corrupt``.
    """
    cursor = _Cursor(data)
    _check_magic(cursor)
    tensors, pairs = cursor.scalar("Q"), cursor.scalar("Q")
    facts = dict(_pair(cursor) for _ in range(pairs))
    ends = [_tensor(cursor) for _ in range(tensors)]
    alignment = _count(facts, "general.alignment") or DEFAULT_ALIGNMENT
    start = -(-cursor.at // alignment) * alignment
    needed = start + max((offset + size for offset, size in ends), default=0)
    if needed > cursor.size:
        raise _bad("truncated", f"The model file has {cursor.size} of {needed} bytes: it was cut short.")
    return _model_file(facts, tensors, sum(size for _, size in ends))


def _bad(reason: str, message: str) -> ProviderError:
    return ProviderError(message, code="provider.model_file", reason=reason)


def _check_magic(cursor: _Cursor) -> None:
    if cursor.size == 0:
        raise _bad("empty", "The model file is empty.")
    head = cursor.data[:64]
    if head[:4] != MAGIC:
        looks = "an HTML page" if b"<html" in head.lower() or b"<!doctype" in head.lower() else "something else"
        raise _bad("not_gguf", f"The model file is no GGUF file but {looks}.")
    cursor.skip(4)
    version = cursor.scalar("I")
    if version not in VERSIONS:
        raise _bad("version", f"The model file is GGUF version {version}; versions 2 and 3 are read.")


def _pair(cursor: _Cursor) -> tuple[str, Any]:
    key, kind = cursor.text(), cursor.scalar("I")
    if kind != ARRAY:
        return key, _value(cursor, kind)
    _skip_array(cursor)
    return key, None


def _value(cursor: _Cursor, kind: int) -> Any:
    if kind == STRING:
        return cursor.text()
    if kind not in SCALARS:
        raise _bad("corrupt", f"The model file's header holds a value of the unknown type {kind}.")
    return cursor.scalar(SCALARS[kind])


def _skip_array(cursor: _Cursor) -> None:
    """Step over an array: vocabularies hold hundreds of thousands of strings, and none of them is needed."""
    kind, count = cursor.scalar("I"), cursor.scalar("Q")
    if kind == STRING:
        for _ in range(count):
            cursor.skip(cursor.scalar("Q"))
    elif kind in SCALARS:
        cursor.skip(count * struct.calcsize("<" + SCALARS[kind]))
    else:
        raise _bad("corrupt", f"The model file's header holds a list of the unknown type {kind}.")


def _tensor(cursor: _Cursor) -> tuple[int, int]:
    """Give the offset and the size of one tensor."""
    cursor.skip(cursor.scalar("Q"))
    dimensions = cursor.scalar("I")
    if dimensions > 4:
        raise _bad("corrupt", f"A tensor of the model file has {dimensions} dimensions.")
    values = 1
    for _ in range(dimensions):
        values *= cursor.scalar("Q")
    kind, offset = cursor.scalar("I"), cursor.scalar("Q")
    per_block, block_bytes = BLOCKS.get(kind, (1, 0))
    return offset, values // per_block * block_bytes


def _model_file(facts: dict[str, Any], tensors: int, tensor_bytes: int) -> ModelFile:
    architecture = _text(facts, "general.architecture")
    return ModelFile(
        architecture=architecture,
        name=_text(facts, "general.name"),
        context_tokens=_count(facts, f"{architecture}.context_length"),
        layers=_count(facts, f"{architecture}.block_count"),
        chat_template=_text(facts, "tokenizer.chat_template"),
        tensors=tensors,
        tensor_bytes=tensor_bytes,
    )


def _text(facts: dict[str, Any], key: str) -> str | None:
    value = facts.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _bad("corrupt", f"The model file's {key} is no text.")


def _count(facts: dict[str, Any], key: str) -> int | None:
    value = facts.get(key)
    if value is None or (type(value) is int and value >= 0):
        return value
    raise _bad("corrupt", f"The model file's {key} is no count.")
