"""A command of the durable inbox and the state in, its ``command.received`` and what it does out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .commands import Received
from .facts import Decision, Fact
from .state import Approval, SessionState

__all__ = ["received"]


def received(command: Received, state: SessionState) -> Decision:
    """Take a command: it is always written, also when it can do nothing any more (D-8)."""
    fact = Fact(
        "command.received",
        {"command_id": command.command_id, "kind": command.kind, "body": dict(command.body)},
        actor="operator",
        key=command.command_id,
    )
    more, reply = _KINDS[command.kind](command.body, state) if not state.final else ((), "final")
    return Decision((fact, *more), taken={command.command_id: 0}, reply=reply)


Effect = tuple[tuple[Fact, ...], Any]


def _by_the_fold(body: Any, state: SessionState) -> Effect:
    return (), None  # evolve sets the flag, advance winds down


def _answer(body: Any, state: SessionState) -> Effect:
    approval = state.approvals.get(body["approval_id"])
    if approval is None:
        return (), "unknown"
    if approval.status != "pending":
        return (), "already"
    if body["digest"] != approval.payload["digest"]:
        return (), "digest"
    granted = body["decision"] != "deny"
    refs = {"stage_visit_id": approval.payload["visit_id"]}
    if approval.payload.get("role_call_id"):
        refs["role_call_id"] = approval.payload["role_call_id"]
    facts = [Fact("approval.granted" if granted else "approval.denied", _ending(body), refs, actor="operator")]
    if body.get("say"):
        steering = {"text": body["say"], "source": body["by"], "approval_id": approval.approval_id}
        facts.append(Fact("steering.received", steering, refs, actor="operator"))
    if state.status == "awaiting_approval" and not _others_awaited(state, approval):
        facts.append(Fact("session.resumed", {"reason": "answered", "by": body["by"]}))
    return tuple(facts), "answered"


def _ending(body: Any) -> dict[str, Any]:
    ending = {
        "approval_id": body["approval_id"],
        "digest": body["digest"],
        "by": body["by"],
        "kind": body["kind"],
        "scope": "session" if body["decision"] == "auto_session" else "once",
    }
    if body.get("say"):
        ending["say"] = body["say"]
    return ending


def _others_awaited(state: SessionState, answered: Approval) -> bool:
    return any(
        approval.status == "pending" and approval.awaited and approval is not answered
        for approval in state.approvals.values()
    )


def _steer(body: Any, state: SessionState) -> Effect:
    return (Fact("steering.received", {"text": body["text"], "source": body["by"]}, actor="operator"),), None


def _raise_budget(body: Any, state: SessionState) -> Effect:
    return (Fact("budget.raised", {"limits": dict(body["limits"])}, actor="operator"),), None


def _settle(body: Any, state: SessionState) -> Effect:
    doubt = state.in_doubt.get(body["effect_id"])
    if doubt is None:
        return (), "unknown"
    payload = {"effect_id": body["effect_id"], "outcome": body["outcome"], "by": body["by"], "kind": body["kind"]}
    if body.get("value") is not None:
        payload["value"] = body["value"]
    return (Fact("effect.settled", payload, {"role_call_id": doubt["role_call_id"]}, actor="operator"),), "settled"


_KINDS: dict[str, Callable[[Any, SessionState], Effect]] = {
    "pause": _by_the_fold,
    "cancel": _by_the_fold,
    "answer": _answer,
    "steer": _steer,
    "raise_budget": _raise_budget,
    "settle": _settle,
}
