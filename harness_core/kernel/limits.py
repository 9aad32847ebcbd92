"""A wanted model call and what is spent in, a yes or the exhausted dimension out."""

from __future__ import annotations

from typing import Any

from .children import reserved_for_children
from .definition import Limits
from .state import SessionState

__all__ = ["exhausted_by"]


def exhausted_by(
    state: SessionState, limits: Limits, *, wanted_tokens: int, elapsed_seconds: float
) -> dict[str, Any] | None:
    """The payload of ``budget.exhausted`` when the reservation does not fit, else ``None``.

    Tokens already spent count with what is reserved and not settled; a call whose usage nobody reported counts with
    its whole reservation, for unknown is not zero; so does a child session with all that it was granted until it ends.
    Time is what settlements recorded plus what passed since the last.
    """
    used_tokens = state.spent_tokens + sum(state.reserved.values()) + reserved_for_children(state, "tokens")
    used_calls = state.usage.calls + reserved_for_children(state, "calls")
    for dimension, limit, used, wanted in (
        ("tokens", state.budget.get("tokens", limits.budget_tokens), used_tokens, wanted_tokens),
        ("calls", state.budget.get("calls", limits.budget_calls), used_calls, 1),
        ("seconds", state.budget.get("seconds", limits.budget_seconds), state.active_ms / 1000 + elapsed_seconds, 0),
    ):
        if used + wanted > limit:
            return {"dimension": dimension, "limit": limit, "used": used, "wanted": wanted}
    return None
