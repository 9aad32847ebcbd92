"""What ``decide`` gives: facts to append, and ids derived from what they name so that asking twice names the same."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Decision", "Event", "Fact", "derive"]


class Fact(NamedTuple):
    """An event to be; ``refs`` are the envelope fields the kernel knows."""

    type: str
    payload: dict[str, Any]
    refs: Mapping[str, Any] = {}
    actor: str = "system"
    key: str | None = None


class Event(NamedTuple):
    """An event to fold: decoded, with the place the store gave it."""

    seq: int
    id: str
    type: str
    payload: Mapping[str, Any]
    refs: Mapping[str, Any]
    timestamp: str = ""


class Decision(NamedTuple):
    """The outcome of one command: facts, content they refer to, inbox marks, and an answer for the caller."""

    facts: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = {}
    taken: Mapping[str, int] = {}
    reply: Any = None


def derive(prefix: str, *parts: object) -> str:
    """``prefix_`` and 26 letters that depend on nothing but ``parts``.

    Derived, not drawn: a decision taken again after a crash names the same visit, effect or approval
    (reliability.md, effect_id).
    """
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return f"{prefix}_{base64.b32encode(digest).decode()[:26].lower()}"
