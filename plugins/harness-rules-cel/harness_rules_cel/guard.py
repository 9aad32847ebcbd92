"""What the binding is never shown: an expression goes in, its tokens come out without what is no JSON, or the reason.

The limits before any parser are those of :mod:`harness_hookspecs.kit.expression`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from harness_hookspecs.kit import expression
from harness_hookspecs.kit.expression import OPENING, Token, refuse

__all__ = ["closing_of", "tokens_of"]

_BARE: Final = "a condition stands bare, without braces"


def tokens_of(text: str) -> tuple[Token, ...]:
    """Cut an expression into tokens and keep it inside the limits.

    Raises:
        RuleError: ``expr.too_long``, ``expr.too_complex`` or ``expr.syntax``.
    """
    tokens = expression.tokens_of(text, shorter="split it into several rules")
    _check_literals(text, tokens)
    return tokens


def _check_literals(text: str, tokens: tuple[Token, ...]) -> None:
    """Refuse bytes and messages: neither is JSON."""
    for before, token in pairwise(tokens):
        glued = before.at + len(before.text) == token.at
        if before.kind == "name" and token.kind == "string" and glued:
            raise refuse(text, before.at, "Only r may stand before a text.")
        if token.text == "{" and before.kind == "name" and before.text != "in":
            raise refuse(text, token.at, "Messages are not available.")
        if token.text == "{" and before.text == "{":
            raise refuse(text, before.at, "{{ does not belong here.", hint=_BARE)


def closing_of(tokens: tuple[Token, ...], opening: int) -> int:
    """The index of the bracket that closes the one at ``opening``; the guard has proved that there is one."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == "sign":
            depth += (tokens[index].text in OPENING) - (tokens[index].text in OPENING.values())
        if depth == 0:
            return index
    return len(tokens) - 1
