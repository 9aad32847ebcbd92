"""A ``tool.call`` step: its filled arguments go in, the result of its one tool call comes out; no model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.code_step import tool_of
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.kit.step_output import held
from harness_hookspecs.role import ExecuteStepTask, RoleContext
from harness_hookspecs.workflow import ToolCallStep

__all__ = ["call_tool"]


def call_tool(task: ExecuteStepTask, step: ToolCallStep, ctx: RoleContext) -> Any:
    """Call the step's tool once, by code, and hold the result to the step's output contract.

    Args:
        task: Its input is the arguments of a step that has none of its own; without both there are none.
        step: The step, its arguments filled by the executor.
        ctx: Has the tool.

    Returns:
        The result; for an output of mode text anything but a text as canonical JSON, as a template would write it.

    Raises:
        RoleError: ``tool.unknown``, ``tool.invalid_args`` or ``role.output_invalid``.
        ToolError: As the call failed or was denied.
        Suspend: Somebody must decide first.
    """
    tool = tool_of(ctx.tools, step.with_.tool)
    given = task.step_input if step.with_.args is None else step.with_.args
    args = {} if given is None else thaw(given)
    if not isinstance(args, Mapping):
        message = f"The arguments of {step.with_.tool} are no object."
        raise RoleError(message, code="tool.invalid_args", tool=step.with_.tool)
    ctx.abort_signal.raise_if_cancelled()
    result = tool.execute(args)
    if step.output.mode == "text" and not isinstance(result, str):
        result = canonical(result).decode()
    return held(step.output, result)
