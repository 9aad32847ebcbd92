"""A command of the durable inbox and the state in, its ``command.received``, what it does and its fold out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .commands import Received
from .externals import DELIVERY, delivery, keep
from .facts import Decision, Event, Fact
from .state import Approval, SessionState

__all__ = ["command_received", "fits_answer", "flaw", "goes_on", "is_command", "received"]


def received(command: Received, state: SessionState) -> Decision:
    """Take a command: it is always written, also when it can do nothing any more (D-8), and written once.

    One that is not what its kind says is written and does nothing, or its row would stop the session at each start.
    """
    if command.command_id in state.commands:
        return Decision(reply="already")
    body = dict(command.body) if isinstance(command.body, Mapping) else {}
    blobs: dict[str, bytes] = {}
    if command.kind == DELIVERY and is_command(DELIVERY, body) and not state.final:
        body, blobs = delivery(body)
    fact = Fact(
        "command.received",
        {"command_id": command.command_id, "kind": str(command.kind), "body": body},
        actor="operator",
        key=command.command_id,
    )
    more, reply = _effect(command.kind, body, state)
    return Decision((fact, *more), blobs, taken={command.command_id: 0}, reply=reply)


def command_received(state: SessionState, event: Event) -> None:
    """Fold a command; what it does beyond that are events of its own."""
    payload, body = event.payload, event.payload.get("body") or {}
    state.commands.add(payload["command_id"])
    if payload["kind"] == "cancel" and not state.final:
        state.cancelling = str(body.get("reason") or "cancelled")
    if payload["kind"] == "pause" and state.status == "active":
        state.pausing = str(body.get("reason") or "operator")
    if payload["kind"] == DELIVERY and not state.final and is_command(DELIVERY, body):
        keep(state, event)


Effect = tuple[tuple[Fact, ...], Any]


def _effect(kind: str, body: Mapping[str, Any], state: SessionState) -> Effect:
    if state.final:
        return (), "final"
    if not is_command(kind, body):
        return (), "malformed"
    return _KINDS[kind](body, state)


def is_command(kind: Any, body: Any) -> bool:
    """Whether a body is what a command of that kind needs; one that is not does nothing."""
    return flaw(kind, body) is None


def flaw(kind: Any, body: Any) -> str | None:
    """What is wrong with a command, ``None`` when nothing is; asked before it is posted, since a row stays for ever."""
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return f"{kind!r} is no kind of command; kinds: {', '.join(_FIELDS)}"
    if not isinstance(body, Mapping):
        return f"the body of {kind} holds its fields by name, it is no {type(body).__name__}"
    for name, fits in fields.items():
        if not fits(body.get(name)):
            return f"{name} of {kind} is missing or not of its kind"
    return None


def fits_answer(kind: Any, body: Any, approval_id: str, digest: str) -> bool:
    """Whether a posted command is an answer to that question; one that is not leaves it open, whatever its id."""
    if kind != "answer" or not is_command(kind, body):
        return False
    return (body["approval_id"], body["digest"]) == (approval_id, digest)


def _by_the_fold(body: Any, state: SessionState) -> Effect:
    return (), None  # evolve sets the flag or keeps what was delivered; advance winds down, or hands it over


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
    return (*facts, *goes_on(state, [approval], body["by"])), "answered"


def goes_on(state: SessionState, answered: Sequence[Approval], by: str) -> tuple[Fact, ...]:
    """A session that waited for these answers alone is active again."""
    if state.status != "awaiting_approval" or _others_awaited(state, answered):
        return ()
    return (Fact("session.resumed", {"reason": "answered", "by": by}),)


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


def _others_awaited(state: SessionState, answered: Sequence[Approval]) -> bool:
    ended = {approval.approval_id for approval in answered}
    return any(
        approval.awaited and approval.approval_id not in ended for approval in state.pending.values()
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
    DELIVERY: _by_the_fold,
}


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _named(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _text_if_any(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _one_of(*known: str) -> Callable[[Any], bool]:
    return lambda value: value in known


def _limits(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        name in ("tokens", "calls", "seconds") and type(limit) in (int, float) and limit > 0
        for name, limit in value.items()
    )


_FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "pause": {},
    "cancel": {},
    "answer": {
        "approval_id": _text,
        "decision": _one_of("approve", "deny", "auto_session"),
        "digest": _text,
        "by": _text,
        "kind": _one_of("person", "policy"),
        "say": _text_if_any,
    },
    "steer": {"text": _text, "by": _text},
    "raise_budget": {"limits": _limits},
    "settle": {
        "effect_id": _text,
        "outcome": _one_of("happened", "never_happened"),
        "by": _text,
        "kind": _one_of("person", "policy", "probe"),
    },
    DELIVERY: {"name": _named, "by": _text},
}
