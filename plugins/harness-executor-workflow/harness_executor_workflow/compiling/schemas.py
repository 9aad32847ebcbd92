"""Phase 3: a plan goes in; each of its data schemas that leaves the small subset, or is no schema, comes out.

The subset keeps three things alike: how a value is validated, what a local model is constrained to write, and what is
known of a value before it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.json_schema import compiled_schema
from harness_hookspecs.workflow import PlanFinding

from .findings import Place, did_you_mean, finding
from .plans import Located

__all__ = ["SUBSET", "check_schemas"]

SUBSET: Final = frozenset(
    "type properties required additionalProperties items enum const minimum maximum minLength maxLength "
    "minItems maxItems anyOf oneOf description".split()
)
"""The keywords that a data schema of a plan may use."""

_SCHEMAS: Final = "a list of schemas that is not empty"
_SIZE: Final = "a whole number that is not negative"
_VALUES: Final[Mapping[str, str]] = {
    "type": "null, boolean, integer, number, string, array or object, or a list of these",
    "properties": "an object of schemas",
    "required": "a list of different names",
    "additionalProperties": "a schema",
    "items": "a schema",
    "enum": "a list of values",
    "minimum": "a number",
    "maximum": "a number",
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _SIZE),
    **dict.fromkeys(("anyOf", "oneOf"), _SCHEMAS),
    "description": "text",
}


def check_schemas(plan: Mapping[str, Any], steps: Iterable[Located]) -> Iterator[PlanFinding]:
    """Look at the schemas of input and output, and of every step's output.

    Args:
        plan: The plan's plain JSON.
        steps: Its steps, bodies included.
    """
    for part in ("input", "output"):
        yield from _check(plan[part]["schema"], Place((part, "schema")), None)
    for one in steps:
        output = one.data.get("output") or {}
        if "schema" in output:
            yield from _check(output["schema"], one.place / "output" / "schema", one.id)


def _check(schema: Any, place: Place, step: str | None) -> Iterator[PlanFinding]:
    unknown = False
    for one in _unsupported(schema, place, step):  # no more of them than are told
        unknown = True
        yield one
    if unknown or isinstance(schema, bool):
        return
    try:
        compiled_schema(schema)
    except PluginError as error:
        at = Place((*place, *(error.where or "").split("/")[1:]))
        yield finding("schema.invalid", at, step, _told(at[len(place) :]))


def _told(way: Sequence[str | int]) -> str:
    """What a part of a schema should be, by the keyword that it stands under, whatever the library says of it."""
    words = [part for part in way if isinstance(part, str)]
    named = len(words) > 1 and words[-2] == "properties"
    if not words or named or words[-1] not in _VALUES:
        return "This is no schema; one is an object, true or false."
    return f"{words[-1]} should be {_VALUES[words[-1]]}."


def _unsupported(schema: Any, place: Place, step: str | None) -> Iterator[PlanFinding]:
    waiting = [(schema, place)]
    while waiting:
        one, at = waiting.pop()
        if not isinstance(one, Mapping):
            continue
        for word, inner in one.items():
            if word not in SUBSET:
                message = f"Data schemas of plans do not have the keyword {word}."
                yield finding("schema.unsupported_key", at / word, step, message, did_you_mean(word, SUBSET))
            else:
                waiting.extend(_below(word, inner, at / word))


def _below(word: str, inner: Any, at: Place) -> Iterator[tuple[Any, Place]]:
    if word in ("items", "additionalProperties"):
        yield inner, at
    elif word == "properties" and isinstance(inner, Mapping):
        yield from ((one, at / name) for name, one in inner.items())
    elif word in ("anyOf", "oneOf") and isinstance(inner, list):
        yield from ((one, at / number) for number, one in enumerate(inner))
