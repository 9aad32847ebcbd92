"""Goal 3: a session goes on in branches side by side, each some role calls that make calls of a pure tool."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from harness_hookspecs.executor import Finish, Outcome, StageInput
from harness_hookspecs.role import ExecuteStepResult, ExecuteStepTask, RoleContext, RoleTask
from harness_hookspecs.store import Store
from harness_hookspecs.tool import ToolContext, ToolResult

from ._rig import TOOL, PureTool, Rig, played, role_call

__all__ = ["branch_steps", "steps_beside_a_slow_branch"]

ROLE_CALLS = 2
"""Of each branch, one after another."""
PATIENCE_SECONDS = 120.0
"""How long fast branches are waited for: reached only when they wait for the slow one."""


class _Fan:
    """An executor that asks for one role call after another in every branch; its state is how many each has ended."""

    def __init__(self, branches: int) -> None:
        self._branches = [f"branch[{branch}]" for branch in range(branches)]

    def start(self, stage_input: StageInput) -> Any:
        return dict.fromkeys(self._branches, 0)

    def apply(self, state: Any, outcome: Outcome) -> Any:
        assert outcome.ok, outcome.error
        name = outcome.request_id.partition(".")[0]
        return {**state, name: state[name] + 1}

    def next(self, state: Any) -> tuple[Any, ...]:
        open_calls = [(name, count) for name, count in state.items() if count < ROLE_CALLS]
        if not open_calls:
            return (Finish(output={"text": "done"}),)
        return tuple(role_call(f"{name}.call[{count}]", {"branch": name}) for name, count in open_calls)


class _ToolCalls:
    """A role that makes so many tool calls, one after another."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def run(self, task: RoleTask, ctx: RoleContext) -> ExecuteStepResult:
        assert isinstance(task, ExecuteStepTask)
        given = task.step_input
        assert isinstance(given, Mapping)
        seen = [ctx.tools[TOOL].execute({"at": given["branch"]}) for _ in range(self._steps)]
        return ExecuteStepResult(output=seen[-1], artifact_refs=())


class _Held(PureTool):
    """The calls of the first branch wait until the others have made all of theirs, or patience is at its end."""

    def __init__(self, others: int) -> None:
        self._left, self._lock, self._made = others, threading.Lock(), threading.Event()

    def execute(self, name: str, args: Any, ctx: ToolContext) -> ToolResult:
        if args["at"] == "branch[0]":
            self._made.wait(PATIENCE_SECONDS)
        else:
            with self._lock:
                self._left -= 1
                if not self._left:
                    self._made.set()
        return super().execute(name, args, ctx)

    def left(self) -> int:
        """How many calls of the others are still to be made, when patience is at its end or all were made."""
        self._made.wait(PATIENCE_SECONDS)
        return self._left


def _rig(steps: int, branches: int, tools: PureTool) -> Rig:
    role = _ToolCalls(steps // branches // ROLE_CALLS)
    return Rig(_Fan(branches), role, tools, role_calls=branches * ROLE_CALLS)


def branch_steps(store: Store, steps: int, branches: int) -> None:
    """Run a session of so many tool calls in all, made by so many branches in two role calls each."""
    with played(store, _rig(steps, branches, PureTool())) as session:
        session.wait()
        assert session.state.status == "completed", session.state.failure


def steps_beside_a_slow_branch(store: Store, steps: int, branches: int) -> float:
    """The share of the fast branches' steps that are made while the one slow branch is still in its first."""
    others = steps // branches * (branches - 1)
    tool = _Held(others)
    with played(store, _rig(steps, branches, tool)) as session:
        made = others - tool.left()
        session.wait()
        assert session.state.status == "completed", session.state.failure
    return made / others
