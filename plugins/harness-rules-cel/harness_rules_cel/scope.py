"""What an expression reads: its tokens go in; its roots, its macros and the paths they walk come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.kit.expression import MACROS, MAX_MACROS, OPENING, Token, refuse

from .guard import closing_of

__all__ = ["Macro", "Scope", "look_up", "primary_start", "scope_of"]

_KEYWORDS: Final = frozenset({"false", "in", "null", "true"})


class Macro(NamedTuple):
    """A macro that walks a list, as token indexes: where its receiver, its name and its bracket stand."""

    name: str
    variable: str
    receiver: int
    named: int
    opening: int
    closing: int

    @property
    def body(self) -> range:
        """The tokens evaluated once an element."""
        return range(self.opening + 3, self.closing)


class Scope(NamedTuple):
    """The roots with the token that first reads each, and the macros in order."""

    tokens: tuple[Token, ...]
    roots: Mapping[str, Token]
    macros: tuple[Macro, ...]

    def binder(self, index: int) -> Macro | None:
        """The macro that binds the name at this token, the innermost one; None for a root."""
        name = self.tokens[index].text
        around = [macro for macro in self.macros if index in macro.body and macro.variable == name]
        return around[-1] if around else None


def scope_of(text: str, tokens: tuple[Token, ...]) -> Scope:
    """Find roots and macros.

    Raises:
        RuleError: ``expr.too_many_macros``, or ``expr.syntax`` for a macro without a variable.
    """
    macros = tuple(_macros(text, tokens))
    _check_macros(text, tokens, macros)
    scope = Scope(tokens, {}, macros)
    bound = {macro.opening + 1 for macro in macros}
    roots: dict[str, Token] = {}
    for index, token in enumerate(tokens):
        if _is_variable(tokens, index) and index not in bound and scope.binder(index) is None:
            roots.setdefault(token.text, token)
    return scope._replace(roots=roots)


def _macros(text: str, tokens: tuple[Token, ...]) -> Iterator[Macro]:
    for index in range(1, len(tokens) - 1):
        name = tokens[index]
        if name.text not in MACROS or tokens[index - 1].text != "." or tokens[index + 1].text != "(":
            continue
        variable = tokens[index + 2]
        if index + 3 >= len(tokens) or variable.kind != "name" or tokens[index + 3].text != ",":
            message = f"{name.text} takes a name for the element and an expression."
            raise refuse(text, name.at, message, code="expr.syntax", hint=f"list.{name.text}(one, one == 1)")
        closing = closing_of(tokens, index + 1)
        yield Macro(name.text, variable.text, primary_start(tokens, index - 2), index, index + 1, closing)


def _check_macros(text: str, tokens: tuple[Token, ...], macros: tuple[Macro, ...]) -> None:
    if len(macros) > MAX_MACROS:
        at = tokens[macros[MAX_MACROS].named].at
        message = f"More than {MAX_MACROS} of {', '.join(sorted(MACROS))} in one expression."
        raise refuse(text, at, message, code="expr.too_many_macros")


def _is_variable(tokens: tuple[Token, ...], index: int) -> bool:
    token = tokens[index]
    if token.kind != "name" or token.text in _KEYWORDS:
        return False
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return after != "(" and not (index and tokens[index - 1].text == ".")


def primary_start(tokens: tuple[Token, ...], end: int) -> int:
    """The first token of the value that ends at token ``end``: ``a.b[0].c`` from its ``c``."""
    index = end
    while index > 0:
        token = tokens[index]
        if token.text in OPENING.values() and token.kind == "sign":
            index = _opening_of(tokens, index)
            if not _continues(tokens, index, token.text):
                return index
            index -= 1
            if token.text == "]":
                continue
        if tokens[index - 1].text != "." or index < 2:
            return index
        index -= 2
    return max(index, 0)


def _continues(tokens: tuple[Token, ...], opening: int, closing: str) -> bool:
    """Whether the bracket is a call or an index, so that what stands before it belongs to the value."""
    if opening == 0 or closing == "}":
        return False
    before = tokens[opening - 1]
    if before.kind == "name":
        return before.text != "in"
    return closing == "]" and (before.kind in {"string", "number"} or before.text in OPENING.values())


def _opening_of(tokens: tuple[Token, ...], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        if tokens[index].kind == "sign":
            depth += (tokens[index].text in OPENING.values()) - (tokens[index].text in OPENING)
        if depth == 0:
            return index
    return 0


def look_up(scope: Scope, span: range, values: Mapping[str, Any]) -> list[Any] | None:
    """Every value that the tokens of ``span`` can name, or None when they are no plain path.

    A path that begins at a macro's variable names one value an element. What does not exist is left out.
    """
    steps = list(_steps(scope.tokens, span))
    if None in steps or not steps:
        return None
    macro = scope.binder(span.start)
    if macro is None:
        found = [values[steps[0]]] if steps[0] in values else []
    else:
        lists = look_up(scope, range(macro.receiver, macro.named - 1), values)
        if lists is None:
            return None
        found = [item for walked in lists if isinstance(walked, (list, dict)) for item in walked]
    for step in steps[1:]:
        found = [item[step] for item in found if _has(item, step)]
    return found


def _has(item: Any, step: Any) -> bool:
    if isinstance(item, dict):
        return step in item
    return isinstance(item, list) and isinstance(step, int) and 0 <= step < len(item)


def _steps(tokens: tuple[Token, ...], span: range) -> Iterator[Any]:
    """The root's name and the keys after it; None where the span is no plain path."""
    index = span.start
    yield tokens[index].text if tokens[index].kind == "name" else None
    index += 1
    while index < span.stop:
        width, step = _step(tokens, index, span.stop)
        yield step
        index += width


def _step(tokens: tuple[Token, ...], index: int, stop: int) -> tuple[int, Any]:
    if tokens[index].text == "." and index + 1 < stop and tokens[index + 1].kind == "name":
        return 2, tokens[index + 1].text
    if tokens[index].text == "[" and index + 2 < stop and tokens[index + 2].text == "]":
        return 3, _literal(tokens[index + 1])
    return stop, None


def _literal(token: Token) -> Any:
    if token.kind == "number" and token.text.isdecimal():
        return int(token.text)
    if token.kind == "string" and "\\" not in token.text and token.text[0] in "\"'":
        return token.text.strip(token.text[0])
    return None
