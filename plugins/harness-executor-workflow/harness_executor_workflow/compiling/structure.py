"""Phase 4: a plan goes in; ids, needs, targets and loops that do not hold together come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from harness_executor_workflow.plan.graph import ENDS, cycles, edges_of
from harness_hookspecs.workflow import PlanFinding

from .findings import Place, did_you_mean, finding
from .plans import Located, Plan

__all__ = ["check_structure"]


def check_structure(plan: Plan) -> Iterator[PlanFinding]:
    """Look at every body; loops only where everything in it leads somewhere."""
    yield from _doubled(plan)
    yield from _sensitive(plan)
    yield from _last_step(plan)
    for body in plan.bodies.values():
        astray = False
        for one in chain(_needs(plan, body), _targets(plan, body)):  # no more of them than are told
            astray = True
            yield one
        if not astray:
            yield from _loops(body)


def _doubled(plan: Plan) -> Iterator[PlanFinding]:
    for one in plan.all:
        first = plan.steps[one.id]
        if first is not one:
            message = f"The id {one.id} is taken by {first.place}; ids are unique in the whole plan."
            yield finding("step.duplicate_id", one.place / "id", one.id, message, f"call it {one.id}_2")


def _needs(plan: Plan, body: Sequence[Located]) -> Iterator[PlanFinding]:
    for one in body:
        for number, need in enumerate(one.needs):
            place = one.place / "needs" / number
            yield from _astray("step.missing_dependency", plan, one, (place, need, "needs"))


def _targets(plan: Plan, body: Sequence[Located]) -> Iterator[PlanFinding]:
    for one in body:
        for place, target in _led(one):
            if target not in ENDS:
                yield from _astray("decision.target_not_in_scope", plan, one, (place, target, "leads to"))


def _led(one: Located) -> Iterator[tuple[Place, str]]:
    if one.uses == "decision":
        for number, case in enumerate(one.settings["cases"]):
            yield one.place / "with" / "cases" / number / "to", str(case["to"])
        yield one.place / "with" / "default", str(one.settings["default"])
    elif one.on_failure is not None:
        yield one.place / "onFailure" / "to", one.on_failure


def _astray(code: str, plan: Plan, one: Located, link: tuple[Place, str, str]) -> Iterator[PlanFinding]:
    place, other, verb = link
    found = plan.steps.get(other)
    if found is None:
        hint = did_you_mean(other, (near.id for near in plan.bodies[one.parent] if near is not one))
        yield finding(code, place, one.id, f"{one.id} {verb} {other}, and there is no such step.", hint)
    elif found.parent != one.parent and other not in plan.doubled:
        where = "on the plan's own level" if found.parent is None else f"in the body of {found.parent}"
        message = f"{one.id} {verb} {other}, which is {where}."
        yield finding(code, place, one.id, message, "steps of one body need and lead to each other only")


def _sensitive(plan: Plan) -> Iterator[PlanFinding]:
    for one in plan.all:
        if one.data.get("sensitive"):
            message = f"{one.id} is sensitive; its output would stand in the log all the same."
            yield finding("step.sensitive", one.place / "sensitive", one.id, message, "plan without this step")


def _last_step(plan: Plan) -> Iterator[PlanFinding]:
    last = plan.last_step
    if last is None:
        return
    top = {one.id: one for one in plan.bodies[None]}
    if last not in top:
        message = f"finally names {last}, which is no step of the plan's own level."
        yield finding("finally.unknown_step", Place(("finally",)), None, message, did_you_mean(last, top))
        return
    yield from _apart(top.values(), top[last])


def _apart(body: Iterable[Located], last: Located) -> Iterator[PlanFinding]:
    code, hint = "finally.not_apart", "it runs once, at the end, by itself"
    if last.uses == "decision":
        message = f"{last.id} is a decision, and nothing comes after it."
        yield finding("finally.decision", last.place / "uses", last.id, message, "decide before")
    for one in body:
        links = [(one.place / "needs" / number, need) for number, need in enumerate(one.needs)]
        for place, other in [*links, *_led(one)]:
            if other not in ENDS and last.id in (one.id, other):
                message = f"{last.id} is the finally step; {one.id} and {other} have nothing to do with each other."
                yield finding(code, place, one.id, message, hint)


def _loops(body: Sequence[Located]) -> Iterator[PlanFinding]:
    steps = {one.id: one for one in body}
    edges = edges_of([one.model for one in body])
    working = [one.id for one in body if one.uses != "decision"]
    by_needs = [edge for edge in edges if edge.kind == "needs"]
    closed = [*cycles(steps, by_needs), *cycles(working, [edge for edge in edges if {*edge[:2]} <= {*working}])]
    told: set[str] = set()
    for circle in closed:
        if not circle <= told:
            told |= circle
            yield _closed(min((steps[one] for one in circle), key=lambda one: one.place), circle)
    for circle in cycles(steps, edges):
        for one in body:
            if one.id in circle and not circle & told and one.max_visits < 2:
                message = f"{one.id} is part of the loop {_shown(circle)} and may be visited once only."
                hint = "set maxVisits to how often the loop may turn, on every step of it"
                yield finding("lwir.cycle_step_single_visit", one.place, one.id, message, hint)


def _closed(first: Located, circle: frozenset[str]) -> PlanFinding:
    message = f"{_shown(circle)} wait for each other in a circle, and no decision leads back."
    hint = "take a need away, or let a decision lead back to the first step of the loop"
    return finding("lwir.cycle_without_decision", first.place, first.id, message, hint)


def _shown(circle: frozenset[str]) -> str:
    return ", ".join(sorted(circle))
