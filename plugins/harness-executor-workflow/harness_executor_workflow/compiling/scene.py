"""What may be read where: a plan goes in; each place's roots, and the steps to be read with their shapes, come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .diagrams import Conditions, TooManyConditions
from .findings import did_you_mean
from .flow import Flow, Known
from .guards import Fact
from .judge import Flaw
from .plans import Located, Plan
from .shapes import ANY, UNTYPED, Shape, either

__all__ = ["ACCESSORS", "ERROR", "View", "World", "output_step"]

ACCESSORS: Final = ("output", "last", "all", "error")

_STRING: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_NULL: Final = {"type": "null"}
_VISIT: Final = {"type": "object", "required": ["index"], "properties": {"index": _WHOLE}}
_RUN: Final = {"type": "object", "required": ["attempt", "id"], "properties": {"id": _STRING, "attempt": _WHOLE}}

ERROR: Final = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": _STRING, "message": _STRING},
}
"""The shape of ``steps.x.error``."""


class World:
    """A plan and what is known of its values; the conditions of a body are worked out when they are first asked for."""

    def __init__(self, plan: Plan) -> None:
        self.plan: Final = plan
        self.items: Final[dict[str, Shape]] = {}
        """The shape of an item, for each parallel step; filled in by who judges ``items``."""
        self._conditions = Conditions()
        self._flows: dict[str | None, Flow | None] = {}

    def flow(self, parent: str | None) -> Flow | None:
        """The conditions of a body; None where they cannot be followed."""
        if parent not in self._flows:
            apart = self.plan.last_step if parent is None else None
            try:
                self._flows[parent] = Flow(self.plan.bodies[parent], conditions=self._conditions, apart=apart)
            except TooManyConditions:
                self._flows[parent] = None
        return self._flows[parent]

    def roots(self, one: Located | None) -> dict[str, Shape]:
        """The roots at a step; without a step, at the plan's output."""
        found = {"input": self.plan.data["input"]["schema"], "run": _RUN}
        if one is not None:
            found["visit"] = _VISIT
            if one.parent is not None:
                found["item"] = self.items.get(one.parent, ANY)
        return found

    def output(self, one: Located) -> Shape:
        """The shape of a step's output."""
        contract = one.data.get("output")
        if one.uses == "parallel":
            return self._envelopes(one)
        if contract is None:
            return UNTYPED if one.settings.get("event") else _NULL
        return _shape_of(contract)

    def _envelopes(self, one: Located) -> Shape:
        """What a parallel step gives: one envelope a branch."""
        inner = output_step(self.plan, one)
        shape = self.output(inner) if inner is not None and inner.uses != "decision" else ANY
        properties = {
            "itemKey": _STRING,
            "status": {"type": "string", "enum": ["completed", "failed"]},
            "output": either([shape, _NULL]),  # null where the branch failed, or its output step was skipped
            "error": {"anyOf": [ERROR, _NULL]},
            "artifacts": {"type": "array"},
        }
        return {"type": "array", "items": {"type": "object", "required": sorted(properties), "properties": properties}}


def output_step(plan: Plan, one: Located) -> Located | None:
    """The step of a body whose output is the branch's: the one that ``fanIn`` names, or the last one."""
    body = plan.bodies.get(one.id, [])
    named = one.settings.get("fanIn", {}).get("outputStep")
    if named is None:
        return body[-1] if body else None
    return next((inner for inner in body if inner.id == named), None)


def _shape_of(contract: Mapping[str, Any]) -> Shape:
    mode, schema = contract["mode"], contract.get("schema")
    if mode == "text":
        return _STRING
    if mode == "choice":
        return {"type": "string", "enum": list(contract["values"])}
    if schema is None:
        return UNTYPED
    return {"type": mode} if schema is True and mode != "json" else schema


