"""Outputs: a plan and the shapes of its templates go in; what could never be as its own schema says comes out.

Only what no run could give is refused: a literal that the schema does not take, a value of another kind. What data
decide is for the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, NamedTuple

from harness_hookspecs.compiler import Surroundings
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema
from harness_hookspecs.workflow import PlanFinding

from .arguments import fits
from .findings import Place, finding
from .plans import Located, Plan
from .shapes import UNTYPED, Shape, kinds, missing

__all__ = ["check_outputs"]

_CODE = "output.type"
_OF_MODE = {"text": "string", "object": "object", "array": "array", "choice": "string"}


class _Known(NamedTuple):
    """The templates of the plan's output by their places, and the places above them."""

    shapes: Mapping[Place, Shape]
    above: Set[tuple[str | int, ...]]


def check_outputs(plan: Plan, surroundings: Surroundings, shapes: Mapping[Place, Shape]) -> Iterator[PlanFinding]:
    """Look at the output of each step, then at that of the plan."""
    for one in plan.all:
        yield from _of_step(one, surroundings)
    output, root = plan.data["output"], Place(("output", "value"))
    mine = {place: shape for place, shape in shapes.items() if place[:2] == root}
    known = _Known(mine, {place[:length] for place in mine for length in range(2, len(place))})
    for place, message in _flaws(root, output["value"], output["schema"], known):
        yield finding(_CODE, place, None, message)


def _of_step(one: Located, surroundings: Surroundings) -> Iterator[PlanFinding]:
    output = one.data.get("output") or {}
    kind, place = _OF_MODE.get(output.get("mode", "")), one.place / "output"
    if kind is None:
        return
    if kind not in kinds(output.get("schema", True)):
        message = f"The mode {output['mode']} asks for {kind}; the schema is of {missing(output['schema'])}."
        yield finding(_CODE, place / "schema", one.id, message)
        return
    tool = surroundings.tools.get(one.settings.get("tool", "")) if one.uses == "tool.call" else None
    given = None if tool is None else tool.spec.output_schema
    if isinstance(given, Mapping | bool) and not fits(given, {"type": kind}):
        message = f"{one.settings['tool']} gives {missing(given)}; the mode {output['mode']} asks for {kind}."
        yield finding(_CODE, place / "mode", one.id, message, "write another mode")


def _flaws(place: Place, value: Any, wanted: Any, known: _Known) -> Iterator[tuple[Place, str]]:
    """What keeps a value from ever being what a data schema takes."""
    shape = known.shapes.get(place)
    if shape is not None:
        if shape != UNTYPED and not fits(shape, wanted):
            yield place, f"The output should be {missing(wanted)}; this gives {missing(shape)}."
    elif place in known.above:
        yield from _within(place, value, wanted, known)
    else:
        fault = best_fault(compiled_schema(wanted), value)
        if fault is not None:
            yield Place((*place, *fault.path)), f"The output is not what the plan promises: {fault.message}."


def _within(place: Place, value: Any, wanted: Any, known: _Known) -> Iterator[tuple[Place, str]]:
    """The same of an object or an array with templates in it."""
    kind, schema = "object" if isinstance(value, Mapping) else "array", wanted if isinstance(wanted, Mapping) else {}
    if kind not in kinds(wanted):
        yield place, f"The output should be {missing(wanted)}; this is {kind}."
    elif isinstance(value, Mapping):
        lacking = [name for name in schema.get("required", ()) if name not in value]
        yield from ((place, f"The output lacks {name}, which its schema requires.") for name in lacking)
        named, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, inner in value.items():
            yield from _flaws(place / name, inner, named.get(name, others), known)
    else:
        for number, inner in enumerate(value):
            yield from _flaws(place / number, inner, schema.get("items", True), known)
