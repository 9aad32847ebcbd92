"""Kind ``compression``: context items and a budget in, fewer tokens out (built by a later distribution)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .value import Json, Value

__all__ = ["Compression", "ContextItem"]


class ContextItem(Value):
    """One piece of context with where it came from (B-101)."""

    item_id: str
    kind: str
    text: str
    tokens: int
    layer: int
    pinned: bool = False
    source: Json = None


class Compression(Protocol):
    """A strategy for one kind of content; its output is model output where a model made it, and is recorded."""

    def compress(self, items: Sequence[ContextItem], budget_tokens: int) -> Sequence[ContextItem]:
        """Strictly fewer tokens than went in, pinned items untouched; raises ``HarnessError`` when it cannot."""
