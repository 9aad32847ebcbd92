"""The guard before any parser: the text of an expression goes in, its words come out or the reason why not.

A model wrote the text. The limits lie well inside the range in which bindings of CEL were seen to answer cleanly (a
long sum ends a process, deep brackets panic), and they bound every walk over an expression that follows.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from harness_hookspecs.errors import RuleError

__all__ = ["MACROS", "MAX_CHARACTERS", "MAX_MACROS", "MAX_WORDS", "Word", "fault", "words_of"]

MAX_CHARACTERS: Final = 1024
MAX_WORDS: Final = 128
MAX_BRACKET_DEPTH: Final = 16
MAX_SIGNS: Final = 3
MAX_MACROS: Final = 2

MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
"""The macros that walk a list; ``has`` walks nothing."""

OPENING: Final = {"(": ")", "[": "]", "{": "}"}

_WORD: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
      | (?P<string>[rR]?(?:\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|'''(?:\\[\s\S]|[^\\])*?'''
          |"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*'))
      | (?P<number>(?:0[xX][0-9a-fA-F]+[uU]?|[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+|[uU])?)(?!\w))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_HINTS: Final = {"=": "compare with ==", "&": "write && for and", "|": "write || for or",
                 '"': "the text is not closed", "'": "the text is not closed"}  # fmt: skip


class Word(NamedTuple):
    """One word or sign: its kind (string, number, name, sign, end), its text and its offset in the expression."""

    kind: str
    text: str
    at: int


def fault(text: str, at: int | None, message: str, *, code: str = "expr.syntax", hint: str | None = None) -> RuleError:
    """Build the error: the reason, and the line of the expression with a caret below the place."""
    shown = text if len(text) <= MAX_CHARACTERS else f"{text[:200]} ..."
    lines = [message, f"  {shown}"]
    if at is not None and "\n" not in shown:
        lines.append(f"  {' ' * at}^")
    column = None if at is None else at + 1
    return RuleError("\n".join(lines), code=code, hint=hint, expression=text[:MAX_CHARACTERS], column=column)


def words_of(text: str) -> tuple[Word, ...]:
    """Cut an expression into words and keep it inside the limits; the last word is of kind ``end``.

    Raises:
        RuleError: ``expr.too_long``, ``expr.too_complex``, ``expr.too_many_macros`` or ``expr.syntax``.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"The expression has {len(text)} characters; the limit is {MAX_CHARACTERS}."
        raise fault(text, None, message, code="expr.too_long", hint="compute it in a code.run step")
    words = _cut(text)
    if not words:
        raise fault(text, None, "The expression is empty.")
    _check_signs(text, words)
    _check_brackets(text, words)
    _check_macros(text, words)
    return (*words, Word("end", "", len(text)))


def _cut(text: str) -> list[Word]:
    found: list[Word] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None or match.lastgroup is None:
            raise fault(text, at, f"{text[at]!r} does not belong here.", hint=_HINTS.get(text[at]))
        if match.lastgroup != "space":
            found.append(Word(match.lastgroup, match.group(), at))
        if len(found) > MAX_WORDS:
            raise fault(text, at, f"The expression has more than {MAX_WORDS} words and signs.", code="expr.too_long",
                        hint="compute it in a code.run step")  # fmt: skip
        at = match.end()
    return found


def _check_signs(text: str, words: list[Word]) -> None:
    run = 0
    for word in words:
        run = run + 1 if word.text in ("!", "-") else 0
        if run > MAX_SIGNS:
            raise fault(text, word.at, f"More than {MAX_SIGNS} signs ! or - in a row.", code="expr.too_complex")


def _check_brackets(text: str, words: list[Word]) -> None:
    waiting: list[Word] = []
    for word in words:
        if word.kind != "sign":
            continue
        if word.text in OPENING:
            waiting.append(word)
        elif word.text in OPENING.values() and (not waiting or OPENING[waiting.pop().text] != word.text):
            raise fault(text, word.at, f"This {word.text} closes nothing.")
        if len(waiting) > MAX_BRACKET_DEPTH:
            message = f"Brackets are nested deeper than {MAX_BRACKET_DEPTH}."
            raise fault(text, word.at, message, code="expr.too_complex")
    if waiting:
        raise fault(text, waiting[-1].at, f"This {waiting[-1].text} is never closed.")


def _check_macros(text: str, words: list[Word]) -> None:
    found = [
        word
        for before, word, after in zip(words, words[1:], words[2:])
        if before.text == "." and word.text in MACROS and after.text == "("
    ]
    if len(found) > MAX_MACROS:
        message = f"More than {MAX_MACROS} of {', '.join(sorted(MACROS))} in one expression."
        raise fault(text, found[MAX_MACROS].at, message, code="expr.too_many_macros", hint="use a code.run step")