class View:
    """The scene of one place: what ``Judge`` asks."""

    def __init__(self, world: World, reader: Located | None, roots: Mapping[str, Shape]) -> None:
        self.roots: Final = roots
        self._world = world
        self._reader = reader
        around = () if reader is None else world.plan.around(reader.id)
        self._in_body: dict[str | None, str] = {world.plan.steps[one].parent: one for one in around}

    def steps(self) -> list[str]:
        """The steps of this body and of those around it."""
        return [one.id for one in self._world.plan.steps.values() if self._is_near(one)]

    def step(self, step: str) -> Flaw | None:
        """Why the step cannot be read here: it is not there, hidden, or does not come before."""
        one = self._world.plan.steps.get(step)
        if one is None:
            return Flaw("ref.unknown_step", f"There is no step {step}.", did_you_mean(step, self.steps()))
        if not self._is_near(one):
            message = f"{step} is in the body of {one.parent} and cannot be read from outside."
            return Flaw("ref.unknown_step", message, f"read steps.{one.parent}.output, the outputs of all branches")
        reader = self._in_body.get(one.parent)
        flow = self._world.flow(one.parent)
        if reader is None or flow is None or flow.comes_after(reader, step):
            return None
        whose = "itself" if reader == step else f"{step}, and does not come after it"
        return Flaw("ref.undeclared_dependency", f"{reader} reads {whose}.", f"add {step} to the needs of {reader}")

    def accessor(self, step: str, accessor: str) -> Shape | Flaw:
        """The shape of what is read."""
        one = self._world.plan.steps[step]
        if one.uses == "decision":
            hint = "read what the decision read, or the steps that it leads to"
            return Flaw("ref.decision_has_no_output", f"{step} is a decision and has no output.", hint)
        if accessor not in ACCESSORS:
            message = f"`steps.{step}.{accessor}` does not exist."
            return Flaw("ref.bad_accessor", message, f"write steps.{step}.{'last' if one.max_visits > 1 else 'output'}")
        if accessor == "error":
            return ERROR if one.on_failure not in (None, "fail") else _no_error(step)
        if accessor in ("all", "last") and one.max_visits == 1:
            message = f"{step} is visited once, so it has an output and no `{accessor}`."
            return Flaw("ref.bad_accessor", message, f"write steps.{step}.output")
        if accessor == "output" and one.max_visits > 1:
            message = f"{step} may be visited {one.max_visits} times, so output does not say which visit is meant."
            return Flaw("ref.ambiguous_multi_visit", message, f"write steps.{step}.last or steps.{step}.all")
        shape = self._world.output(one)
        return {"type": "array", "items": ANY if shape == UNTYPED else shape} if accessor == "all" else shape

    def unset(self, step: str, accessor: str, facts: tuple[Fact, ...]) -> Flaw | None:
        """Why a read may find nothing: some way through the plan leads here without the step."""
        one = self._world.plan.steps[step]
        reader = self._in_body.get(one.parent)
        flow = self._world.flow(one.parent)
        code = "output.maybe_unset" if self._reader is None else "ref.maybe_unset"
        why = "may have been skipped"
        try:
            if flow is not None and flow.is_set_for(reader, step, accessor, self._known(facts, one.parent)):
                return None
        except TooManyConditions:
            flow = None
        if flow is None:
            why = "depends on more choices than can be followed, so it may have been skipped"
        path = f"steps.{step}.{accessor}"
        return Flaw(code, f"{step} {why} when `{path}` is read.", f"write has({path}) ? {path} : ...")

    def _is_near(self, one: Located) -> bool:
        return one.parent is None or one.parent in self._in_body

    def _known(self, facts: Iterable[Fact], parent: str | None) -> list[Known]:
        steps = self._world.plan.steps
        return [
            Known(fact.path[1], fact.path[2], fact.is_set)
            for fact in facts
            if len(fact.path) == 3 and fact.path[0] == "steps" and fact.path[2] in ACCESSORS
            and fact.path[1] in steps and steps[fact.path[1]].parent == parent
        ]  # fmt: skip


def _no_error(step: str) -> Flaw:
    message = f"`steps.{step}.error` is never set: a failure of {step} ends the run."
    return Flaw("ref.bad_accessor", message, f"give {step} an onFailure with to")
