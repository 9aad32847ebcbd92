"""The structure of an expression: its text goes in, a tree comes out, or a RuleError that says where it breaks.

The tree serves to find what an expression reads, under which guards, and of what type it is. What it means is the rules
engine's: an expression is taken only if both can read it. The guard of ``words`` bounds the depth of the recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from harness_hookspecs.kit.expression import MACROS, Token, refuse

from .words import words_of

__all__ = ["Binary", "Call", "Choice", "Field", "Index", "ListOf", "Literal", "Macro", "MapOf", "Name", "Node", "Unary",
           "parse"]  # fmt: skip


class Literal(NamedTuple):
    """A constant; ``known`` is false for a text with escapes, whose value is not computed."""

    value: Any
    known: bool
    at: int


class Name(NamedTuple):
    """A root, or a variable of a macro."""

    text: str
    at: int


class Field(NamedTuple):
    """``of.name``."""

    of: Node
    name: str
    at: int


class Index(NamedTuple):
    """``of[key]``."""

    of: Node
    key: Node
    at: int


class Call(NamedTuple):
    """``name(args)``, or ``of.name(args)``."""

    of: Node | None
    name: str
    args: tuple[Node, ...]
    at: int


class Macro(NamedTuple):
    """``of.name(variable, body)``."""

    of: Node
    name: str
    variable: str
    body: tuple[Node, ...]
    at: int


class Unary(NamedTuple):
    """``!of`` or ``-of``."""

    sign: str
    of: Node
    at: int


class Binary(NamedTuple):
    """``left sign right``."""

    sign: str
    left: Node
    right: Node
    at: int


class Choice(NamedTuple):
    """``when ? yes : no``."""

    when: Node
    yes: Node
    no: Node
    at: int


class ListOf(NamedTuple):
    """``[items]``."""

    items: tuple[Node, ...]
    at: int


class MapOf(NamedTuple):
    """``{key: value}``."""

    pairs: tuple[tuple[Node, Node], ...]
    at: int


Node: TypeAlias = Literal | Name | Field | Index | Call | Macro | Unary | Binary | Choice | ListOf | MapOf

_LEVELS: Final = {
    "||": 1, "&&": 2, **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3),
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


def parse(text: str) -> Node:
    """Read one expression.

    Raises:
        RuleError: What ``words_of`` raises, or ``expr.syntax``.
    """
    reader = _Reader(text, words_of(text))
    found = _choice(reader)
    if reader.now.kind != "end":
        raise reader.refuse("does not belong here")
    return found


class _Reader:
    """The words of a text and the place in them."""

    def __init__(self, text: str, words: tuple[Token, ...]) -> None:
        self.text = text
        self._words = words
        self._at = 0

    @property
    def now(self) -> Token:
        return self._words[self._at]

    def take(self) -> Token:
        word = self.now
        self._at += word.kind != "end"
        return word

    def skip(self, text: str) -> bool:
        """Pass over the sign if it is here; a text in quotes is none."""
        if self.now.text != text or self.now.kind not in ("sign", "name"):
            return False
        self._at += 1
        return True

    def want(self, text: str) -> None:
        if not self.skip(text):
            raise self.refuse(f"stands where {text} should")

    def refuse(self, reason: str) -> Exception:
        shown = f"`{self.now.text}`" if self.now.text else "The end"
        return refuse(self.text, self.now.at, f"{shown} {reason}.")


def _choice(reader: _Reader) -> Node:
    when = _binary(reader, 1)
    at = reader.now.at
    if not reader.skip("?"):
        return when
    yes = _binary(reader, 1)
    reader.want(":")
    return Choice(when, yes, _choice(reader), at)


def _binary(reader: _Reader, level: int) -> Node:
    left = _unary(reader)
    while (mine := _LEVELS.get(reader.now.text, 0)) >= level and reader.now.kind in ("sign", "name"):
        sign = reader.take()
        left = Binary(sign.text, left, _binary(reader, mine + 1), sign.at)
    return left


def _unary(reader: _Reader) -> Node:
    sign = reader.now
    if sign.kind == "sign" and sign.text in ("!", "-"):
        reader.take()
        return Unary(sign.text, _unary(reader), sign.at)
    return _member(reader)


def _member(reader: _Reader) -> Node:
    found = _primary(reader)
    while True:
        at = reader.now.at
        if reader.skip("."):
            found = _after_dot(reader, found)
        elif reader.skip("["):
            found = Index(found, _choice(reader), at)
            reader.want("]")
        else:
            return found


def _after_dot(reader: _Reader, of: Node) -> Node:
    name = reader.take()
    if name.kind != "name":
        raise refuse(reader.text, name.at, "A name should follow the dot.")
    if not reader.skip("("):
        return Field(of, name.text, name.at)
    args = tuple(_listed(reader, ")"))
    if name.text not in MACROS:
        return Call(of, name.text, args, name.at)
    if len(args) < 2 or not isinstance(args[0], Name):
        raise refuse(reader.text, name.at, f"{name.text} takes a name for the element and an expression.",
                    hint=f"list.{name.text}(one, one == 1)")  # fmt: skip
    return Macro(of, name.text, args[0].text, args[1:], name.at)


def _primary(reader: _Reader) -> Node:
    word = reader.take()
    if word.kind == "string":
        return _string(word)
    if word.kind == "number":
        return _number(word)
    if word.kind == "name" and word.text != "in":
        return _named(reader, word)
    if word.text == "(":
        found = _choice(reader)
        reader.want(")")
        return found
    if word.text == "[":
        return ListOf(tuple(_listed(reader, "]")), word.at)
    if word.text == "{":
        return MapOf(tuple(_pairs(reader)), word.at)
    shown = f"`{word.text}` does not belong here" if word.text else "The expression ends too early"
    raise refuse(reader.text, word.at, f"{shown}.")


def _named(reader: _Reader, word: Token) -> Node:
    if word.text in _CONSTANTS:
        return Literal(_CONSTANTS[word.text], True, word.at)
    if reader.skip("("):
        return Call(None, word.text, tuple(_listed(reader, ")")), word.at)
    if reader.now.text == "{" or reader.now.kind == "string":
        raise refuse(reader.text, word.at, "Messages and bytes are not available.")
    return Name(word.text, word.at)


def _listed(reader: _Reader, closing: str) -> Iterator[Node]:
    while not reader.skip(closing):
        yield _choice(reader)
        if not reader.skip(","):
            reader.want(closing)
            return


def _pairs(reader: _Reader) -> Iterator[tuple[Node, Node]]:
    while not reader.skip("}"):
        key = _choice(reader)
        reader.want(":")
        yield key, _choice(reader)
        if not reader.skip(","):
            reader.want("}")
            return


def _string(word: Token) -> Literal:
    raw = word.text[0] in "rR"
    quoted = word.text[1:] if raw else word.text
    width = 3 if quoted[:3] in ("'''", '"""') else 1
    inner = quoted[width:-width]
    return Literal(inner, raw or "\\" not in inner, word.at)


def _number(word: Token) -> Literal:
    text = word.text.rstrip("uU")
    if text[:2] in ("0x", "0X"):
        return Literal(int(text, 16), True, word.at)
    is_whole = text.isdecimal() and len(text) < 20
    return Literal(int(text) if is_whole else float(text), True, word.at)
