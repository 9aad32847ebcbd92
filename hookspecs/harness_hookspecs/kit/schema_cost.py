"""A JSON Schema goes in; how much it can ask for, of the stack and of time, comes out before anybody does it.

Who follows a schema does so on the stack, and looks at a value as often as there are ways through the schema to it.
Both are known without a value: what a subschema looks at *in place* (``$ref``, ``allOf``, ``not`` and the like, which
stay with the value) is an acyclic graph, and what it looks at *below* goes one level down in the value.

One look is one subschema, or one thing that it can find fault with, held to one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

__all__ = ["MAX_LINKS", "MAX_LOOKS", "MAX_SUBSCHEMAS", "Cost", "TooComplex", "schema_cost"]

MAX_SUBSCHEMAS: Final = 10_000
"""Subschemas of a schema: compiling follows references as deep as there are subschemas."""

MAX_LOOKS: Final = 10_000
"""Looks at one value without going below it; below, a value is the larger problem (see ``Cost.looks``)."""

MAX_LINKS: Final = 8_192
"""Subschemas that are on the stack at once. A stack of 8 MiB holds 30,000 to 60,000, and 8 MiB is what threads have."""

_MAX_CHAIN: Final = MAX_LINKS // 32  # whatever the schema, values may be that deep
_MAX_GROWN: Final = 10_000_000  # looks at one value, below others
_MAX_ROUNDS: Final = 200_000  # times subschemas, until the looks have stopped growing

_APPLIED: Final = {
    **dict.fromkeys(("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"), "here"),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), "members"),
    **dict.fromkeys(("items", "unevaluatedItems", "prefixItems"), "items"),
    "properties": "named", "patternProperties": "patterns", "contains": "contains", "propertyNames": "names",
    "$defs": "", "definitions": "",
    "dependencies": "here", "additionalItems": "items",  # of older drafts, which a part may be of
}  # fmt: skip
"""The keywords with subschemas, and the field of the part that these are in."""

_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs",
                           "definitions"})  # fmt: skip
_FIRST_ITEMS: Final = frozenset({"prefixItems", "items"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_AGAIN: Final = 3  # beside unevaluatedItems and -Properties, which alternatives hold is asked once more, and within
_CHOICES: Final = frozenset({"anyOf", "oneOf", "if", "contains", "dependentSchemas", "dependencies"})

_ROOT: Final = "http://schema.invalid/"  # what is relative to nothing
_STANDARD: Final = "https://json-schema.org/draft/2020-12/"
_STANDARD_LOOKS: Final = 100  # the meta-schema, which everybody has
_STANDARD_LINKS: Final = 20


class TooComplex(NamedTuple):
    """Why a schema is refused: what it does, to be said of it, and a JSON pointer to where it does that."""

    reason: str
    where: str


class Cost(NamedTuple):
    """What a schema can ask for.

    Attributes:
        levels: How deeply a value may be nested; ``[]`` has depth 1.
        chain: Subschemas that lead to each other in place, at most.
        looks: How often each part of a value is looked at, at most: item ``n`` for a value of depth ``n``, the last
            item for all that are deeper.
        until_choice: How many levels of a value are passed, at least, until there are alternatives (``anyOf``,
            ``oneOf``) to choose from; None where there are none.
        unresolved: JSON pointers of the references that lead to nothing in the schema.
    """

    levels: int
    chain: int
    looks: tuple[int, ...]
    until_choice: int | None
    unresolved: tuple[str, ...]


class _Part(NamedTuple):
    """A subschema, and the numbers of those it looks at. They are filled in while the graph is built."""

    schema: dict[str, Any]
    where: str
    base: str
    here: list[int]  # in place
    one_of: list[list[int]]  # in place, one of each list
    members: list[int]  # of properties, by what holds for all that the part does not name
    patterns: list[int]  # of properties, beside what else holds for them
    items: list[int]  # of an array, beyond the first ones
    contains: list[int]  # of an array, beside what else holds for them
    names: list[int]
    named: dict[str | int, list[int]]  # of properties by name, of the first items by number


class _Sums(NamedTuple):
    """Looks at each part of a value one level down that no keyword names, and how many more at each that one names."""

    members: int
    items: int
    names: int
    named: dict[str | int, int]

    def others(self, name: str | int) -> int:
        """Looks at what a name, or a number, is one of, where no keyword has it."""
        return self.members if isinstance(name, str) else self.items


def schema_cost(schema: Mapping[str, Any]) -> Cost | TooComplex:
    """Compute what a schema can ask for, in time that its size bounds.

    Args:
        schema: A plain mapping, such as the codec reads; what is no schema in it is passed over.
    """
    graph = _Graph(schema)
    if len(graph.parts) > MAX_SUBSCHEMAS:
        return TooComplex(f"has more than {MAX_SUBSCHEMAS:,} subschemas", graph.parts[-1].where)
    order = _inmost_first(graph.parts)
    if isinstance(order, TooComplex):
        return order
    again = _again(graph.parts, order)
    measured = _in_place_cost(graph.parts, order, again)
    if isinstance(measured, TooComplex):
        return measured
    chain, looks = measured
    grown, is_all = _grown(graph.parts, order, looks, again)
    levels = min(MAX_WRITE_DEPTH, MAX_LINKS // chain, MAX_WRITE_DEPTH if is_all else len(grown) - 1)
    return Cost(levels, chain, grown, _until_choice(graph.parts), tuple(graph.unresolved))


def _in_place_cost(
    parts: list[_Part], order: list[int], again: Mapping[int, int]
) -> tuple[int, dict[int, int]] | TooComplex:
    """The longest chain of subschemas, and the looks that each asks for, without going down in the value."""
    chains: dict[int, int] = {}
    looks: dict[int, int] = {}
    for number in order:
        part = parts[number]
        inner = max((chains[one] for one in _in_place(part)), default=0)
        chains[number] = 1 + max(inner, _standard(part, _STANDARD_LINKS))
        looks[number] = _looks_here(part, looks, again[number])
        if chains[number] > _MAX_CHAIN:
            return TooComplex(f"has more than {_MAX_CHAIN} subschemas in a row that stay with one value", part.where)
        if looks[number] > MAX_LOOKS:
            return TooComplex(f"has more than {MAX_LOOKS:,} ways to look at one value", part.where)
    return max(chains.values()), looks


class _Graph:
    """Every subschema of a schema by its number, the whole of it first."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.parts: list[_Part] = []
        self.unresolved: list[str] = []
        self._root = schema
        self._numbers: dict[int, int] = {}
        self._resources: dict[str, tuple[Any, str]] = {_ROOT: (schema, "")}
        self._anchors: dict[tuple[str, str], int] = {}
        self._dynamic: dict[str, list[int]] = {}
        self._references: list[tuple[int, str, str]] = []
        self._waiting: list[int] = []
        self._add(schema, "", _ROOT)
        while self._waiting or self._references:
            while self._waiting and len(self.parts) <= MAX_SUBSCHEMAS:
                self._read(self._waiting.pop())
            if len(self.parts) > MAX_SUBSCHEMAS:
                return
            references, self._references = self._references, []
            for reference in references:
                self._follow(*reference)

    def _add(self, schema: Any, where: str, base: str) -> list[int]:
        """Number a subschema; a boolean, and what is none, has no number."""
        if not isinstance(schema, dict):
            return []
        number = self._numbers.get(id(schema))
        if number is None:
            number = self._numbers[id(schema)] = len(self.parts)
            self.parts.append(_Part(schema, where, _base(schema, base), [], [], [], [], [], [], [], {}))
            self._waiting.append(number)
        return [number]

    def _read(self, number: int) -> None:
        part = self.parts[number]
        self._name(number)
        for key, found in part.schema.items():
            if key in _REFERENCES:
                if isinstance(found, str):
                    self._references.append((number, key, found))
            elif isinstance(found, dict | list) and key in _APPLIED:
                self._apply(part, key, found)

    def _apply(self, part: _Part, key: str, found: dict[str, Any] | list[Any]) -> None:
        where, field = f"{part.where}/{key}", _APPLIED[key]
        if isinstance(found, dict) and key not in _NAMED:
            getattr(part, field).extend(self._add(found, where, part.base))
            return
        pairs: Iterable[tuple[str | int, Any]] = found.items() if isinstance(found, dict) else enumerate(found)
        inner = {name: self._add(one, f"{where}/{_escaped(name)}", part.base) for name, one in pairs}
        if key == "properties" or (isinstance(found, list) and key in _FIRST_ITEMS):
            part.named.update(inner)
        elif field:
            getattr(part, field).extend(one for some in inner.values() for one in some)

    def _name(self, number: int) -> None:
        part = self.parts[number]
        if "$id" in part.schema:
            self._resources.setdefault(part.base, (part.schema, part.where))
        for key in ("$anchor", "$dynamicAnchor"):
            name = part.schema.get(key)
            if isinstance(name, str):
                self._anchors.setdefault((part.base, name), number)
                if key == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(number)

    def _follow(self, number: int, key: str, reference: str) -> None:
        part = self.parts[number]
        uri, name = urldefrag(urljoin(part.base, reference)) if reference[:1] != "#" else (part.base, reference[1:])
        found = self._found(uri, unquote(name))
        if key != "$ref":  # whichever of these the way through the schema meets first
            part.one_of.append(sorted({*found, *self._dynamic.get(unquote(name), ())}))
        elif found != [number]:  # a schema that is itself says nothing
            part.here.extend(found)
        if not found and not uri.startswith(_STANDARD) and not self._is_boolean(uri, unquote(name)):
            self.unresolved.append(f"{part.where}/{key}")

    def _found(self, uri: str, name: str) -> list[int]:
        if name and not name.startswith("/"):
            anchor = self._anchors.get((uri, name))
            return [] if anchor is None else [anchor]
        found = self._at(uri, name)
        return [] if found is None else self._add(*found)

    def _is_boolean(self, uri: str, name: str) -> bool:
        found = self._at(uri, name) if not name or name.startswith("/") else None
        return found is not None and isinstance(found[0], bool)

    def _at(self, uri: str, pointer: str) -> tuple[Any, str, str] | None:
        """What a pointer into a resource leads to, where that is in the whole, and the base there."""
        found, where = self._resources.get(uri, (None, ""))
        base = uri
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                base, found = _base(found, base), found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
            where = f"{where}/{part}"
        return None if found is None else (found, where, base)


