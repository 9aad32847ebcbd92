"""A JSON Schema goes in; its subschemas, and which of them each one looks at, come out, or why that cannot be known.

Names (``$id``, anchors) lead where the library of ``json_schema`` has them lead: one that two subschemas have, that can
be written in more than one way, or that stands where the library looks for none, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

__all__ = ["MAX_SUBSCHEMAS", "Part", "SchemaGraph", "TooComplex", "standard_references"]

MAX_SUBSCHEMAS: Final = 10_000
"""Subschemas of a schema: compiling follows references as deep as there are subschemas."""

_MAX_WAYS: Final = 100_000  # from dynamic references to all that they may lead to

_APPLIED: Final = {
    **dict.fromkeys(("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"), "here"),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), "members"),
    **dict.fromkeys(("items", "unevaluatedItems", "prefixItems"), "items"),
    "properties": "named", "patternProperties": "patterns", "contains": "contains", "propertyNames": "names",
    "$defs": "", "definitions": "", "contentSchema": "",
    "dependencies": "here",  # of older drafts, but held to all the same
}  # fmt: skip
"""The keywords with subschemas, and the field of the part that these are in."""

_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs",
                           "definitions"})  # fmt: skip
_FIRST_ITEMS: Final = frozenset({"prefixItems", "items"})
_REFERENCES: Final = ("$ref", "$dynamicRef")

_ROOT: Final = "http://schema.invalid/"  # what is relative to nothing
_STANDARD: Final = "https://json-schema.org/draft/2020-12/"
_DRAFT: Final = (f"{_STANDARD}schema", f"{_STANDARD}schema#")
_SEGMENT: Final = r"(?!\.\.?(?:/|$))[A-Za-z0-9._~-]+"
_PLAIN: Final = re.compile(rf"https?://[a-z0-9.-]+(?:/{_SEGMENT})*/?|urn:[a-z0-9-]+:[A-Za-z0-9:._-]+")


class TooComplex(NamedTuple):
    """Why a schema is refused: what it does, to be said of it, and a JSON pointer to where it does that."""

    reason: str
    where: str


class Part(NamedTuple):
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

    @property
    def in_place(self) -> list[int]:
        """All that it looks at in place."""
        return [*self.here, *(one for options in self.one_of for one in options)] if self.one_of else self.here


class SchemaGraph:
    """Every subschema of a schema by its number, the whole of it first; all booleans are one subschema.

    Attributes:
        parts: The subschemas.
        unresolved: JSON pointers of the references that lead to nothing in the schema.
        refused: Why the rest was not looked at, if so.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.parts: list[Part] = []
        self.unresolved: list[str] = []
        self.refused: TooComplex | None = None
        self._numbers: dict[int, int] = {}
        self._boolean: list[int] = []
        self._resources: dict[str, tuple[Any, str]] = {_ROOT: (schema, "")}
        self._anchors: dict[tuple[str, str], int] = {}
        self._dynamic: dict[str, list[int]] = {}
        self._ways = 0
        self._references: list[tuple[int, str, str]] = []
        self._waiting: list[int] = []
        self._is_under_keywords = True
        self._unclear: TooComplex | None = None  # why it is not known what a name leads to
        self._add(schema, "", _ROOT)
        while (self._waiting or self._references) and self.refused is None:
            while self._waiting and self.refused is None:
                self._read(self._waiting.pop())
            references, self._references = self._references, []
            self._is_under_keywords = False  # from now on what is new stands where only a reference leads
            for reference in references:
                if self.refused is None:
                    self._follow(*reference)

    def _refuse(self, reason: str, where: str) -> None:
        self.refused = self.refused or TooComplex(reason, where)

    def _doubt(self, reason: str, where: str) -> None:
        """Refuse the schema if anything in it refers to anything."""
        self._unclear = self._unclear or TooComplex(reason, where)

    def _add(self, schema: Any, where: str, base: str) -> list[int]:
        """Number a subschema; what is none has no number."""
        if isinstance(schema, bool):
            self._boolean = self._boolean or [self._numbered({}, "", _ROOT)]
            return self._boolean
        if not isinstance(schema, dict):
            return []
        number = self._numbers.get(id(schema))
        if number is None:
            number = self._numbers[id(schema)] = self._numbered(schema, where, _base(schema, base))
            self._waiting.append(number)
        return [number]

    def _numbered(self, schema: dict[str, Any], where: str, base: str) -> int:
        self.parts.append(Part(schema, where, base, [], [], [], [], [], [], [], {}))
        if len(self.parts) > MAX_SUBSCHEMAS:
            self._refuse(f"has more than {MAX_SUBSCHEMAS:,} subschemas", where)
        return len(self.parts) - 1

    def _read(self, number: int) -> None:
        part = self.parts[number]
        self._name(number)
        for key, found in part.schema.items():
            if key in _REFERENCES:
                if isinstance(found, str):
                    self._references.append((number, key, found))
            elif isinstance(found, dict | list | bool) and key in _APPLIED:
                self._apply(part, key, found)

    def _apply(self, part: Part, key: str, found: dict[str, Any] | list[Any] | bool) -> None:
        where, field = f"{part.where}/{key}", _APPLIED[key]
        if isinstance(found, bool) or (isinstance(found, dict) and key not in _NAMED):
            alone = self._add(found, where, part.base)
            if field:
                getattr(part, field).extend(alone)
            return
        pairs: Iterable[tuple[str | int, Any]] = found.items() if isinstance(found, dict) else enumerate(found)
        inner = {name: self._add(one, f"{where}/{_escaped(name)}", part.base) for name, one in pairs}
        if key == "properties" or (isinstance(found, list) and key in _FIRST_ITEMS):
            part.named.update(inner)
        elif field:
            getattr(part, field).extend(one for some in inner.values() for one in some)

    # -- names ---

    def _name(self, number: int) -> None:
        part = self.parts[number]
        if number and part.schema.get("$schema") not in (None, *_DRAFT):
            self._doubt("is of another draft in a part", part.where)
        if isinstance(part.schema.get("$id"), str):
            self._name_resource(part, is_whole=number == 0)
        for key in ("$anchor", "$dynamicAnchor"):
            name = part.schema.get(key)
            if isinstance(name, str):
                if self._anchors.setdefault((part.base, name), number) != number:
                    self._doubt("has two subschemas of one name", part.where)
                if key == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(number)

    def _name_resource(self, part: Part, *, is_whole: bool) -> None:
        found = self._resources.setdefault(part.base, (part.schema, part.where))
        if found[0] is not part.schema or part.base.startswith(_STANDARD):
            self._doubt("has two subschemas of one name", part.where)
        if not is_whole and not all(map(_PLAIN.fullmatch, (part.base, self.parts[0].base))):
            self._doubt("has a part whose $id can be written in more than one way", part.where)
        if not self._is_under_keywords:
            self._doubt("has an $id where no subschema is looked for", part.where)

    def _follow(self, number: int, key: str, reference: str) -> None:
        part = self.parts[number]
        uri, name = urldefrag(urljoin(part.base, reference)) if reference[:1] != "#" else (part.base, reference[1:])
        found = self._found(uri, unquote(name))
        if key != "$ref":  # whichever of these the way through the schema meets first
            part.one_of.append(sorted({*found, *self._dynamic.get(unquote(name), ())}))
            self._ways += len(part.one_of[-1])
            if self._ways > _MAX_WAYS:
                self._refuse(f"has more than {_MAX_WAYS:,} ways to what its references may lead to", part.where)
        elif found != [number]:  # a schema that is itself says nothing
            part.here.extend(found)
        if not found and not uri.startswith(_STANDARD):
            self.unresolved.append(f"{part.where}/{key}")
        self.refused = self.refused or self._unclear

    def _found(self, uri: str, name: str) -> list[int]:
        if name and not name.startswith("/"):
            anchor = self._anchors.get((uri, name))
            return [] if anchor is None else [anchor]
        found = self._at(uri, name)
        return [] if found is None else self._add(*found)

    def _at(self, uri: str, pointer: str) -> tuple[Any, str, str] | None:
        """What a pointer into a resource leads to, where that is in the whole, and the base there."""
        found, where = self._resources.get(uri, (None, ""))
        base = uri
        for part in pointer.split("/")[1:]:
            if isinstance(found, dict) and isinstance(found.get("$id"), str) and id(found) not in self._numbers:
                self._doubt("has an $id where no subschema is looked for", where)
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                base, found = _base(found, base), found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
            where = f"{where}/{part}"
        return None if found is None else (found, where, base)


def standard_references(schema: Mapping[str, Any]) -> int:
    """How many references of a subschema lead to the meta-schema, which is in no schema."""
    return sum(str(schema.get(key)).startswith(_STANDARD) for key in _REFERENCES)


def _base(schema: dict[str, Any], base: str) -> str:
    own = schema.get("$id")
    return urldefrag(urljoin(base, own))[0] if isinstance(own, str) else base


def _escaped(key: str | int) -> str:
    return key.replace("~", "~0").replace("/", "~1") if isinstance(key, str) else str(key)
