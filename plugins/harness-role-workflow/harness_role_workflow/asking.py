"""One question and the context in, a whole answer of the model out, or why it is none."""

from __future__ import annotations

from typing import Literal

from harness_hookspecs.errors import RoleError
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, RefusalPart, TextPart
from harness_hookspecs.role import RoleContext

__all__ = ["asked_once", "check_finish", "said"]


def said(role: Literal["system", "user", "assistant"], text: str) -> Message:
    """A message of one text."""
    return Message(role=role, content=(TextPart(text=text),))


def asked_once(question: ChatInput, ctx: RoleContext) -> OracleResponse:
    """Ask, unless the call is cancelled.

    Raises:
        RoleError: As :func:`check_finish`.
        Suspend: As a call of the context raised it.
    """
    ctx.abort_signal.raise_if_cancelled()
    response = ctx.model.complete(question)
    check_finish(response)
    return response


def check_finish(response: OracleResponse) -> None:
    """Refuse an answer that is not whole; its tool calls are never run.

    Raises:
        RoleError: ``role.refused``, ``role.answer_truncated`` or ``role.model_error``.
    """
    refusal = " ".join(part.text for part in response.content if isinstance(part, RefusalPart))
    if response.finish_reason == "refusal" or refusal:
        words = refusal or response.text
        raise RoleError("The model refused the task.", code="role.refused", said=words[:1_000])
    if response.finish_reason == "length":
        used = response.usage.output_tokens if response.usage.known else None
        hint = "raise the model's max_output_tokens, or ask for less"
        message = "The answer was cut off at the limit of output tokens."
        raise RoleError(message, code="role.answer_truncated", hint=hint, output_tokens=used)
    if response.finish_reason == "error":
        raise RoleError("The model ended with an error.", code="role.model_error")