def _base(schema: dict[str, Any], base: str) -> str:
    own = schema.get("$id")
    return urldefrag(urljoin(base, own))[0] if isinstance(own, str) else base


def _escaped(key: str | int) -> str:
    return key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)


def _in_place(part: _Part) -> list[int]:
    return [*part.here, *(one for options in part.one_of for one in options)] if part.one_of else part.here


def _inmost_first(parts: list[_Part]) -> list[int] | TooComplex:
    """Order parts so that what one looks at in place comes before it; who comes back to himself is refused."""
    order: list[int] = []
    done = [False] * len(parts)
    for first in range(len(parts)):
        way, is_open = [(first, iter(_in_place(parts[first])))], {first}
        while way and not done[first]:
            number, inner = way[-1]
            for one in inner:
                if one in is_open:
                    return TooComplex("leads back to itself without going down in the value", parts[one].where)
                if not done[one]:
                    way.append((one, iter(_in_place(parts[one]))))
                    is_open.add(one)
                    break
            else:
                way.pop()
                is_open.discard(number)
                done[number] = True
                order.append(number)
    return order


def _standard(part: _Part, much: int) -> int:
    return sum(much for key in _REFERENCES if str(part.schema.get(key)).startswith(_STANDARD))


def _looks_here(part: _Part, looks: Mapping[int, int], again: int) -> int:
    schema = part.schema
    own = 1 + len(schema) + _standard(part, _STANDARD_LOOKS)
    for key, each in (("required", 1), ("dependentRequired", 1), ("enum", 100)):
        if key in schema:
            own += len(schema[key]) // each if isinstance(schema[key], dict | list) else 0
    inner = sum(looks[one] for one in part.here)
    inner += sum(max((looks[one] for one in options), default=0) for options in part.one_of)
    return own + again * inner


