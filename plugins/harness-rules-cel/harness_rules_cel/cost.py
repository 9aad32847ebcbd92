"""What an evaluation may cost at most: a scope and its values go in; nothing comes out, or the refusal.

An evaluation holds the interpreter's lock and cannot be interrupted, so it is judged before it starts. One unit is
about 0.1 microseconds of the binding (measured): a step of a macro, or a copy of one node of a value. ``filter`` and
``map`` copy their whole list at each element, so they cost the square of its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.kit.expression import refuse

from .scope import Macro, Scope, look_up

__all__ = ["BUDGET_UNITS", "MAX_LIST", "check_cost"]

MAX_LIST: Final = 1000
"""The longest list that a macro may walk."""

BUDGET_UNITS: Final = 400_000

_CHARACTERS_A_NODE: Final = 1024


class Cost(NamedTuple):
    """Units of work, and nodes of the result, both at most."""

    units: int
    nodes: int


def check_cost(text: str, scope: Scope, values: Mapping[str, Any]) -> None:
    """Refuse an evaluation that could take more than some tens of milliseconds.

    Raises:
        RuleError: ``rule.error``.
    """
    if not scope.macros and all(token.text != "+" for token in scope.tokens):
        return  # linear in its values, which are bounded where they come from
    units = _cost(text, scope, values, range(len(scope.tokens))).units
    if units > BUDGET_UNITS:
        message = "The expression would take too long over values of this size."
        raise refuse(text, None, message, code="rule.error", hint="use shorter lists or one macro instead of two")


def _cost(text: str, scope: Scope, values: Mapping[str, Any], span: range) -> Cost:
    units = nodes = pluses = 0
    index = span.start
    while index < span.stop:
        macro = next((one for one in scope.macros if one.named == index), None)
        if macro is not None:
            inner = _macro_cost(text, scope, values, macro)
            units, nodes, index = units + inner.units, nodes + inner.nodes, macro.closing
        else:
            pluses += scope.tokens[index].text == "+"
            nodes += 1 + _read(scope, values, range(index, span.stop))
        index += 1
    return Cost(units + nodes * (1 + pluses), nodes)


def _read(scope: Scope, values: Mapping[str, Any], rest: range) -> int:
    """Nodes of the value that is read at the first token, 0 when none is."""
    token = scope.tokens[rest.start]
    if token.kind != "name" or (rest.start and scope.tokens[rest.start - 1].text == "."):
        return 0
    stop = rest.start + 1
    found = look_up(scope, range(rest.start, stop), values)
    while found:
        longer = _longer(scope, rest, stop)
        further = look_up(scope, range(rest.start, longer), values) if longer else None
        if not further:
            break
        found, stop = further, longer
    return max(map(_nodes, found), default=0) if found else 0


def _longer(scope: Scope, rest: range, stop: int) -> int:
    """Where the path ends with one step more, 0 when it goes no further."""
    sign = scope.tokens[stop].text if stop < rest.stop else ""
    width = {".": 2, "[": 3}.get(sign, 0)
    return stop + width if width and stop + width <= rest.stop else 0


def _macro_cost(text: str, scope: Scope, values: Mapping[str, Any], macro: Macro) -> Cost:
    receiver = range(macro.receiver, macro.named - 1)
    walked = look_up(scope, receiver, values)
    if walked is None:
        length = elements = _cost(text, scope, values, receiver).nodes
    else:
        length = max((len(one) for one in walked if isinstance(one, (list, dict))), default=0)
        elements = max(map(_nodes, walked), default=0)
    if length > MAX_LIST:
        at = scope.tokens[macro.named].at
        message = f"{macro.name} would walk {length} elements; the limit is {MAX_LIST}."
        raise refuse(text, at, message, code="rule.error")
    body = _cost(text, scope, values, macro.body)
    if macro.name in {"all", "exists", "exists_one"}:
        return Cost(length * (body.units + 2), 1)
    kept = elements if macro.name == "filter" else length * body.nodes
    return Cost(length * (body.units + 2) + length * kept // 2, kept)


def _nodes(value: Any) -> int:
    """How many values it is made of, long texts counted by length; stops counting past the budget."""
    total = 0
    waiting = [value]
    while waiting and total <= BUDGET_UNITS:
        item = waiting.pop()
        total += 1
        if isinstance(item, str):
            total += len(item) // _CHARACTERS_A_NODE
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return total
