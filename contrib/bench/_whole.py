"""Goal 2b: a session makes so many steps one after another, each a role call that makes one call of a pure tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness_hookspecs.executor import Finish, Outcome, StageInput
from harness_hookspecs.role import ExecuteStepResult, RoleContext, RoleTask
from harness_hookspecs.store import Store

from ._rig import SESSION_ID, TOOL, PureTool, Rig, begin, ready, role_call

__all__ = ["SESSION_ID", "STEPS", "ready_steps", "whole_steps"]

STEPS = 300


class _ManyCalls:
    """An executor that asks for that many role calls, one at a time."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def start(self, stage_input: StageInput) -> Any:
        return 0

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return state + 1

    def next(self, state: Any) -> tuple[Any, ...]:
        if state == self._steps:
            return (Finish(output={"text": "done"}),)
        return (role_call(f"look#{state}", state),)


class _OneToolCall:
    def run(self, task: RoleTask, ctx: RoleContext) -> ExecuteStepResult:
        return ExecuteStepResult(output=ctx.tools[TOOL].execute({"at": "x"}), artifact_refs=())


@contextmanager
def ready_steps(store: Store, steps: int = STEPS) -> Iterator[Callable[[], None]]:
    """A session of so many steps that is not begun yet; what is given runs it to its end and sees that it made them."""

    def play() -> None:
        begin(session)
        session.wait()
        assert session.state.visit is not None and len(session.state.visit.outcomes) == steps

    with ready(store, Rig(_ManyCalls(steps), _OneToolCall(), PureTool(), role_calls=steps)) as session:
        yield play


def whole_steps(store: Store, steps: int = STEPS) -> None:
    """Run one session of so many steps to its end and see that it made them."""
    with ready_steps(store, steps) as play:
        play()