def _again(parts: list[_Part], order: list[int]) -> dict[int, int]:
    """How often each part has what it looks at in place looked at."""
    choosing: set[int] = set()
    found: dict[int, int] = {}
    for number in order:
        part = parts[number]
        if not _CHOICES.isdisjoint(part.schema) or not choosing.isdisjoint(_in_place(part)) or _standard(part, 1):
            choosing.add(number)
        keeps_count = "unevaluatedProperties" in part.schema or "unevaluatedItems" in part.schema
        found[number] = _AGAIN if keeps_count and number in choosing else 1
    return found


def _grown(
    parts: list[_Part], order: list[int], looks: dict[int, int], again: Mapping[int, int]
) -> tuple[tuple[int, ...], bool]:
    """Looks at one value that the whole asks for, for each depth, and whether more depth asks for no more.

    A value below is looked at by all that look at its name, or number, in the value above, each in all its ways: two of
    them that lead back here double the looks with each level.
    """
    found = [looks[0]]
    for _ in range(min(MAX_WRITE_DEPTH, _MAX_ROUNDS // len(parts) + 2)):
        sums: dict[int, _Sums] = {}
        grown = {}
        for number in order:
            sums[number] = _summed(parts[number], looks, sums, again[number])
            grown[number] = max(looks[number], _most(sums[number]))
        if grown == looks:
            return tuple(found), True
        looks = grown
        if looks[0] > _MAX_GROWN:
            return tuple(found), False
        found.append(looks[0])
    return tuple(found), len(found) > MAX_WRITE_DEPTH


def _most(below: _Sums) -> int:
    named = (below.others(name) + more for name, more in below.named.items())
    return max(below.members, below.items, below.names, max(named, default=0))


def _summed(part: _Part, looks: Mapping[int, int], sums: Mapping[int, _Sums], again: int) -> _Sums:
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


def _until_choice(parts: list[_Part]) -> int | None:
    """Levels of a value between the whole schema and the first alternatives."""
    here, seen, levels = [0], {0}, 0
    while here:
        below: list[int] = []
        for number in here:  # grows
            part = parts[number]
            if "anyOf" in part.schema or "oneOf" in part.schema or _standard(part, 1):
                return levels
            here += [one for one in _in_place(part) if one not in seen]
            seen.update(_in_place(part))
            below += _below(part)
        here, levels = [one for one in dict.fromkeys(below) if one not in seen], levels + 1
        seen.update(here)
    return None


def _below(part: _Part) -> Iterator[int]:
    yield from (*part.members, *part.patterns, *part.items, *part.contains, *part.names)
    for inner in part.named.values():
        yield from inner
