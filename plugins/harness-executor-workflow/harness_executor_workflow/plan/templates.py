"""Templates: a text with ``{{ expr }}`` in it goes in, its literal parts and expressions come out, then its value.

A text that is one expression and nothing else keeps the type of the expression's value. Everywhere else values become
text: a text as it is, anything else as canonical JSON. Braces and quotes within an expression are the expression's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.canonical import canonical

__all__ = ["Expression", "Template", "filled", "parse", "rendered", "templates_in"]

_TOKEN: Final = re.compile(
    r"""(?P<raw>[rR]|[bB][rR]|[rR][bB])?(?P<quote>\"\"\"|'''|"|')|(?P<close>}})|(?P<brace>[{}])|(?P<word>\w+)|.""",
    re.DOTALL,
)
_KEPT_TEMPLATES: Final = 1024
_KEPT_CHARACTERS: Final = 16_384  # of one text; a longer one is taken apart each time, so that few do not fill memory


class Expression(NamedTuple):
    """An expression, without its braces and the space around it, and where it begins in the text."""

    text: str
    at: int


class Template(NamedTuple):
    """A text taken apart; ``parts`` alternate as they were written, without empty literals."""

    text: str
    parts: tuple[str | Expression, ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions in their order."""
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def whole(self) -> Expression | None:
        """The expression that is the whole text, whose value keeps its type."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Expression) else None


def parse(text: str) -> Template:
    """Take a text apart.

    Raises:
        RuleError: ``expr.syntax`` for braces that are not closed or hold nothing; ``facts["at"]`` is the place.
    """
    return _kept(text) if len(text) <= _KEPT_CHARACTERS else _taken_apart(text)


@lru_cache(maxsize=_KEPT_TEMPLATES)
def _kept(text: str) -> Template:
    return _taken_apart(text)


def _taken_apart(text: str) -> Template:
    parts: list[str | Expression] = []
    at = 0
    while (begin := text.find("{{", at)) >= 0:
        end = _end(text, begin + 2)
        inside = text[begin + 2 : end]
        if not inside.strip():
            raise _refusal("The braces hold no expression.", begin)
        if begin > at:
            parts.append(text[at:begin])
        parts.append(Expression(inside.strip(), begin + 2 + len(inside) - len(inside.lstrip())))
        at = end + 2
    if at < len(text):
        parts.append(text[at:])
    return Template(text, tuple(parts))


def rendered(template: Template, evaluate: Callable[[str], Any]) -> Any:
    """The value of a template; ``evaluate`` gives that of an expression."""
    if template.whole is not None:
        return evaluate(template.whole.text)
    return "".join(part if isinstance(part, str) else _as_text(evaluate(part.text)) for part in template.parts)


def filled(value: Any, evaluate: Callable[[str], Any]) -> Any:
    """A JSON value with every text in it, but no key, taken as a template; what has none is given back as it is."""
    if isinstance(value, str):
        return rendered(parse(value), evaluate) if "{{" in value else value
    if isinstance(value, dict):
        return {key: filled(item, evaluate) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(item, evaluate) for item in value]
    return value


def templates_in(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value that ``filled`` would take apart, with its JSON pointer, in order."""
    if isinstance(value, str):
        if "{{" in value:
            yield pointer, value
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, item in items:
        escaped = str(key).replace("~", "~0").replace("/", "~1")
        yield from templates_in(item, f"{pointer}/{escaped}")


def _end(text: str, begin: int) -> int:
    """Where the ``}}`` of an expression stands: not in a literal, and not in the braces of a map."""
    depth, at = 0, begin
    while (token := _TOKEN.match(text, at)) is not None:
        if token["close"] and depth == 0:
            return at
        if token["quote"]:
            at = _after_literal(text, token)
            continue
        if token["close"]:  # the first of two braces closes a map
            depth, at = depth - 1, at + 1
            continue
        depth += {"{": 1, "}": -1}.get(token["brace"] or "", 0)
        at = token.end()
    raise _refusal("The braces are not closed.", begin - 2)


def _after_literal(text: str, opened: re.Match[str]) -> int:
    quote, at = opened["quote"], opened.end()
    while at < len(text):
        if text[at] == "\\" and not opened["raw"]:
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    raise _refusal("A text within the braces is not closed.", opened.start())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).decode()


def _refusal(message: str, at: int) -> RuleError:
    return RuleError(f"{message} (at character {at})", code="expr.syntax", hint="write {{ expression }}", at=at)
