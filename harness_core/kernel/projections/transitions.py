"""A session's events in, every move it made as ``harness.transitions/1`` out: rules, retries and skips with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness_core.kernel.facts import Event

from .places import Place, placed

__all__ = ["transition_items", "transitions_document"]


def transition_items(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The moves in order, each with its ``kind``: ``transition``, ``retry`` or ``skip`` (B-120).

    A retry carries the reason the attempt failed for and, where the attempt got that far, its rejected output.
    """
    items = []
    output: str | None = None
    for event, place in placed(events):
        if event.type == "artifact.proposed":
            output = event.payload["output_ref"]
        item = _ITEMS[event.type](event, place) if event.type in _ITEMS else None
        if item is not None:
            if item["kind"] == "retry":
                item["output_ref"], output = output, None
            items.append({**item, "seq": event.seq, "timestamp": event.timestamp})
    return items


def _taken(event: Event, place: Place) -> dict[str, Any]:
    payload = event.payload
    return {
        "kind": "transition",
        "from": payload["source"],
        "to": payload["target"],
        "visit": place.visit_index,
        "visit_id": payload["visit_id"],
        "attempt": place.attempt,
        "rule": payload["rule"],
        "rule_index": payload["rule_index"],
        "values": payload["values"],
    }


def _retried(event: Event, place: Place) -> dict[str, Any]:
    payload = event.payload
    return {
        "kind": "retry",
        "from": place.stage,
        "to": place.stage,
        "visit": place.visit_index,
        "visit_id": payload["visit_id"],
        "attempt": payload["attempt"],
        "max_attempts": place.max_attempts,
        "strategy": payload["strategy"],
        "code": payload["code"],
        "reason": payload["reason"],
        "inject": payload["inject"],
        "temperature": payload.get("temperature"),
    }


def _skipped(event: Event, place: Place) -> dict[str, Any]:
    payload = event.payload
    return {
        "kind": "skip",
        "from": payload["stage"],
        "to": None,
        "visit": place.visit_index,
        "visit_id": payload["visit_id"],
        "attempt": place.attempt,
        "reason": payload["reason"],
    }


_ITEMS: dict[str, Callable[[Event, Place], dict[str, Any]]] = {
    "transition.taken": _taken,
    "retry.scheduled": _retried,
    "stage.skipped": _skipped,
}


def transitions_document(events: Iterable[Event], session_id: str) -> dict[str, Any]:
    """What ``transitions S --json`` prints."""
    return {"schema": "harness.transitions/1", "session_id": session_id, "items": transition_items(events)}
