"""The words of an expression: its text goes in, tokens within all limits and an end come out, or the reason why not."""

from __future__ import annotations

from harness_hookspecs.kit.expression import MACROS, MAX_MACROS, Token, refuse, tokens_of

__all__ = ["words_of"]

_INSTEAD = "compute it in a code.run step"


def words_of(text: str) -> tuple[Token, ...]:
    """Cut an expression into words; the last one is of kind ``end``.

    Raises:
        RuleError: ``expr.too_long``, ``expr.too_complex``, ``expr.too_many_macros`` or ``expr.syntax``.
    """
    words = tokens_of(text, shorter=_INSTEAD)
    macros = [
        word
        for before, word, after in zip(words, words[1:], words[2:])
        if before.text == "." and word.text in MACROS and after.text == "("
    ]
    if len(macros) > MAX_MACROS:
        message = f"More than {MAX_MACROS} of {', '.join(sorted(MACROS))} in one expression."
        raise refuse(text, macros[MAX_MACROS].at, message, code="expr.too_many_macros", hint=_INSTEAD)
    return (*words, Token("end", "", len(text)))
