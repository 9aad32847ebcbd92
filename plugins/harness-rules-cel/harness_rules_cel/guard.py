"""The guard before any parser: the text of an expression goes in, its tokens come out or the reason why not.

The limits lie well inside the range in which the binding was seen to answer cleanly; beyond it a long sum ends the
process and deep brackets panic.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from harness_hookspecs.errors import RuleError

from .explain import refuse

__all__ = [
    "MACROS",
    "MAX_BRACKET_DEPTH",
    "MAX_CHARACTERS",
    "MAX_MACROS",
    "MAX_SIGNS",
    "MAX_TOKENS",
    "Token",
    "closing_of",
    "tokens_of",
]

MAX_CHARACTERS: Final = 1024
MAX_TOKENS: Final = 128
MAX_BRACKET_DEPTH: Final = 16
MAX_SIGNS: Final = 3
MAX_MACROS: Final = 2

MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
"""The macros that walk a list; ``has`` walks nothing."""

OPENING: Final = {"(": ")", "[": "]", "{": "}"}

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
      | (?P<string>[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')
          | \"\"\"(?:\\[\s\S]|[^\\])*?\"\"\" | '''(?:\\[\s\S]|[^\\])*?'''
          | "(?:\\.|[^"\\\n\r])*" | '(?:\\.|[^'\\\n\r])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+[uU]?|[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+|[uU])?)(?!\w))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_HINTS: Final = {
    "=": "compare with ==",
    "&": "write && for and",
    "|": "write || for or",
    "{{": "a condition stands bare, without braces",
    '"': "the text is not closed",
    "'": "the text is not closed",
}


class Token(NamedTuple):
    """One token: its kind (string, number, name, sign), its text and its offset in the expression."""

    kind: str
    text: str
    at: int


def tokens_of(text: str) -> tuple[Token, ...]:
    """Cut an expression into tokens and keep it inside the limits.

    Raises:
        RuleError: ``expr.too_long``, ``expr.too_complex``, ``expr.too_many_macros`` or ``expr.syntax``.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"The expression has {len(text)} characters; the limit is {MAX_CHARACTERS}."
        raise RuleError(message, code="expr.too_long", hint="split it into several rules", expression=text[:200])
    tokens = _cut(text)
    if not tokens:
        raise refuse(text, None, "The expression is empty.", code="expr.syntax")
    _check_signs(text, tokens)
    _check_brackets(text, tokens)
    _check_literals(text, tokens)
    return tokens


def _cut(text: str) -> tuple[Token, ...]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _unknown(text, at)
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match.group(), at))
        if len(found) > MAX_TOKENS:
            message = f"The expression has more than {MAX_TOKENS} words and signs."
            raise refuse(text, at, message, code="expr.too_long")
        at = match.end()
    return tuple(found)


def _unknown(text: str, at: int) -> RuleError:
    hint = _HINTS.get(text[at])
    return refuse(text, at, f"{text[at]!r} does not belong here.", code="expr.syntax", hint=hint)


def _check_signs(text: str, tokens: tuple[Token, ...]) -> None:
    run = 0
    for token in tokens:
        run = run + 1 if token.text in {"!", "-"} else 0
        if run > MAX_SIGNS:
            message = f"More than {MAX_SIGNS} signs ! or - stand in a row."
            raise refuse(text, token.at, message, code="expr.too_complex")


def _check_brackets(text: str, tokens: tuple[Token, ...]) -> None:
    waiting: list[Token] = []
    for token in tokens:
        if token.kind != "sign":
            continue
        if token.text in OPENING:
            waiting.append(token)
        elif token.text in OPENING.values() and (not waiting or OPENING[waiting.pop().text] != token.text):
            raise refuse(text, token.at, f"This {token.text} closes nothing.", code="expr.syntax")
        if len(waiting) > MAX_BRACKET_DEPTH:
            message = f"Brackets are nested deeper than {MAX_BRACKET_DEPTH}."
            raise refuse(text, token.at, message, code="expr.too_complex")
    if waiting:
        raise refuse(text, waiting[-1].at, f"This {waiting[-1].text} is never closed.", code="expr.syntax")


def _check_literals(text: str, tokens: tuple[Token, ...]) -> None:
    """Refuse bytes and messages: neither is JSON."""
    for before, token in pairwise(tokens):
        glued = before.at + len(before.text) == token.at
        if before.kind == "name" and token.kind == "string" and glued:
            raise refuse(text, before.at, "Only r may stand before a text.", code="expr.syntax")
        if token.text == "{" and before.kind == "name" and before.text != "in":
            raise refuse(text, token.at, "Messages are not available.", code="expr.syntax")
        if token.text == "{" and before.text == "{":
            raise refuse(text, before.at, "{{ does not belong here.", code="expr.syntax", hint=_HINTS["{{"])


def closing_of(tokens: tuple[Token, ...], opening: int) -> int:
    """The index of the bracket that closes the one at ``opening``; the guard has proved that there is one."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == "sign":
            depth += (tokens[index].text in OPENING) - (tokens[index].text in OPENING.values())
        if depth == 0:
            return index
    return len(tokens) - 1
