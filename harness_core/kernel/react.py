"""State in, effects out: what should be under way now. Asking twice names the same effects."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from .children import children_of
from .effects import Ask, CompilePlan, Effect, GatherContext, RunChild, RunRole, Validate
from .state import OpenRequest, SessionState

__all__ = ["react"]

_KINDS: dict[str, type[GatherContext | RunRole | Validate | CompilePlan | RunChild]] = {
    "context": GatherContext,
    "role": RunRole,
    "validation": Validate,
    "compile": CompilePlan,
    "child": RunChild,
}


def react(state: SessionState, after: int = 0) -> list[Effect]:
    """Every effect that may run; none while the session is final, paused or about to be.

    An approval is asked about once; when nobody answered it is awaited, and asked about again on resume only. A timer
    is waited for by who owns the session, what comes from outside by the inbox: neither is an effect.

    Args:
        state: Read only.
        after: Only what was asked for after this seq is wanted: what is older was begun, and the state's
            ``changed_seq`` is not after it. With thousands of branches open, few are new.
    """
    if state.status not in ("active", "awaiting_approval") or state.pausing or state.cancelling:
        return []
    effects: list[Effect] = [
        _KINDS[request.kind](request.effect_id, f"{request.effect_id}#{request.rounds}")
        for request in _since(state, after)
        if request.kind in _KINDS and _may_run(state, request)
    ]
    effects += [
        Ask(approval.approval_id, approval.approval_id)
        for approval in state.pending.values()
        if not approval.awaited
    ]
    return effects


def _since(state: SessionState, seq: int) -> Iterable[OpenRequest]:
    if not seq:
        return state.open.values()
    return [*takewhile(lambda request: request.seq > seq, reversed(state.open.values()))][::-1]  # in their order


def _may_run(state: SessionState, request: OpenRequest) -> bool:
    if request.kind == "child":
        return bool(request.grant) and request.short is None
    if state.migrated_seq > max(request.seq, request.suspended_seq):  # perhaps it is another call now
        return True
    if request.kind == "role" and any(children_of(state, request.payload["role_call_id"])):
        return False  # it could do nothing but wait for them
    if request.suspended is None:
        return True
    kind, wait_id = request.suspended
    if kind == "approval":
        return not any(
            approval.payload.get("role_call_id") == request.payload["role_call_id"]
            for approval in state.pending.values()
        )
    if kind == "budget":
        return state.exhausted is None
    if kind == "in_doubt":
        return wait_id not in state.in_doubt
    return kind == "child" or bool(kind == "pause" and state.status == "active")
