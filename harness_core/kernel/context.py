"""Gathered items and a budget in, the context a model gets and what was left out and why out: pure (B-101, B-110)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from harness_hookspecs.errors import HarnessError

__all__ = ["Item", "Pack", "assemble"]


@attrs.frozen
class Item:
    """One piece of context.

    ``layer`` is 0 (live execution) to 4 (archive); ``source`` says where it comes from: an event, a file, a command.
    """

    item_id: str
    kind: str
    title: str
    text: str
    tokens: int
    layer: int
    pinned: bool
    source: Any

    def facts(self) -> dict[str, Any]:
        """Everything but the text."""
        return attrs.asdict(self, filter=lambda attribute, value: attribute.name != "text")


@attrs.frozen
class Pack:
    """What a model gets: the text, the items in it, and those left out with the reason."""

    text: str
    tokens: int
    included: tuple[Item, ...]
    left_out: tuple[tuple[Item, str], ...]


def assemble(items: Sequence[Item], budget_tokens: int) -> Pack:
    """Choose and join.

    Pinned items always go in; the others by layer, the lowest first, and in the given order within one: a higher layer
    never displaces a lower one (B-103). Equal texts go in once.

    Raises:
        HarnessError: ``context.overflow``: the pinned items alone do not fit.
    """
    pinned = sum({item.text: item.tokens for item in items if item.pinned and item.text}.values())
    if pinned > budget_tokens:
        message = f"the task and what must not be dropped take {pinned} tokens, the budget is {budget_tokens}"
        raise HarnessError(message, code="context.overflow", tokens=pinned, limit=budget_tokens)
    chosen: set[str] = set()
    left_out: list[tuple[Item, str]] = []
    seen: set[str] = set()
    used = 0
    for item in sorted(items, key=lambda item: (not item.pinned, item.layer)):
        reason = _reason_against(item, seen, budget_tokens - used)
        if reason is not None:
            left_out.append((item, reason))
            continue
        chosen.add(item.item_id)
        seen.add(item.text)
        used += item.tokens
    included = tuple(item for item in items if item.item_id in chosen)
    text = "\n\n".join(f"{item.title}:\n{item.text}" if item.title else item.text for item in included)
    return Pack(text, used, included, tuple(left_out))


def _reason_against(item: Item, seen: set[str], left_tokens: int) -> str | None:
    if not item.text:
        return "empty"
    if item.text in seen:
        return "duplicate"
    if not item.pinned and item.tokens > left_tokens:
        return f"budget: {item.tokens} tokens, {left_tokens} left"
    return None
