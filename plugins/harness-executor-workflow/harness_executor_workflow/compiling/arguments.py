"""The arguments of a tool call: a step and its tool go in; what is missing, unknown or of another type comes out.

A template counts as what is known of its value: of ``{{ expr }}`` the type that the producers' schemas give it, of any
other template text. Only what no value could satisfy is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_hookspecs.errors import CodecError, PluginError
from harness_hookspecs.kit.json_schema import compiled_schema, faults
from harness_hookspecs.tool import ToolSpec
from harness_hookspecs.workflow import PlanFinding

from .findings import Place, did_you_mean, finding
from .plans import Located
from .shapes import KINDS, UNTYPED, Shape, kinds, missing

__all__ = ["check_arguments", "fits", "plain_kinds"]

_OF_OBJECTS: Final = frozenset({"required", "dependentRequired", "minProperties", "maxProperties", "allOf", "anyOf",
                                "oneOf", "not", "if", "then", "else", "dependentSchemas"})  # fmt: skip
"""What says of an object as a whole more than of each property; not to be asked of a part of the arguments."""


def check_arguments(one: Located, spec: ToolSpec, shapes: Mapping[Place, Shape]) -> Iterator[PlanFinding]:
    """Hold the arguments to the tool's schema."""
    args, place = one.settings.get("args", {}), one.place / "with" / "args"
    known: Mapping[str, Any] = spec.input_schema.get("properties", {})
    for name in spec.input_schema.get("required", ()):
        if name not in args:
            hint = f"{spec.name} takes {', '.join(known)}" if known else None
            yield finding("bind.missing_arg", place, one.id, f"{spec.name} requires the argument {name}.", hint)
    literal: dict[str, Any] = {}
    for name, value in args.items():
        if name not in known and spec.input_schema.get("additionalProperties", True) is False:
            message = f"{spec.name} has no argument {name}."
            yield finding("bind.unknown_arg", place / name, one.id, message, did_you_mean(name, known))
        elif not any(shape[: len(place) + 1] == place / name for shape in shapes):
            literal[name] = value
        else:
            yield from _templated(one, (place / name, name, value), known.get(name, True), shapes)
    yield from _literals(one, spec, literal, place)


def _templated(
    one: Located, argument: tuple[Place, str, Any], wanted: Any, shapes: Mapping[Place, Shape]
) -> Iterator[PlanFinding]:
    place, name, value = argument
    shape = shapes.get(place)
    if shape is None:
        shape = {"type": "object" if isinstance(value, Mapping) else "array"}
    if not isinstance(wanted, Mapping | bool) or shape == UNTYPED or fits(shape, wanted):
        return
    message = f"The argument {name} is {missing(wanted)}; this gives {missing(shape)}."
    yield finding("bind.arg_type", place, one.id, message, _conversion(wanted, shape))


def fits(shape: Shape, wanted: Any) -> bool:
    """Whether some value could be both; only what both say plainly is compared."""
    given, taken = kinds(shape), plain_kinds(wanted)
    if not given & taken and not ("number" in given and "integer" in taken):
        return False
    mine, theirs = (one.get("enum") if isinstance(one, Mapping) else None for one in (shape, wanted))
    return not (isinstance(mine, list) and isinstance(theirs, list)) or any(one in theirs for one in mine)


def plain_kinds(wanted: Any) -> frozenset[str]:
    """The kinds that a tool's schema takes; any where it says so by other means than plans have."""
    if isinstance(wanted, Mapping) and not all(isinstance(one, str) for one in _as_list(wanted.get("type", []))):
        return KINDS
    return kinds(wanted)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _conversion(wanted: Any, shape: Shape) -> str | None:
    taken = plain_kinds(wanted)
    if taken == {"string"}:
        return "write string(...) around it" if kinds(shape) <= {"integer", "number", "boolean"} else None
    if taken <= {"integer", "number"} and kinds(shape) == {"string"}:
        return f"write {'int' if taken == {'integer'} else 'double'}(...) around it"
    return None


def _literals(one: Located, spec: ToolSpec, literal: dict[str, Any], place: Place) -> Iterator[PlanFinding]:
    schema = {word: inner for word, inner in spec.input_schema.items() if word not in _OF_OBJECTS}
    if not literal:
        return
    try:
        found = faults(compiled_schema(schema), literal)
    except (PluginError, CodecError):
        return  # the tool's own schema is broken; its set is told where it is loaded
    for fault in found:
        at = Place((*place, *fault.path))
        yield finding("bind.arg_type", at, one.id, f"{spec.name} does not take this: {fault.message}.")
