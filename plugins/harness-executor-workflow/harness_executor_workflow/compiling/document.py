"""Phase 1: what a model wrote goes in, as bytes, text or a value; plain JSON comes out, or why it is none."""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.errors import CodecError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.strict import fault
from harness_hookspecs.workflow import PlanFinding

from .findings import Place, finding

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Document", "read_document"]

MAX_BYTES: Final = 1024 * 1024
"""The size limit of a plan; of a value, that of its canonical form."""

MAX_DEPTH: Final = 32
"""The nesting limit of a plan; ``[]`` has depth 1."""

_TOO_LARGE: Final = frozenset({"codec.too_large", "codec.too_deep"})


class Document:
    """A plan as a plain JSON value, and its canonical bytes."""

    __slots__ = ("data", "value")

    def __init__(self, value: Any, data: bytes) -> None:
        self.value: Final = value
        self.data: Final = data


def read_document(source: Any) -> Document | PlanFinding:
    """Read a plan.

    Args:
        source: UTF-8 bytes or text of one JSON document, or a value that should be JSON.
    """
    try:
        value = _plain(source)
        data = canonical(value)
    except CodecError as error:
        return _refused(error)
    if len(data) > MAX_BYTES:
        message = f"The plan has {len(data)} bytes; the limit is {MAX_BYTES}."
        return finding("lwir.too_large", Place(), None, message, "plan fewer steps, or shorter texts")
    return Document(value, data)


def _plain(source: Any) -> Any:
    if isinstance(source, bytes | bytearray | memoryview | str):
        text = source if isinstance(source, str) else bytes(source)
        return codec.loads(text, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    found = fault(source, max_depth=MAX_DEPTH)
    if found is not None:
        raise CodecError(found.reason, code=found.code, where=found.pointer or None)
    return codec.loads_trusted(codec.dumps(source))


def _refused(error: CodecError) -> PlanFinding:
    code = "lwir.too_large" if error.code in _TOO_LARGE else "lwir.non_hashable"
    where = error.where or ""
    at = where if where.startswith("/") else ""
    message = error.message if at or not where else f"{error.message.rstrip('.')}, at {where}."
    hint = None if code == "lwir.too_large" else "answer with one JSON object and nothing around it"
    return PlanFinding(severity="error", code=code, path=at, message=message, hint=hint)
