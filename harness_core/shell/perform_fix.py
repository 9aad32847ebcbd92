"""A fixer's claim in, what its source really gives out: the host runs it, whatever the fixer says that it gives."""

from __future__ import annotations

from harness_hookspecs.errors import Cancelled, HarnessError, PluginError, RoleError
from harness_hookspecs.kit.code_step import CodePlace, run_code
from harness_hookspecs.messages import ErrorEnvelope
from harness_hookspecs.role import FixStepResult, FixStepTask, RoleTask

from .engines import Engines
from .role_context import CallContextOfRole
from .role_task import Place, exhausted, fixer_of

__all__ = ["fix_error", "recomputed"]

def recomputed(
    result: FixStepResult, task: FixStepTask, ctx: CallContextOfRole, engines: Engines | None, place: Place
) -> FixStepResult:
    """Run the repaired source in the step's engine; its output, held to the step's contract, takes the claim's place.

    Raises:
        RoleError: ``fixer.failed``, with the source and its error: it does not help.
        PluginError: ``engine.not_available``.
        Suspend: One of its calls must wait.
    """
    step, _ = fixer_of(task)
    if engines is None:
        raise PluginError("nothing runs code here", code="engine.not_available")
    assert place.step_path is not None
    try:
        output = run_code(
            engines.code(step.with_.engine).engine,
            step,
            task.step_input,
            tools=ctx.tools,
            place=CodePlace(ctx.scope.run_id, place.step_path, place.visit_index),
            cancel=ctx.abort_signal,
            source=result.fixed_source,
        )
    except Cancelled:
        raise
    except RoleError as error:
        envelope = ErrorEnvelope.from_exception(error, with_stack=False).to_wire()
        message = f"the repaired source does not help: {error.message}"
        raise RoleError(message, code="fixer.failed", source=result.fixed_source, error=envelope) from error
    attempts = task.prior_fix_attempts + 1
    if ctx.reused:
        ctx.durability.note("The repaired source was given recorded results.", reused=ctx.reused)
    return FixStepResult(output=output, fixed_source=result.fixed_source, attempts=attempts)


def fix_error(task: RoleTask, error: HarnessError) -> HarnessError:
    """The error that a repair ends by: after the last one that its step allows, that there is none left (A-46)."""
    if not isinstance(task, FixStepTask) or not error.code.startswith("fixer."):
        return error
    return exhausted(task, task.prior_fix_attempts + 1, error) or error
