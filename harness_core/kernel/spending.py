"""What a session has reserved, spent and used up: the events of its budget in, folded into the state they own."""

from __future__ import annotations

from collections.abc import Callable

from .facts import Event
from .state import SessionState

__all__ = ["BUDGET"]


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
