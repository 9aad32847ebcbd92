"""Gathered facts in, the items of a context pack out: each with its size in tokens, and how that was counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from harness_core.kernel.context import Item
from harness_hookspecs.messages import Message, TextPart

from .gather import Gathered
from .model_handle import ModelEntry, counted_tokens

__all__ = ["STEERING", "counted_items"]

STEERING: Final = "steering"
"""Kind of what a person said meanwhile; it is pinned, and so never left out."""

CHARACTERS_PER_TOKEN = 4
"""English text in the usual vocabularies; used, and named as an estimate, where a provider cannot count."""


def counted_items(facts: Sequence[Gathered], entry: ModelEntry) -> tuple[list[Item], str]:
    """The items, in the order of the facts, and who counted their tokens; one that is too long for itself is cut."""
    count, counted_by = _counter(entry)
    items = []
    for number, fact in enumerate(facts):
        text = fact.text
        tokens = count(text)
        if fact.max_tokens is not None and tokens > fact.max_tokens:
            text = _cut(text, tokens, fact.max_tokens)
            tokens = count(text)
        pinned = fact.kind == STEERING
        items.append(Item(f"i{number}", fact.kind, fact.title, text, tokens, fact.layer, pinned, fact.source))
    return items, counted_by


def _counter(entry: ModelEntry) -> tuple[Callable[[str], int], str]:
    counter = entry.counter
    if counter is not None:

        def counted(text: str) -> int | None:
            message = Message(role="user", content=(TextPart(text=text),))
            return counted_tokens(counter, [message], ())

        frame = counted("") or 0  # what the chat template puts around any message: no item's own

        def count(text: str) -> int:
            found = counted(text)
            return _estimate(text) if found is None else max(0, found - frame)

        return count, f"provider {entry.provider_name}"
    return _estimate, f"estimate: {CHARACTERS_PER_TOKEN} characters a token"


def _estimate(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _cut(text: str, tokens: int, max_tokens: int) -> str:
    """The beginning that fits, with a mark (D-22)."""
    keep = max(0, len(text) * max_tokens // tokens - 24)
    return f"{text[:keep]}\n[cut: {len(text) - keep} characters]"
