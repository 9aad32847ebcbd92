"""A session's events in, its accepted artifacts as ``harness.artifacts/1`` out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness_core.kernel.facts import Event

from .places import placed

__all__ = ["artifact_items", "artifact_ref", "digest_of_ref"]

_SCHEME = "artifact://sha256-"


def artifact_ref(digest: str) -> str:
    """The reference to stored content, opaque to everyone but the store (A-101)."""
    return f"{_SCHEME}{digest}"


def digest_of_ref(ref: str) -> str | None:
    """The digest behind a reference, or ``None`` for a text that is none."""
    digest = ref.removeprefix(_SCHEME)
    if digest == ref or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        return None
    return digest


def artifact_items(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The accepted artifacts, oldest first; what was rejected stands in the transitions, with its reason."""
    items: list[dict[str, Any]] = []
    for event, place in placed(events):
        if event.type == "session.forked":  # what was there already
            items += [{**item, "seq": event.seq} for item in event.payload["artifacts"]]
        if event.type == "artifact.accepted":
            payload = event.payload
            items.append(
                {
                    "ref": artifact_ref(payload["body_ref"]),
                    "artifact_id": payload["artifact_id"],
                    "type": payload["type"],
                    "status": payload["status"],
                    "stage": place.stage,
                    "visit": place.visit_index,
                    "visit_id": place.visit_id,
                    "attempt": place.attempt,
                    "warnings": list(payload.get("warnings", ())),
                    "seq": event.seq,
                }
            )
    return items
