"""The text of one scalar and what may stand there in, the typed value out, or in words why it does not fit."""

from __future__ import annotations

import re
from typing import Any, Final

from harness_core.shell.yaml_nodes import Items, Map, Node, Scalar
from harness_hookspecs.kit.strict import MAX_INTEGER

from .shapes import Shape

__all__ = ["is_null", "misfit", "typed_scalar"]

_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,15})")
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False}
_ALIKE: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}

Fit = tuple[bool, Any]
_NOT: Final[Fit] = (False, None)


def is_null(node: Node) -> bool:
    """Whether the node says null, by word or by saying nothing."""
    return isinstance(node, Scalar) and node.plain and node.text in {"", "~", "null"}


def typed_scalar(node: Scalar, shape: Shape) -> Fit:
    """Type a scalar by its schema.

    Returns:
        Whether it fits, and the value. Where a text is wanted the text is kept as it was written, whatever it
        looks like; where several types may stand, a plain text is the first other type that it spells.
    """
    ordered = sorted(shape.alternatives(), key=lambda one: "string" in one.kinds())
    for one in ordered:
        found = _typed(node, one)
        if found[0]:
            return found
    return _NOT


def _typed(node: Scalar, one: Shape) -> Fit:
    kinds = one.kinds()
    if not kinds:
        return True, _spelt(node)
    if node.plain and "boolean" in kinds and node.text in _BOOLEANS:
        return True, _BOOLEANS[node.text]
    if node.plain and "integer" in kinds and _INTEGER.fullmatch(node.text):
        return _within(int(node.text))
    if node.plain and "number" in kinds and _NUMBER.fullmatch(node.text):
        whole = _INTEGER.fullmatch(node.text)
        return _within(int(node.text)) if whole else _finite(float(node.text))
    if "string" in kinds and (not one.values() or node.text in one.values()):
        return True, node.text
    return _NOT


def _within(number: int) -> Fit:
    return (True, number) if -MAX_INTEGER <= number <= MAX_INTEGER else _NOT


def _finite(number: float) -> Fit:
    return (True, number) if abs(number) != float("inf") else _NOT


def _spelt(node: Scalar) -> Any:
    """Where anything may stand: a plain scalar is a number or a truth only if it is spelt just as JSON spells it.

    So 12 is a number, while 012, 1.10 and 12:30 stay the texts that they are.
    """
    if not node.plain:
        return node.text
    if node.text in _BOOLEANS:
        return _BOOLEANS[node.text]
    if _INTEGER.fullmatch(node.text) and str(int(node.text)) == node.text and abs(int(node.text)) <= MAX_INTEGER:
        return int(node.text)
    if _NUMBER.fullmatch(node.text) and repr(float(node.text)) == node.text:
        return float(node.text)
    return node.text


def misfit(node: Node, shape: Shape) -> tuple[str, str | None]:
    """Say why a node does not fit, and what to do about it."""
    wanted = shape.describe()
    kinds = frozenset(kind for one in shape.alternatives() for kind in one.kinds())
    if isinstance(node, (Items, Map)):
        stands = "a list" if isinstance(node, Items) else "a mapping"
        return f"{stands} stands where {wanted} is expected", "put the text in quotes" if "string" in kinds else None
    shown = f'"{_short(node.text)}"'
    values = [value for one in shape.alternatives() for value in one.values()]
    if values:
        return f"{shown} is not {wanted}", _nearest_value(node, values)
    return f"{shown} is not {wanted}", _scalar_hint(node, kinds)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def _nearest_value(node: Scalar, values: list[str]) -> str | None:
    from harness_core.settings.problems import nearest

    return nearest(node.text, values)


def _scalar_hint(node: Scalar, kinds: frozenset[str]) -> str | None:
    if not node.plain and kinds & {"integer", "number", "boolean"}:
        return "remove the quotes"
    if "boolean" in kinds and node.text.lower() in {*_ALIKE, *_BOOLEANS}:
        return f"write {_ALIKE.get(node.text.lower(), node.text.lower())}"
    if kinds & {"integer", "number"} and re.fullmatch(r"[-+]?[0-9][0-9_]*", node.text):
        return "write it without leading zeros and underscores, below 2^53"
    if "array" in kinds:
        return f"write [{_short(node.text)}]"
    return None
