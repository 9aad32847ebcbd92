"""Left to right: tokens go in, an equal expression in which && and || hide no error comes out.

CEL lets ``false`` swallow an error on either side of ``&&``, and ``true`` one beside ``||``: with a misspelt field,
``artifact.statuz == "x" && retries > 3`` would quietly be false. A conditional swallows nothing in its condition, so
a chain ``a && b && c`` becomes ``!(a) ? false : !(b) ? false : c ? true : false``. What the left side decides alone is
not evaluated further, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness_hookspecs.kit.expression import OPENING, Token

from .guard import closing_of

__all__ = ["left_to_right"]


def left_to_right(text: str, tokens: tuple[Token, ...]) -> str:
    """Rewrite every chain of ``&&`` and ``||``, inside brackets and macros too; without one the text is kept."""
    if not any(token.text in {"&&", "||"} for token in tokens):
        return text
    return _segments(tokens)


def _segments(tokens: tuple[Token, ...]) -> str:
    """What stands inside one pair of brackets: parts between commas, question marks and colons."""
    signs = [tokens[index].text for index in _at_this_level(tokens) if tokens[index].text in {",", "?", ":"}]
    parts = [_any_of(part) if part else "" for part in _split(tokens, ",?:")]
    if "?" in signs:  # a conditional may stand inside another one only in brackets
        parts = [_bracketed(part) for part in parts]
    return "".join(part + f" {sign} " for part, sign in zip(parts, [*signs, ""], strict=True)).rstrip()


def _any_of(tokens: tuple[Token, ...]) -> str:
    parts = list(_split(tokens, "||"))
    if len(parts) == 1:
        return _all_of(tokens)
    return " ? true : ".join(_bracketed(_all_of(part)) for part in parts) + " ? true : false"


def _all_of(tokens: tuple[Token, ...]) -> str:
    parts = list(_split(tokens, "&&"))
    if len(parts) == 1:
        return _plain(tokens)
    *first, last = map(_plain, parts)
    return "".join(f"!({part}) ? false : " for part in first) + f"{last} ? true : false"


def _bracketed(part: str) -> str:
    return f"({part})" if " ? " in part else part


def _plain(tokens: tuple[Token, ...]) -> str:
    """Tokens without a chain at this level; brackets inside may have some."""
    words: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        words.append(token.text)
        if token.kind == "sign" and token.text in OPENING:
            closing = closing_of(tokens, index)
            words += [_segments(tokens[index + 1 : closing]), tokens[closing].text]
            index = closing
        index += 1
    return " ".join(words)


def _split(tokens: tuple[Token, ...], sign: str) -> Iterator[tuple[Token, ...]]:
    signs = {sign} if sign in {"&&", "||"} else set(sign)
    start = 0
    for index in _at_this_level(tokens):
        if tokens[index].text in signs:
            yield tokens[start:index]
            start = index + 1
    yield tokens[start:]


def _at_this_level(tokens: tuple[Token, ...]) -> Iterator[int]:
    """Indexes of the signs outside of every bracket."""
    index = 0
    while index < len(tokens):
        if tokens[index].kind == "sign":
            if tokens[index].text in OPENING:
                index = closing_of(tokens, index)
            else:
                yield index
        index += 1
