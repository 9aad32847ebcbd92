"""Phase 10: a plan goes in; parallel steps that could not run, and fixers where there is nothing to fix, come out."""

from __future__ import annotations

from collections.abc import Iterator

from harness_executor_workflow.plan.templates import parse as parse_template
from harness_hookspecs.workflow import PlanFinding

from .findings import did_you_mean, finding
from .plans import Located, Plan
from .scene import output_step
from .shapes import UNTYPED, element, kinds, missing
from .tree import ListOf, parse
from .uses import Judged

__all__ = ["MAX_NESTING", "check_fan_out"]

MAX_NESTING = 2
"""How deeply parallel steps may be nested."""


def check_fan_out(plan: Plan, judged: Judged) -> Iterator[PlanFinding]:
    """Look at every parallel step and every fixer."""
    for one in plan.all:
        if "fixer" in one.data.get("onFailure", {}) and one.uses != "code.run":
            message = f"{one.id} is a {one.uses} step; a fixer repairs source, which only code.run has."
            place = one.place / "onFailure" / "fixer"
            yield finding("fixer.only_code_run", place, one.id, message, "use retry, or onFailure with to")
        if one.uses == "parallel":
            yield from _width(plan, one)
            yield from _output_step(plan, one)
            yield from _items(one, judged)


def _width(plan: Plan, one: Located) -> Iterator[PlanFinding]:
    branches, at_once = one.settings["maxBranches"], one.settings["maxConcurrency"]
    if at_once > branches:
        message = f"maxConcurrency {at_once} is larger than maxBranches {branches}."
        place = one.place / "with" / "maxConcurrency"
        yield finding("parallel.concurrency_exceeds_branches", place, one.id, message, f"set it to {branches}")
    depth = len(plan.around(one.id))
    if depth > MAX_NESTING:
        message = f"{one.id} lies in {depth - 1} parallel steps; at most {MAX_NESTING} may be nested."
        yield finding("parallel.nested_too_deep", one.place, one.id, message, "make one list of the items before")


def _output_step(plan: Plan, one: Located) -> Iterator[PlanFinding]:
    named = one.settings.get("fanIn", {}).get("outputStep")
    if named is None:
        return
    found, place = output_step(plan, one), one.place / "with" / "fanIn" / "outputStep"
    if found is None:
        hint = did_you_mean(named, (inner.id for inner in plan.bodies[one.id]))
        message = f"{named} is no step of the body of {one.id}."
        yield finding("parallel.bad_output_step", place, one.id, message, hint)
    elif found.uses == "decision":
        message = f"{named} is a decision and has no output."
        yield finding("parallel.bad_output_step", place, one.id, message, "name a step that it leads to")


def _items(one: Located, judged: Judged) -> Iterator[PlanFinding]:
    place = one.place / "with"
    shape, whole = judged.shapes.get(place / "items"), parse_template(one.settings["items"]).whole
    listed = None if whole is None else parse(whole.text)
    if isinstance(listed, ListOf) and len(listed.items) > one.settings["maxBranches"]:
        message = f"items has {len(listed.items)} entries; maxBranches is {one.settings['maxBranches']}."
        yield finding("parallel.too_many_items", place / "items", one.id, message, "raise maxBranches")
    if shape is None or whole is None:
        message = "items is the template of one expression, such as {{ input.packages }}."
        yield finding("parallel.items_not_array", place / "items", one.id, message)
    elif shape != UNTYPED and element(shape) is None:
        message = f"items should be an array; it is {missing(shape)}."
        yield finding("parallel.items_not_array", place / "items", one.id, message)
    key = judged.shapes.get(place / "itemKey")
    if "{{" not in one.settings["itemKey"]:
        message = "itemKey is the same for every item; it should be a template that reads item."
        yield finding("parallel.item_key_type", place / "itemKey", one.id, message, "write {{ item.name }}")
    elif key is not None and not kinds(key) & {"string", "integer", "number"}:
        message = f"itemKey should be text or a whole number; it is {missing(key)}."
        yield finding("parallel.item_key_type", place / "itemKey", one.id, message)
