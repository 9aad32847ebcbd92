"""What ``decide`` gives: facts to append, and ids derived from what they name so that asking twice names the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Decision", "Event", "Fact", "derive", "effect_id"]


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
    version: int = 1


class Decision(NamedTuple):
    """The outcome of one command: facts, content they refer to, inbox marks, and an answer for the caller."""

    facts: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = {}
    taken: Mapping[str, int] = {}
    reply: Any = None


def derive(prefix: str, *parts: object) -> str:
    """``prefix_`` and 104 bits in hexadecimal that depend on nothing but ``parts``.

    Derived, not drawn: a decision taken again after a crash names the same visit, effect or approval
    (reliability.md, effect_id).
    """
    return f"{prefix}_{hashlib.sha256(chr(31).join(map(str, parts)).encode()).hexdigest()[:26]}"


def effect_id(role_call_id: str, call_id: str, start: int = 1) -> str:
    """The identity of a tool call's effect and the tool's idempotency key: the same whenever this start of the call is
    met.

    What was said of one start (that it never happened) says nothing of the next, so each has an id of its own.
    """
    return derive("eff", role_call_id, call_id, *(() if start == 1 else (start,)))
