"""A chosen reply and the turn go in, the chunks and the whole answer come out."""

from __future__ import annotations

import itertools

from harness_hookspecs.messages import OracleResponse, TextPart, ToolCallRequest, Usage

from .script import Reply

__all__ = ["chunks_of", "response_of"]


def chunks_of(reply: Reply) -> list[str]:
    """The pieces in which the text arrives; an error after chunks that the script does not spell out gets dots."""
    text = reply.answer_text
    if isinstance(reply.chunks, tuple):
        pieces = list(reply.chunks)
    else:
        count = min(reply.chunks or 1, len(text))
        ends = [len(text) * part // count for part in range(count + 1)] if count else []
        pieces = [text[start:end] for start, end in itertools.pairwise(ends)]
    if reply.error is None:
        return pieces
    wanted = reply.error.after_chunks
    return [*pieces[:wanted], *["."] * (wanted - len(pieces))]


def response_of(reply: Reply, turn: int) -> OracleResponse:
    """The whole answer; tool calls without an id get one made of turn and place, usage not written is not known."""
    text = reply.answer_text
    calls = tuple(
        ToolCallRequest(call_id=call.id or f"call-{turn}-{place}", tool_name=call.name, args=call.args)
        for place, call in enumerate(reply.tool_calls or (), start=1)
    )
    return OracleResponse(
        content=(TextPart(text=text),) if text else (),
        tool_calls=calls or None,
        finish_reason=reply.finish or ("tool_calls" if calls else "stop"),
        usage=reply.usage or Usage.unknown(),
    )
