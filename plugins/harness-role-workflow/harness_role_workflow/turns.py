"""A conversation and the contract of its answer in, the answer out: tool calls are run until the model has one.

Everything goes through the context and depends on nothing but its answers, so a call that is started again after a
suspension or a crash asks the same questions and finds the recorded answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, Message, ToolCallRequest
from harness_hookspecs.role import RoleContext, ToolOutcome
from harness_hookspecs.workflow import StepOutput

from .answer import Answer, read_answer
from .asking import asked_once
from .conversation import assistant, calls_of, correction, results

__all__ = ["Bounds", "answered"]


class Bounds(NamedTuple):
    """How long a model may try.

    Attributes:
        turns: Model calls.
        equal_failures: How often the same call may fail, or the same answer be wrong.
        limit: The setting that the turns came from, as a person is told it.
    """

    turns: int
    equal_failures: int
    limit: str


def answered(opening: Sequence[Message], output: StepOutput, schema: Any, ctx: RoleContext, bounds: Bounds) -> Any:
    """Ask the model, run its tool calls and ask again until the answer meets the contract.

    Returns:
        The answer's value.

    Raises:
        RoleError: ``role.answer_truncated``, ``role.refused``, ``role.model_error``, ``role.output_invalid``,
            ``role.repeated_failure`` or ``role.turns_exhausted``.
        Suspend: As a call of the context raised it.
    """
    messages: list[Message] = list(opening)
    question = _question(messages, ctx, schema)  # every turn's, but for the messages
    failures: Counter[bytes] = Counter()
    turns_left = bounds.turns
    while True:
        turns_left -= 1
        response = asked_once(question.model_copy(update={"messages": tuple(messages)}), ctx)
        calls = calls_of(response)
        messages.append(assistant(response, calls))
        if calls:
            if not turns_left:  # the results would be read by nobody
                raise _turns_exhausted(bounds)
            messages += _called(calls, ctx, failures, bounds.equal_failures)
            continue
        answer = read_answer(response.text, output, schema)
        _note_stripped(answer, ctx)
        if not answer.findings:
            return answer.value
        said = b"answer:" + response.text.encode()
        failures[said] += 1
        if not turns_left or failures[said] >= bounds.equal_failures:
            raise _invalid(answer)
        messages.append(correction(answer.findings))


def _question(messages: Sequence[Message], ctx: RoleContext, schema: Any) -> ChatInput:
    return ChatInput(
        messages=tuple(messages),
        tools=tuple(sorted(ctx.tools)) or None,
        response_schema=dict(schema) if isinstance(schema, Mapping) else None,
    )


def _turns_exhausted(bounds: Bounds) -> RoleError:
    message = f"The turns ({bounds.turns}) are used up while tools are still asked for."
    hint = f"raise {bounds.limit}, or ask for less"
    return RoleError(message, code="role.turns_exhausted", hint=hint, turns=bounds.turns)


def _called(
    calls: Sequence[ToolCallRequest], ctx: RoleContext, failures: Counter[bytes], equal_failures: int
) -> list[Message]:
    """Run the calls of one turn; the messages that answer them."""
    outcomes = {outcome.call_id: outcome for outcome in ctx.call_tools(calls)}
    for call in calls:
        _count(call, outcomes.get(call.call_id), failures, equal_failures)
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
