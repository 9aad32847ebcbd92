"""The guard before any parser of CEL: the text of an expression goes in, its tokens come out or the reason why not.

Who wrote the text is not known. The limits lie well inside the range in which bindings of CEL were seen to answer
cleanly (beyond it a long sum ends the process, and deep brackets panic), and they bound every walk over an expression
that follows.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from harness_hookspecs.errors import RuleError

__all__ = [
    "MACROS",
    "MAX_BRACKET_DEPTH",
    "MAX_CHARACTERS",
    "MAX_MACROS",
    "MAX_SIGNS",
    "MAX_TOKENS",
    "OPENING",
    "Token",
    "refuse",
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
    '"': "the text is not closed",
    "'": "the text is not closed",
}


class Token(NamedTuple):
    """One token: its kind (string, number, name, sign), its text and its offset in the expression."""

    kind: str
    text: str
    at: int


def refuse(
    text: str,
    at: int | None,
    message: str,
    *,
    code: str = "expr.syntax",
    hint: str | None = None,
    scope: str | None = None,
) -> RuleError:
    """Build the error: the reason, the line of the expression with a caret below the place, and what is in scope.

    Args:
        text: The expression.
        at: Offset of the offender, ``None`` when nobody said.
        message: What is wrong, in one sentence.
        code: The stable code.
        hint: What to write instead.
        scope: What is in scope, for a person.
    """
    lines = [message, *_shown(text, at)]
    if scope:
        lines.append(f"in scope: {scope}")
    column = None if at is None else at + 1
    return RuleError("\n".join(lines), code=code, hint=hint, expression=text[:MAX_CHARACTERS], column=column)


def _shown(text: str, at: int | None) -> list[str]:
    if at is None:
        return [f"  {line}" for line in text.splitlines()]
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    return [f"  {line}", f"  {' ' * (at - start)}^"]


def tokens_of(text: str, *, shorter: str) -> tuple[Token, ...]:
    """Cut an expression into tokens and keep it inside the limits.

    Args:
        text: The expression.
        shorter: What to do about one that is too long, for the hint.

    Raises:
        RuleError: ``expr.too_long``, ``expr.too_complex`` or ``expr.syntax``.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"The expression has {len(text)} characters; the limit is {MAX_CHARACTERS}."
        raise RuleError(message, code="expr.too_long", hint=shorter, expression=text[:200])
    tokens = _cut(text, shorter)
    if not tokens:
        raise refuse(text, None, "The expression is empty.")
    _check_signs(text, tokens)
    _check_brackets(text, tokens)
    return tokens


def _cut(text: str, shorter: str) -> tuple[Token, ...]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise refuse(text, at, f"{text[at]!r} does not belong here.", hint=_HINTS.get(text[at]))
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match.group(), at))
        if len(found) > MAX_TOKENS:
            message = f"The expression has more than {MAX_TOKENS} words and signs."
            raise refuse(text, at, message, code="expr.too_long", hint=shorter)
        at = match.end()
    return tuple(found)


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
            raise refuse(text, token.at, f"This {token.text} closes nothing.")
        if len(waiting) > MAX_BRACKET_DEPTH:
            message = f"Brackets are nested deeper than {MAX_BRACKET_DEPTH}."
            raise refuse(text, token.at, message, code="expr.too_complex")
    if waiting:
        raise refuse(text, waiting[-1].at, f"This {waiting[-1].text} is never closed.")
