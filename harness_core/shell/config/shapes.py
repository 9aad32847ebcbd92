"""JSON Schemas in; what may stand at a key, and what an untrusted project may do there, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

__all__ = ["ANYTHING", "Shape"]

Schema = Mapping[str, Any]


@attrs.frozen(eq=False)
class Shape:
    """A schema together with the document that its references point into.

    Attributes:
        schema: The schema, references resolved at its top.
        root: The document with its ``$defs``.
        untrusted: The mark that holds here: the schema's own, else that of what it stands in, else ``no``.
        comparator: What stricter means where the mark is ``tighten``.
    """

    schema: Schema
    root: Schema
    untrusted: str = "no"
    comparator: str | None = None

    @classmethod
    def of(cls, schema: Schema, root: Schema | None = None, *, under: Shape | None = None) -> Shape:
        """Look at a schema; ``under`` is the shape whose mark is inherited."""
        root = schema if root is None else root
        found = _resolve(schema, root)
        mark = found.get("x-untrusted")
        if mark is None and under is not None:
            return cls(found, root, under.untrusted, under.comparator)
        return cls(found, root, mark if mark in {"ok", "tighten", "no"} else "no", found.get("x-tighten"))

    def _at(self, schema: Schema | bool) -> Shape:
        return Shape.of({} if isinstance(schema, bool) else schema, self.root, under=self)

    def alternatives(self) -> list[Shape]:
        """Give what may stand here one by one, null left out: a setting is unset, never null."""
        options = self.schema.get("anyOf") or self.schema.get("oneOf")
        if not options:
            return [] if self.schema.get("type") == "null" else [self]
        return [found for option in options for found in self._at(option).alternatives()]

    def kinds(self) -> frozenset[str]:
        """Give the JSON types that this one alternative allows; empty when it says nothing."""
        said = self.schema.get("type")
        if said is None:
            return frozenset(self._implied())
        return frozenset([said] if isinstance(said, str) else said)

    def _implied(self) -> Iterator[str]:
        if "properties" in self.schema or "additionalProperties" in self.schema:
            yield "object"
        if "items" in self.schema:
            yield "array"
        values = self.schema.get("enum", [self.schema["const"]] if "const" in self.schema else [])
        if values and all(isinstance(value, str) for value in values):
            yield "string"

    def property_names(self) -> list[str]:
        """Give the keys that are known by name."""
        return [
            name
            for one in self.alternatives()
            for name in (*one.schema.get("properties", {}), *one.schema.get("x-keys", ()))
        ]

    def child(self, key: str) -> Shape | None:
        """Give the shape of a known key; None when the key is not known by name."""
        for one in self.alternatives():
            found = one.schema.get("properties", {}).get(key)
            if found is not None:
                return one._at(found)
        return None

    def free(self) -> Shape | None:
        """Give the shape of keys that are not known by name; None when there may be none.

        A schema that names properties and says nothing of others allows no others: a typo must not be silent.
        """
        for one in self.alternatives():
            rest = one.schema.get("additionalProperties", "properties" not in one.schema)
            fits = rest is not True or not one.kinds() or "object" in one.kinds()
            if rest is not False and fits:
                return one._at(rest)
        return None

    def items(self) -> Shape:
        """Give the shape of a list's items."""
        for one in self.alternatives():
            found = one.schema.get("items")
            if found is not None:
                return one._at(found)
        return ANYTHING

    def values(self) -> tuple[str, ...]:
        """Give the words that are allowed, where only certain words are."""
        listed = self.schema.get("enum", [self.schema["const"]] if "const" in self.schema else [])
        return tuple(value for value in listed if isinstance(value, str))

    def describe(self) -> str:
        """Say in words what may stand here."""
        words = [_words(one) for one in self.alternatives()]
        return " or ".join(dict.fromkeys(words)) or "nothing"


def _words(shape: Shape) -> str:
    if shape.values():
        return f"one of {', '.join(shape.values())}"
    names = {
        "string": "a text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": "a list",
        "object": "a mapping",
    }
    return " or ".join(names.get(kind, kind) for kind in sorted(shape.kinds())) or "any value"


def _resolve(schema: Schema, root: Schema, depth: int = 0) -> Schema:
    """Follow ``$ref`` into the root's ``$defs``, and ``allOf`` of one; what stands beside a reference comes first."""
    if depth > 32:
        return {}
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#/"):
        found: Any = root
        for part in target[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, Mapping) else {}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolve(found, root, depth + 1), **beside}
    wrapped = schema.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and isinstance(wrapped[0], Mapping):
        beside = {key: value for key, value in schema.items() if key != "allOf"}
        return {**_resolve(wrapped[0], root, depth + 1), **beside}
    return schema


ANYTHING: Final = Shape.of({})
"""Where no schema says anything."""
