"""A JSON Schema goes in; how much it can ask for, of the stack and of time, comes out before anybody does it.

Who follows a schema does so on the stack, and looks at a value as often as there are ways through the schema to it.
Both are known without a value: what a subschema looks at *in place* (``$ref``, ``allOf``, ``not`` and the like, which
stay with the value) is an acyclic graph, and what it looks at *below* goes one level down in the value.

One look is one subschema, or one thing that it can find fault with, held to one value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.kit.schema_graph import Part, SchemaGraph, TooComplex, standard_references
from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

__all__ = ["MAX_LINKS", "MAX_LOOKS", "Cost", "TooComplex", "schema_cost"]

MAX_LOOKS: Final = 10_000
"""Looks at one value without going below it; below, a value is the larger problem (see ``Cost.looks``)."""

MAX_LINKS: Final = 8_192
"""Subschemas that are on the stack at once. A stack of 8 MiB holds 30,000 to 60,000, and 8 MiB is what threads have."""

_MAX_CHAIN: Final = MAX_LINKS // 32  # whatever the schema, values may be that deep
_MAX_GROWN: Final = 10_000_000  # looks at one value, below others
_MAX_ROUND: Final = 300_000  # names of properties that are handed from subschema to subschema, once through all
_MAX_ROUNDS: Final = 1_000_000  # these, until the looks have stopped growing

_AGAIN: Final = 3  # beside unevaluatedItems and -Properties, which alternatives hold is asked once more, and within
_CHOICES: Final = frozenset({"anyOf", "oneOf", "if", "contains", "dependentSchemas", "dependencies"})
_STANDARD_LOOKS: Final = 100  # the meta-schema, which everybody has
_STANDARD_LINKS: Final = 20
_APART: Final = re.compile(r"\(\?[^:]|\\[1-9k]")  # what parts of a pattern that are matched one by one stand between


class Cost(NamedTuple):
    """What a schema can ask for.

    Attributes:
        levels: How deeply a value may be nested; ``[]`` has depth 1.
        chain: Subschemas that lead to each other in place, at most.
        looks: How often each part of a value is looked at, at most: item ``n`` for a value of depth ``n``, the last
            item for all that are deeper.
        patterns: How many patterns each character is held to, at most, by depth as ``looks``.
        named: How many KiB of the schema's own values (``const``, ``enum``) faults of each part may name, at most, by
            depth as ``looks``.
        all_patterns: How many patterns there are.
        patterned: The properties of a value which patterns are held to, or to what is below them; None: it is to all.
        until_choice: How many levels of a value are passed, at least, until there are alternatives (``anyOf``,
            ``oneOf``) to choose from; None where there are none.
        unresolved: JSON pointers of the references that lead to nothing in the schema.
    """

    levels: int
    chain: int
    looks: tuple[int, ...]
    patterns: tuple[int, ...]
    named: tuple[int, ...]
    all_patterns: int
    patterned: frozenset[str | int] | None
    until_choice: int | None
    unresolved: tuple[str, ...]


class _Sums(NamedTuple):
    """Looks at each part of a value one level down that no keyword names, and how many more at each that one names."""

    members: int
    items: int
    names: int
    named: dict[str | int, int]

    def others(self, name: str | int) -> int:
        """Looks at what a name, or a number, is one of, where no keyword has it."""
        return self.members if isinstance(name, str) else self.items


class _Grown(NamedTuple):
    """Looks at one value, by its depth, and how many levels a value may have that they are known for."""

    by_depth: tuple[int, ...]
    levels: int


def schema_cost(schema: Mapping[str, Any]) -> Cost | TooComplex:
    """Compute what a schema can ask for, in time that its size bounds.

    Args:
        schema: A plain mapping, such as the codec reads; what is no schema in it is passed over.
    """
    graph = SchemaGraph(schema)
    order = graph.refused or _inmost_first(graph.parts)
    if isinstance(order, TooComplex):
        return order
    chain = _longest_chain(graph.parts, order)
    if isinstance(chain, TooComplex):
        return chain
    again = _again(graph.parts, order)
    found: list[_Grown] = []
    for own in _UNITS:
        has_any = any(map(own, graph.parts))
        grown = _grown(graph.parts, order, again, own) if has_any else _Grown((0,), MAX_WRITE_DEPTH)
        if isinstance(grown, TooComplex):
            return grown
        found.append(grown)
    looks, patterns, named = (one.by_depth for one in found)
    return Cost(
        min(MAX_LINKS // chain, *(one.levels for one in found)), chain, looks, patterns, named,
        sum(len(_patterns(part)) for part in graph.parts), _patterned(graph.parts),
        _until_choice(graph.parts), tuple(graph.unresolved),
    )  # fmt: skip


def _longest_chain(parts: list[Part], order: list[int]) -> int | TooComplex:
    chains: dict[int, int] = {}
    for number in order:
        part = parts[number]
        inner = max((chains[one] for one in part.in_place), default=0)
        chains[number] = 1 + max(inner, _STANDARD_LINKS * standard_references(part.schema))
        if chains[number] > _MAX_CHAIN:
            return TooComplex(f"has more than {_MAX_CHAIN} subschemas in a row that stay with one value", part.where)
    return max(chains.values())


def _in_place(
    parts: list[Part], order: list[int], again: Mapping[int, int], own: Callable[[Part], int]
) -> dict[int, int] | TooComplex:
    """The looks that each subschema asks for, of which it has some of its own, without going down in the value."""
    looks: dict[int, int] = {}
    for number in order:
        part = parts[number]
        inner = sum(looks[one] for one in part.here)
        inner += sum(max((looks[one] for one in options), default=0) for options in part.one_of)
        looks[number] = own(part) + again[number] * inner
        if looks[number] > MAX_LOOKS:
            return TooComplex(f"has more than {MAX_LOOKS:,} {_UNITS[own]}", part.where)
    return looks


def _own_looks(part: Part) -> int:
    schema = part.schema
    own = 1 + len(schema) + _STANDARD_LOOKS * standard_references(schema)
    for key in ("required", "dependentRequired"):
        own += len(schema[key]) if isinstance(schema.get(key), dict | list) else 0
    if isinstance(schema.get("enum"), list):
        own += _compared(schema["enum"])
    return own + _compared([schema.get("const")])


def _compared(options: list[Any]) -> int:
    """Looks that finding a value among others is: words are found a hundred times as fast as all else."""
    words = sum(isinstance(one, str | bool | None) for one in options)
    others, waiting = 0, [one for one in options if not isinstance(one, str | bool | None)]
    while waiting:
        one = waiting.pop()
        others += 1
        if isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
    return words // 100 + others


def _own_patterns(part: Part) -> int:
    own = sum(1 + len(_APART.findall(one)) for one in _patterns(part))
    return own + _STANDARD_LOOKS * standard_references(part.schema)


def _patterns(part: Part) -> list[str]:
    named, own = part.schema.get("patternProperties"), part.schema.get("pattern")
    return [*(named if isinstance(named, dict) else ()), *([own] if isinstance(own, str) else ())]


def _own_named(part: Part) -> int:
    return len(dumps([part.schema.get("const"), part.schema.get("enum")])) >> 10


_UNITS: Final[Mapping[Callable[[Part], int], str]] = {
    _own_looks: "ways to look at one value",
    _own_patterns: "patterns for one value",
    _own_named: "KiB to name in what is wrong with one value",
}


def _inmost_first(parts: list[Part]) -> list[int] | TooComplex:
    """Order parts so that what one looks at in place comes before it; who comes back to himself is refused."""
    order: list[int] = []
    done = [False] * len(parts)
    for first in range(len(parts)):
        way, is_open = [(first, iter(parts[first].in_place))], {first}
        while way and not done[first]:
            number, inner = way[-1]
            for one in inner:
                if one in is_open:
                    return TooComplex("leads back to itself without going down in the value", parts[one].where)
                if not done[one]:
                    way.append((one, iter(parts[one].in_place)))
                    is_open.add(one)
                    break
            else:
                way.pop()
                is_open.discard(number)
                done[number] = True
                order.append(number)
    return order


def _again(parts: list[Part], order: list[int]) -> dict[int, int]:
    """How often each part has what it looks at in place looked at."""
    choosing: set[int] = set()
    found: dict[int, int] = {}
    for number in order:
        part, schema = parts[number], parts[number].schema
        chooses = not _CHOICES.isdisjoint(schema) or standard_references(schema)
        if chooses or not choosing.isdisjoint(part.in_place):
            choosing.add(number)
        keeps_count = "unevaluatedProperties" in schema or "unevaluatedItems" in schema
        found[number] = _AGAIN if keeps_count and number in choosing else 1
    return found


def _grown(
    parts: list[Part], order: list[int], again: Mapping[int, int], own: Callable[[Part], int]
) -> _Grown | TooComplex:
    """Looks at one value that the whole asks for, for each depth, of which each subschema has some of its own.

    A value below is looked at by all that look at its name, or number, in the value above, each in all its ways: two of
    them that lead back here double the looks with each level. What does not go on from there has no part in that.
    """
    looks = _in_place(parts, order, again, own)
    if isinstance(looks, TooComplex):
        return looks
    found, rounds = [looks[0]], 1
    nearest: dict[int, int] = {}  # looks at a value one level below each, and then at one at any level below it
    below = looks
    while len(found) <= rounds:
        sums: dict[int, _Sums] = {}
        grown, work = {}, 0
        for number in order:
            work += _handed(parts[number], sums)
            if work > _MAX_ROUND:
                where = parts[number].where
                return TooComplex(f"has more than {_MAX_ROUND:,} ways from its subschemas to properties", where)
            sums[number] = _summed(parts[number], below, sums, again[number])
            grown[number] = max(nearest.get(number, 0), _most(sums[number]))
        if nearest and grown == below:
            return _Grown(tuple(found), MAX_WRITE_DEPTH)
        nearest, below = nearest or grown, grown
        if below[0] > _MAX_GROWN:
            return _Grown(tuple(found), len(found) - 1)
        found.append(max(looks[0], below[0]))
        rounds = min(MAX_WRITE_DEPTH, _MAX_ROUNDS // work + 2)
    return _Grown(tuple(found), min(MAX_WRITE_DEPTH, len(found) - 1))


def _handed(part: Part, sums: Mapping[int, _Sums]) -> int:
    """How many names ``_summed`` goes through, at most."""
    chosen = (len(options) * sum(len(sums[one].named) for one in options) for options in part.one_of)
    return 1 + len(part.named) + sum(len(sums[one].named) for one in part.here) + sum(chosen)


def _most(below: _Sums) -> int:
    named = (below.others(name) + more for name, more in below.named.items())
    return max(below.members, below.items, below.names, max(named, default=0))


def _summed(part: Part, looks: Mapping[int, int], sums: Mapping[int, _Sums], again: int) -> _Sums:
    others, rest = sum(looks[one] for one in part.members), sum(looks[one] for one in part.items)
    members = others + sum(looks[one] for one in part.patterns)
    items = rest + sum(looks[one] for one in part.contains)
    names = sum(looks[one] for one in part.names)
    named: dict[str | int, int] = {}
    for name, inner in part.named.items():
        named[name] = sum(looks[one] for one in inner) - (others if isinstance(name, str) else rest)
    for other in [*(sums[one] for one in part.here), *(_widest([sums[one] for one in some]) for some in part.one_of)]:
        members, items = members + again * other.members, items + again * other.items
        names += again * other.names
        for name, more in other.named.items():
            named[name] = named.get(name, 0) + again * more
    return _Sums(members, items, names, named)


def _widest(options: list[_Sums]) -> _Sums:
    """The most of each, of alternatives of which one is taken."""
    if not options:
        return _Sums(0, 0, 0, {})
    most = _Sums(
        max(one.members for one in options), max(one.items for one in options), max(one.names for one in options), {}
    )
    for name in {name: None for one in options for name in one.named}:
        widest = max(one.others(name) + one.named.get(name, 0) for one in options)
        most.named[name] = widest - most.others(name)
    return most


def _patterned(parts: list[Part]) -> frozenset[str | int] | None:
    before: list[list[int]] = [[] for _ in parts]
    for number, part in enumerate(parts):
        for one in (*part.in_place, *_below(part)):
            before[one].append(number)
    leads = _reached([number for number, part in enumerate(parts) if _own_patterns(part)], before.__getitem__)
    names: set[str | int] = set()
    for number in _reached([0], lambda one: parts[one].in_place):
        part = parts[number]
        if _own_patterns(part) or not leads.isdisjoint(_unnamed(part)):
            return None
        names.update(name for name, inner in part.named.items() if not leads.isdisjoint(inner))
    return frozenset(names)


def _reached(found: list[int], onwards: Callable[[int], list[int]]) -> set[int]:
    seen = set(found)
    for number in found:  # grows
        new = [one for one in dict.fromkeys(onwards(number)) if one not in seen]
        seen.update(new)
        found += new
    return seen


def _until_choice(parts: list[Part]) -> int | None:
    """Levels of a value between the whole schema and the first alternatives."""
    here, seen, levels = [0], {0}, 0
    while here:
        below: list[int] = []
        for number in here:  # grows
            part = parts[number]
            if "anyOf" in part.schema or "oneOf" in part.schema or standard_references(part.schema):
                return levels
            here += [one for one in part.in_place if one not in seen]
            seen.update(part.in_place)
            below += _below(part)
        here, levels = [one for one in dict.fromkeys(below) if one not in seen], levels + 1
        seen.update(here)
    return None


def _below(part: Part) -> Iterator[int]:
    yield from _unnamed(part)
    for inner in part.named.values():
        yield from inner


def _unnamed(part: Part) -> tuple[int, ...]:
    return (*part.members, *part.patterns, *part.items, *part.contains, *part.names)
