"""Goal 8: a session goes through the default role's agent loop, an instant model and one tool call a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from harness_hookspecs.executor import Finish, Outcome, StageInput
from harness_hookspecs.messages import OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.provider import CallContext, ModelRequest
from harness_hookspecs.store import Store
from harness_role_workflow.role import WorkflowRole
from harness_role_workflow.settings import WorkflowRoleSettings

from ._rig import TOOL, PureTool, Rig, begin, ready, role_call

__all__ = ["InTurn", "InstantModel", "agent_rig", "agent_turns", "ready_turns"]

_USAGE = Usage(input_tokens=10, output_tokens=5, cached_input_tokens=0, reasoning_tokens=0, known=True)


class InTurn:
    """An executor that asks for so many role calls, one after another; the stage ends with the last one's output."""

    def __init__(self, role_calls: int) -> None:
        self._role_calls = role_calls

    def start(self, stage_input: StageInput) -> Any:
        """Nothing has ended."""
        return 0

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """One more has ended."""
        assert outcome.ok, outcome.error
        return state + 1

    def next(self, state: Any) -> tuple[Any, ...]:
        """The one after those that ended."""
        if state == self._role_calls:
            return (Finish(output={"text": "done"}),)
        return (role_call(f"agent#{state}", {"context": f"part {state}"}),)


class InstantModel:
    """A provider that asks for one tool call a turn and answers in the last one, at once."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """Answer at once."""
        turn = request.routing.turn
        if turn > self._turns:
            return OracleResponse(content=(TextPart(text='{"text": "done"}'),), finish_reason="stop", usage=_USAGE)
        asked = ToolCallRequest(call_id=f"call-{turn}", tool_name=TOOL, args={"at": f"place {turn}"})
        return OracleResponse(content=(), tool_calls=(asked,), finish_reason="tool_calls", usage=_USAGE)

    def count_tokens(self, messages: Sequence[Any], tools: Sequence[Any] = ()) -> None:
        """Nothing is known of its tokens."""

    def close(self) -> None:
        """Nothing was opened."""


def agent_rig(turns: int, role_calls: int = 1) -> Rig:
    """Role calls of so many turns each, and one more turn for the answer.

    A stage may have 100 turns at most; the settings are made past that check, since the goal names 200.
    """
    role = WorkflowRole(WorkflowRoleSettings.model_construct(max_turns=turns + 1, equal_failures=3))
    return Rig(InTurn(role_calls), role, PureTool(), InstantModel(turns), role_calls=role_calls)


@contextmanager
def ready_turns(store: Store, turns: int, role_calls: int = 1) -> Iterator[Callable[[], None]]:
    """A session of so many turns that is not begun yet; what is given runs it to its end."""

    def play() -> None:
        begin(session)
        session.wait()
        assert session.state.status == "completed", session.state.failure

    with ready(store, agent_rig(turns, role_calls)) as session:
        yield play


def agent_turns(store: Store, turns: int, role_calls: int = 1) -> None:
    """Run a session of so many turns to its end."""
    with ready_turns(store, turns, role_calls) as play:
        play()
