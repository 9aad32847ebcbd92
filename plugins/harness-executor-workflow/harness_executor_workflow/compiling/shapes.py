"""What is known of a value before it exists: a data schema and a step into it go in, what is known there comes out.

A shape is a data schema of the small subset, or ``UNTYPED`` for JSON without a schema, which cannot be looked into. An
object that names its properties has no others, unless it says ``additionalProperties``: a plan that reads a field which
no schema names is a typing error far more often than a wish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["ANY", "KINDS", "UNTYPED", "Found", "Shape", "either", "element", "field", "kinds", "kinds_of_value",
           "missing", "names"]  # fmt: skip

Shape: TypeAlias = Any
"""A data schema (true, false or an object), or ``UNTYPED``."""

ANY: Final = True
UNTYPED: Final = "untyped"

KINDS: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Found(NamedTuple):
    """What stands under a name: its shape, and whether every value has it."""

    shape: Shape
    always: bool


def kinds(shape: Shape) -> frozenset[str]:
    """The kinds of JSON that a value of the shape may be of."""
    if not isinstance(shape, Mapping):
        return KINDS if shape else frozenset()
    found = _stated(shape.get("type"))
    if "const" in shape:
        found &= kinds_of_value(shape["const"])
    if isinstance(shape.get("enum"), list):
        found &= frozenset().union(*map(kinds_of_value, shape["enum"]))
    for branches in _branches(shape):
        found &= frozenset().union(*map(kinds, branches))
    return found


def _stated(stated: Any) -> frozenset[str]:
    if stated is None:
        return KINDS
    listed = frozenset([stated] if isinstance(stated, str) else stated)
    return listed | {"integer"} if "number" in listed else listed


def kinds_of_value(value: Any) -> frozenset[str]:
    """The kind that one value is of; a whole number is an integer, however it is written."""
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return frozenset({"integer" if whole else "number"})
    return frozenset({"string" if isinstance(value, str) else "array" if isinstance(value, list | tuple) else "object"})


def either(shapes: Iterable[Shape]) -> Shape:
    """The shape of a value that is of one of these."""
    found: list[Shape] = []
    for one in shapes:
        if one is ANY or one in (UNTYPED, {}):
            return UNTYPED if one == UNTYPED else ANY
        if one is not False and one not in found:
            found.append(one)
    return found[0] if len(found) == 1 else {"anyOf": found} if found else False


def field(shape: Shape, name: str) -> Found | None:
    """What stands under the name, or None where there is nothing of it in any value of the shape."""
    if shape is ANY:
        return Found(ANY, always=True)
    if not isinstance(shape, Mapping) or "object" not in kinds(shape):
        return None
    properties, always = shape.get("properties"), name in shape.get("required", ())
    if isinstance(properties, Mapping) and name in properties:
        return Found(properties[name], always)
    branches = _branches(shape)
    inner = [field(one, name) for some in branches for one in some if "object" in kinds(one)]
    there = [one for one in inner if one is not None]
    if there:
        always = always or (len(branches) == 1 and len(there) == len(inner) and all(one.always for one in there))
        return Found(either(one.shape for one in there), always)
    others = shape.get("additionalProperties", not properties and not branches)
    # Nothing is promised of an object without properties: what is in it is for the run to find out.
    return None if others is False else Found(others, always or others is True)


def element(shape: Shape) -> Shape | None:
    """The shape of an array's elements, or None where the shape is of no array."""
    if shape is ANY:
        return ANY
    if not isinstance(shape, Mapping) or "array" not in kinds(shape):
        return None
    if "items" in shape:
        return shape["items"]
    for branches in _branches(shape):
        inner = [one for one in map(element, branches) if one is not None]
        return either(inner)
    return ANY


def names(shape: Shape) -> list[str]:
    """The fields that the shape names, for a hint."""
    if not isinstance(shape, Mapping):
        return []
    properties = shape.get("properties")
    own = list(properties) if isinstance(properties, Mapping) else []
    return own + [name for branches in _branches(shape) for one in branches for name in names(one)]


def missing(shape: Shape) -> str:
    """What a value of the shape is, in words."""
    if shape == UNTYPED:
        return "JSON without a schema"
    of = kinds(shape) - ({"integer"} if "number" in kinds(shape) else set())
    return "anything" if of >= KINDS - {"integer"} else " or ".join(sorted(of)) or "nothing"


def _branches(shape: Mapping[str, Any]) -> list[list[Any]]:
    return [shape[word] for word in ("anyOf", "oneOf") if isinstance(shape.get(word), list) and shape[word]]
