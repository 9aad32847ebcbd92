"""A session's events in, what waits for a decision, what was decided and which grants hold out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness_core.kernel.facts import Event

from .places import Place, placed

__all__ = ["approval_items", "doubt_items", "grant_items"]

_ENDINGS = frozenset(
    ("approval.granted", "approval.denied", "approval.bypassed", "approval.expired", "approval.superseded")
)
_FINAL = frozenset(("session.completed", "session.failed", "session.cancelled"))


def approval_items(events: Iterable[Event], session_id: str, *, history: bool = False) -> list[dict[str, Any]]:
    """The approvals of a session in order: those that wait, or with ``history`` all (B-127).

    Each names its session's project, the call, its tier, the rule that asks, what the answer binds to, and who answered
    and how. An approval that was open when its session ended has status ``closed``; nothing can be answered any more.
    """
    found: dict[str, dict[str, Any]] = {}
    project = ""
    for event, place in placed(events):
        payload = event.payload
        if event.type == "session.created":
            project = payload["project"]
        elif event.type == "approval.requested":
            found[payload["approval_id"]] = {**_requested(event, place, session_id), "project": project}
        elif event.type in _ENDINGS and payload["approval_id"] in found:
            found[payload["approval_id"]] |= _ended(event)
        elif event.type in _FINAL:
            for item in found.values():
                item["status"] = "closed" if item["status"] == "pending" else item["status"]
    return [item for item in found.values() if history or item["status"] == "pending"]


def _requested(event: Event, place: Place, session_id: str) -> dict[str, Any]:
    payload = event.payload
    return {
        "id": payload["approval_id"],
        "kind": "approval",
        "session_id": session_id,
        "status": "pending",
        "stage": place.stage,
        "attempt": place.attempt,
        "persona": payload["persona"],
        "subject": payload["subject"],
        "name": payload["name"],
        "tier": payload["tier"],
        "args": payload["args"],
        "digest": payload["digest"],
        "rule": payload["rule"],
        "preview_ref": payload.get("preview_ref"),
        "requested_at": event.timestamp,
        "requested_seq": event.seq,
        "answer": None,
    }


def _ended(event: Event) -> dict[str, Any]:
    payload = event.payload
    answer = {
        "by": payload["by"],
        "via": payload["kind"],
        "scope": payload.get("scope", "once"),
        "say": payload.get("say"),
        "reason": payload.get("reason"),
        "digest": payload["digest"],
        "at": event.timestamp,
        "seq": event.seq,
    }
    return {"status": event.type.removeprefix("approval."), "answer": answer}


def grant_items(events: Iterable[Event], session_id: str) -> list[dict[str, Any]]:
    """The grants a session has: each for one tool at one tier, given by one answer, until the session ends (B-79)."""
    events = list(events)
    over = any(event.type in _FINAL for event in events)
    return [
        {
            "id": item["id"],
            "session_id": session_id,
            "name": item["name"],
            "tier": item["tier"],
            "by": item["answer"]["by"],
            "at": item["answer"]["at"],
            "seq": item["answer"]["seq"],
            "active": not over,
        }
        for item in approval_items(events, session_id, history=True)
        if item["status"] == "granted" and item["answer"]["scope"] == "session"
    ]


def doubt_items(events: Iterable[Event], session_id: str) -> list[dict[str, Any]]:
    """Effects of which nobody knows whether they happened, until a person or a policy settles them (D-6)."""
    started: dict[str, Mapping[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    project = ""
    for event, place in placed(events):
        payload = event.payload
        if event.type == "session.created":
            project = payload["project"]
        elif event.type == "harness.tool_call.started":
            started[payload["callId"]] = payload
        elif event.type == "effect.in_doubt":
            call = started.get(payload["call_id"], {})
            found[payload["effect_id"]] = {
                "id": payload["effect_id"],
                "kind": "in_doubt",
                "session_id": session_id,
                "project": project,
                "status": "in_doubt",
                "stage": place.stage,
                "name": payload["tool_name"],
                "tier": call.get("tier"),
                "args": call.get("args"),
                "requested_at": event.timestamp,
                "requested_seq": event.seq,
            }
        elif event.type == "effect.settled":
            found.pop(payload["effect_id"], None)
        elif event.type in _FINAL:
            found.clear()
    return list(found.values())
