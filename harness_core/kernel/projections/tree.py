"""The documents of sessions in, one with all that it comes from and that comes from it as ``harness.tree/1`` out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness_core.kernel.facts import Event
from harness_hookspecs.events import EVENTS

__all__ = ["BEGINNING_EVENTS", "family", "fork_of", "tree_document"]

BEGINNING_EVENTS = 4
"""A log begins with one batch of at most so many: created, loaded, forked, started."""

Member = tuple[Mapping[str, Any], int]
"""A session's document, and how many parents there are above it."""


def family(documents: Iterable[Mapping[str, Any]], session_id: str) -> list[Member]:
    """The oldest ancestor that is still there, below it everything that comes from it: parents first, then by age.

    Args:
        documents: ``harness.session/1`` of every session.
        session_id: One of them.
    """
    known = {document["id"]: document for document in documents}
    children: dict[str, list[str]] = {}
    for document in known.values():
        children.setdefault(document["parent_id"], []).append(document["id"])
    root = session_id
    while known[root]["parent_id"] in known:
        root = known[root]["parent_id"]
    members: list[Member] = []
    waiting = [(root, 0)]  # no recursion: a chain of forks may be as long as somebody likes
    while waiting:
        one, depth = waiting.pop()
        members.append((known[one], depth))
        waiting += [(child, depth + 1) for child in sorted(children.get(one, ()), reverse=True)]
    return members


def fork_of(beginning: Iterable[Event]) -> Event | None:
    """The ``session.forked`` among the first events of a session; ``None`` where it is no fork, or one that a newer
    version wrote, of which nobody here knows what it says."""
    known = EVENTS["session.forked"].version
    return next((event for event in beginning if (event.type, event.version) == ("session.forked", known)), None)


def tree_document(members: Sequence[Member], forked_at: Mapping[str, int | None], session_id: str) -> dict[str, Any]:
    """What ``sessions tree S --json`` prints.

    Args:
        members: The family (:func:`family`).
        forked_at: Id of a session -> seq of its parent's event that it is a fork from.
        session_id: The session that was asked about.
    """
    items = [
        {
            "id": document["id"],
            "parent_id": document["parent_id"],
            "depth": depth,
            "forked_at": forked_at.get(document["id"]),
            "status": document["status"],
            "stage": document["stage"],
            "title": document["title"],
            "created_at": document["created_at"],
            "last_seq": document["last_seq"],
        }
        for document, depth in members
    ]
    return {"schema": "harness.tree/1", "session_id": session_id, "items": items}
