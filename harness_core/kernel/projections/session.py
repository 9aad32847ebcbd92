"""A session's state in, its document ``harness.session/1`` and its state hash out."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.kernel.timers import due_at
from harness_hookspecs.events import Category, category_of
from harness_hookspecs.kit.canonical import digest

__all__ = ["WRITTEN_BY", "left_amid_work", "session_document", "state_hash", "waiting_for"]

WRITTEN_BY: dict[Category, tuple[str, ...]] = {
    "lifecycle": ("status", "failure", "kept"),
    "domain": ("stage", "visits", "attempt", "retries", "artifacts", "open"),
    "compression": ("open",),
    "inference": ("usage",),
    "tool": ("in_doubt",),
    "approval": ("approvals", "decided", "grants"),
    "system": ("spent_tokens",),
}
"""What each category's events write of the state that is hashed; of what is open, each its own requests."""


def session_document(state: SessionState) -> dict[str, Any]:
    """What ``sessions show --json`` prints (cli.md); cost is derived downstream and null here."""
    usage = state.usage
    visit = state.visit
    failure = state.failure
    return {
        "schema": "harness.session/1",
        "id": state.session_id,
        "status": state.status,
        "stage": visit.stage if visit is not None else None,
        "title": state.created.get("title", ""),
        "project": state.created.get("project", ""),
        "parent_id": state.created.get("parent_id") or state.forked_from,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "last_seq": state.seq,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_input_tokens": usage.cached_input_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "known": usage.known,
        },
        "cost_usd": None,
        "unpriced_calls": usage.calls + usage.asked_again,
        "artifacts": [artifact["ref"] for artifact in state.artifacts],
        "waiting": waiting_for(state),
        "config_hash": state.config_digest,
        "failure": None
        if failure is None
        else {"code": failure.code, "message": failure.message, "hint": failure.hint},
        "state_hash": state_hash(state),
    }


def waiting_for(state: SessionState) -> list[dict[str, Any]]:
    """What the session waits for, each with kind and id, and the name of an event; ``until`` is null without an expiry.
    Timers come in the order in which they are due; a child session is waited for from its reservation on."""
    if state.final:
        return []
    waiting = [{"kind": "approval", "id": approval_id, "until": None} for approval_id in [*state.pending]]
    waiting += [{"kind": "in_doubt", "id": effect_id, "until": None} for effect_id in state.in_doubt]
    if state.exhausted is not None:
        waiting.append({"kind": "budget", "id": state.exhausted["dimension"], "until": None})
    waiting += [{"kind": "child", "id": one.payload["child_id"], "until": None} for one in [*state.children.values()]]
    waiting += [_event(one) for one in [*state.externals.values()]]
    timers = [{"kind": "timer", "id": one.effect_id, "until": due_at(one)} for one in [*state.timers.values()]]
    return [*waiting, *sorted(timers, key=itemgetter("until"))]


def _event(request: OpenRequest) -> dict[str, Any]:
    until = due_at(request) if "limit_ms" in request.payload else None
    return {"kind": "event", "id": request.effect_id, "until": until, "name": request.payload["name"]}


def left_amid_work(state: SessionState) -> bool:
    """Whether nothing keeps the session from going on: with nobody there who runs it, somebody has left it so.

    By dying, or by a refusal such as ``role.manifest_drift``: the log does not tell the one from the other.
    """
    if state.status not in ("created", "active"):
        return False
    waited_for = {one["kind"] for one in waiting_for(state)}
    beside_waits = len(state.open) > len(state.timers) + len(state.externals)
    return not waited_for or (waited_for <= {"timer", "event"} and beside_waits)


def state_hash(state: SessionState, category: Category | None = None) -> str:
    """SHA-256 of the state without ids, times and timings, so that two runs of the same decisions agree.

    Pauses and resumes are outside it: a session that was interrupted and one that was not end the same.

    Args:
        state: The state.
        category: Hash only what the events of this category write (:data:`WRITTEN_BY`).
    """
    hashed = _hashed(state)
    if category is not None:
        hashed["open"] = [kind for kind in hashed["open"] if category_of(f"{kind}.requested") == category]
        hashed = {name: hashed[name] for name in WRITTEN_BY[category] if name in hashed}
    return digest(hashed)


def _hashed(state: SessionState) -> dict[str, Any]:
    visit = state.visit
    kept = {name: [one["value_ref"] for one in found] for name, found in state.kept.items()}
    return {
        **({"kept": kept} if kept else {}),  # what was hashed before there were deliveries hashes the same
        "status": "active" if state.status == "paused" else state.status,
        "stage": visit.stage if visit is not None else None,
        "visits": dict(state.visits_of),
        "attempt": visit.attempt if visit is not None else 0,
        "retries": visit.retries if visit is not None else 0,
        "open": sorted(request.kind for request in state.open.values()),
        "approvals": [[approval.payload["name"], approval.payload["tier"]] for approval in [*state.pending.values()]],
        "decided": dict(state.decided),
        "grants": [[grant["name"], grant["tier"]] for grant in state.grants],
        "artifacts": [
            [artifact["type"], artifact["status"], artifact["stage"], artifact["ref"]] for artifact in state.artifacts
        ],
        "usage": [state.usage.input_tokens, state.usage.output_tokens, state.usage.calls, state.usage.unknown_calls],
        "spent_tokens": state.spent_tokens,
        "in_doubt": sorted(doubt["tool_name"] for doubt in state.in_doubt.values()),
        "failure": None if state.failure is None else state.failure.code,
    }
