"""A role call that asks no model in, what stands in the model's place out: it has no name and answers nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.messages import ChatInput, OracleResponse, Usage
from harness_hookspecs.provider import Chunk

__all__ = ["NoModel"]


class NoModel:
    """Implements :class:`~harness_hookspecs.role.ModelHandle` for steps that run without one (A-42)."""

    slot_id = provider = model_id = ""
    capabilities: Sequence[str] = ()
    context_tokens = 0
    params: Mapping[str, Any] = {}
    last_turn: int | None = None

    def complete(
        self, chat: ChatInput, *, scope: str = "", on_chunk: Callable[[Chunk], None] | None = None
    ) -> OracleResponse:
        """Always refuses."""
        raise RoleError("a step of code, a tool call and a decision run without a model", code="role.no_model")

    def turn_of(self, call_id: str) -> int | None:
        """No model has asked for a call."""
        return None

    def usage(self) -> Usage:
        """Nothing was used, which is known."""
        return Usage()
