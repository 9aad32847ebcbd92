"""What a session has reserved, spent and used up: the events of its budget in, folded into the state they own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .facts import Event, Fact
from .state import SessionState

__all__ = ["BUDGET", "beyond_plan", "tokens_used"]


def tokens_used(state: SessionState) -> int:
    """What was spent, and what is reserved and not settled."""
    return state.spent_tokens + sum(state.reserved.values())


def beyond_plan(
    state: SessionState, role_call_id: str, wanted_tokens: int, results: Sequence[Fact]
) -> str | None:
    """Why a model call may not be made under the limit that its role call is asked with; ``None`` where it may.

    ``results`` come into the log with it: what they settle is known, and no longer reserved.
    """
    request, visit = state.open_of(role_call_id), state.visit
    limit = None if request is None else request.payload.get("max_tokens")
    if limit is None or visit is None:
        return None
    used = tokens_used(state) - visit.tokens_before + sum(_change(state, fact) for fact in results)
    if used + wanted_tokens <= limit:
        return None
    return f"the run has used {used} of {limit} tokens (limits.maxTokens), and the call may use more than is left"


def _change(state: SessionState, fact: Fact) -> int:
    if fact.type != "budget.settled":
        return 0
    return int(fact.payload["tokens"]) - int(state.reserved.get(fact.payload["call_id"], 0))


def _reserved(state: SessionState, event: Event) -> None:
    state.reserved[event.payload["call_id"]] = event.payload["tokens"]


def _settled(state: SessionState, event: Event) -> None:
    state.reserved.pop(event.payload["call_id"], None)
    state.spent_tokens += event.payload["tokens"]
    state.active_ms += event.payload.get("elapsed_ms", 0)


def _exhausted(state: SessionState, event: Event) -> None:
    state.exhausted = dict(event.payload)


def _raised(state: SessionState, event: Event) -> None:
    state.budget.update(event.payload["limits"])
    state.exhausted = None


BUDGET: dict[str, Callable[[SessionState, Event], None]] = {
    "budget.reserved": _reserved,
    "budget.settled": _settled,
    "budget.exhausted": _exhausted,
    "budget.raised": _raised,
}
"""By type of the event."""
