"""A role call that asks no model in, what stands in the model's place out: it has no name and answers nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.messages import ChatInput, OracleResponse, Usage
from harness_hookspecs.provider import CallContext, Chunk, ModelRequest

from .model_handle import BoundModel

__all__ = ["NoModel"]


class NoModel:
    """Implements :class:`~harness_hookspecs.role.ModelHandle` for steps that run without one (A-42).

    Args:
        recording: Makes what records and counts the questions of a role that has the step done elsewhere.
    """

    slot_id = provider = model_id = ""
    capabilities: Sequence[str] = ()
    context_tokens = 0
    params: Mapping[str, Any] = {}
    last_turn: int | None = None

    def __init__(self, recording: Callable[[], BoundModel]) -> None:
        self._recording = recording
        self._far: BoundModel | None = None

    def complete(
        self, chat: ChatInput, *, scope: str = "", on_chunk: Callable[[Chunk], None] | None = None
    ) -> OracleResponse:
        """Always refuses."""
        raise RoleError("a step of code, a tool call and a decision run without a model", code="role.no_model")

    def elsewhere(
        self, answer: Callable[[ModelRequest, CallContext], OracleResponse], *, provider: str, model_id: str
    ) -> BoundModel:
        """As with a model: who answers is the role's to say, and no model is asked."""
        self._far = self._far or self._recording()
        return self._far.elsewhere(answer, provider=provider, model_id=model_id)

    def turn_of(self, call_id: str) -> int | None:
        """No model has asked for a call."""
        return None

    def usage(self) -> Usage:
        """What was used elsewhere; else nothing was, which is known."""
        return Usage() if self._far is None else self._far.usage()
