"""The agent loop of an ``ai.generate`` step: the step and the context go in, its validated output comes out.

Everything goes through the context and depends on nothing but its answers, so a call that is started again after a
suspension or a crash asks the same questions and finds the recorded answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.step_output import schema_of
from harness_hookspecs.messages import ChatInput, Message, ToolCallRequest
from harness_hookspecs.role import ExecuteStepTask, RoleContext, ToolOutcome
from harness_hookspecs.workflow import AiGenerateStep

from .answer import Answer, asked_for, read_answer
from .asking import asked_once
from .conversation import assistant, calls_of, correction, opening, results
from .prompt import prompt_parts, prompt_text, system_texts
from .settings import WorkflowRoleSettings

__all__ = ["generate"]


def generate(task: ExecuteStepTask, step: AiGenerateStep, ctx: RoleContext, settings: WorkflowRoleSettings) -> Any:
    """Ask the model, run its tool calls and ask again until the answer meets the step's output contract.

    Returns:
        The output.

    Raises:
        RoleError: ``role.answer_truncated``, ``role.refused``, ``role.model_error``, ``role.output_invalid``,
            ``role.repeated_failure`` or ``role.turns_exhausted``.
        Suspend: As a call of the context raised it.
    """
    schema = schema_of(step.output, ctx.response_schema)
    messages: list[Message] = list(_opening(task, step, ctx, schema))
    question = _question(messages, ctx, schema)  # every turn's, but for the messages
    failures: Counter[bytes] = Counter()
    turns_left = turns = step.with_.max_turns or settings.max_turns
    while True:
        turns_left -= 1
        response = asked_once(question.model_copy(update={"messages": tuple(messages)}), ctx)
        calls = calls_of(response)
        messages.append(assistant(response, calls))
        if calls:
            if not turns_left:  # the results would be read by nobody
                raise _turns_exhausted(turns, given=step.with_.max_turns is not None)
            messages += _answered(calls, ctx, failures, settings)
            continue
        answer = read_answer(response.text, step.output, schema)
        _note_stripped(answer, ctx)
        if not answer.findings:
            return answer.value
        said = b"answer:" + response.text.encode()
        failures[said] += 1
        if not turns_left or failures[said] >= settings.equal_failures:
            raise _invalid(answer)
        messages.append(correction(answer.findings))


def _opening(task: ExecuteStepTask, step: AiGenerateStep, ctx: RoleContext, schema: Any) -> tuple[Message, Message]:
    parts = prompt_parts(
        "worker.ai-generate",
        system=system_texts(ctx, step.with_.system),
        skills=ctx.skills,
        memory=ctx.memory_mounts,
        scratch=ctx.scratch_mounts,
        tools=ctx.tools,
    )
    return opening(prompt_text(parts), step.with_.prompt, task.step_input, asked_for(step.output, schema))


def _question(messages: Sequence[Message], ctx: RoleContext, schema: Any) -> ChatInput:
    return ChatInput(
        messages=tuple(messages),
        tools=tuple(sorted(ctx.tools)) or None,
        response_schema=dict(schema) if isinstance(schema, Mapping) else None,
    )


def _turns_exhausted(turns: int, *, given: bool) -> RoleError:
    """Name the setting the number came from: a stage's own one is never above ``run.max_turns``."""
    of_stage = "max_turns of the stage where it sets one, else run.max_turns"
    limit = of_stage if given else "plugins.settings.workflow.max_turns"
    message = f"The turns ({turns}) are used up while tools are still asked for."
    return RoleError(message, code="role.turns_exhausted", hint=f"raise {limit}, or ask for less", turns=turns)


def _answered(
    calls: Sequence[ToolCallRequest],
    ctx: RoleContext,
    failures: Counter[bytes],
    settings: WorkflowRoleSettings,
) -> list[Message]:
    """Run the calls of one turn; the messages that answer them."""
    outcomes = {outcome.call_id: outcome for outcome in ctx.call_tools(calls)}
    for call in calls:
        _count(call, outcomes.get(call.call_id), failures, settings.equal_failures)
    return list(results(calls, outcomes.values()))


def _count(call: ToolCallRequest, outcome: ToolOutcome | None, failures: Counter[bytes], limit: int) -> None:
    if outcome is None or outcome.ok:
        return
    key = b"call:" + codec.dumps([call.tool_name, call.args], sort_keys=True)
    failures[key] += 1
    if failures[key] >= limit:
        message = f"The same call of {call.tool_name} failed {limit} times."
        raise RoleError(message, code="role.repeated_failure", tool=call.tool_name, failures=limit)


def _note_stripped(answer: Answer, ctx: RoleContext) -> None:
    if answer.stripped:
        text = f"The answer stood inside {' and '.join(answer.stripped)}, which was taken away."
        ctx.durability.note(text, stripped=list(answer.stripped))


def _invalid(answer: Answer) -> RoleError:
    first = answer.findings[0]
    more = f" (and {len(answer.findings) - 1} more)" if len(answer.findings) > 1 else ""
    message = f"The answer is not valid: {first['path'] or 'answer'}: {first['message']}{more}"
    return RoleError(message, code="role.output_invalid", findings=list(answer.findings))
