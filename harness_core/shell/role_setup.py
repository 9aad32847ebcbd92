"""What a role call is made of, as the session resolves it: who answers, with which model, from where, how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSet
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from harness_hookspecs.errors import RoleError
from harness_hookspecs.role import DescribesPrompt, ExecuteStepTask, FixStepTask, PlanTask, RoleHarness, RoleTask
from harness_hookspecs.rules import Rules
from harness_hookspecs.workflow import CodeRunStep, DecisionStep

from .child_tools import child_tools
from .dispatcher import CallSite
from .earlier_calls import Earlier
from .engines import Engines
from .model_handle import ModelEntry
from .perform_attempt import attempt
from .role_task import answer_schema, slot_of, tools_of

__all__ = ["BoundRole", "RoleCallSetup", "Slot"]


@attrs.frozen
class BoundRole:
    """A role harness as bound: who it is and whether it is the default."""

    plugin: str
    version: str
    offer: str
    default: bool
    harness: RoleHarness
    describes: DescribesPrompt | None = attrs.field(init=False)

    @describes.default
    def _find_description(self) -> DescribesPrompt | None:
        return self.harness if isinstance(self.harness, DescribesPrompt) else None


class Slot(NamedTuple):
    """A model that steps of a plan name instead of the stage's own, and what it is asked with."""

    model: ModelEntry
    params: Mapping[str, Any]


@attrs.frozen
class RoleCallSetup:
    """Everything a role call is made of, resolved by the session."""

    session_id: str
    parent_id: str | None
    role: BoundRole
    default_role: BoundRole | None
    model: ModelEntry
    site: CallSite
    params: Mapping[str, Any]
    attempt: int
    system: str | None
    log_dir: Path
    parallel_tools: int
    known_manifests: MutableSet[str]
    rules: Rules
    engines: Engines | None = None
    slots: Mapping[str, Slot] = {}
    slot: str | None = None  # what a plan calls the model
    plan_schema: Callable[[Any], Mapping[str, Any] | None] | None = None  # of what a planner writes for a definition
    earlier: Earlier = attrs.field(factory=dict)  # results that a repaired run of code is given again

    def for_task(self, task: RoleTask, *, begun: bool = False) -> RoleCallSetup:
        """The same with the model and the tools that a task names; mostly they are the stage's, and nothing is made.

        An orchestration has the stage's tools and those that begin child sessions. A call that has begun with a model
        that is gone since gets the stage's: its manifest is then another one, which is met as drift before it asks.

        Raises:
            RoleError: ``role.no_model`` where the model is gone; or as :func:`.child_tools.child_tools`.
        """
        found = self._asking(slot_of(task), begun=begun)
        tools = tools_of(task, self.site.tools, found.model.capabilities)
        children = child_tools(task, tools)
        if children is not None:
            both = {**tools, **children.tools}
            return attrs.evolve(found, site=attrs.evolve(self.site, tools=both, children=children))
        return found if tools is self.site.tools else attrs.evolve(found, site=attrs.evolve(self.site, tools=tools))

    def answer_schema(self, task: RoleTask, wire: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the answer of a model is held to; that of a planner, to the words of who will check it."""
        if isinstance(task, PlanTask):
            return None if self.plan_schema is None else self.plan_schema(wire["workflowSnapshot"])
        return answer_schema(task)

    def _asking(self, name: str | None, *, begun: bool) -> RoleCallSetup:
        """The same with the model of that name: no other one answers for it, whose words would pass for its own."""
        slot = None if name is None else self.slots.get(name)
        if name is None or (slot is None and (begun or name == self.model.name)):
            return self
        if slot is None:
            known = ", ".join(sorted({self.model.name, *self.slots}))
            raise RoleError(
                f"the step names the model {name}, which is not here; models: {known}",
                code="role.no_model",
                hint=f"put {name} back into models.yaml, or run a plan that names another one",
            )
        return attrs.evolve(self, slot=name, model=slot.model, params=slot.params)

    def run_by(self, task: RoleTask) -> dict[str, str]:
        """What runs a step that asks no model, as its manifest names it; nothing where nothing does."""
        step = task.step if isinstance(task, ExecuteStepTask | FixStepTask) else None
        if isinstance(step, DecisionStep):
            return _named("rules", attempt(lambda: self.rules.version, what="the rule engine").value)
        if isinstance(step, CodeRunStep) and self.engines is not None:
            bound = attempt(self.engines.code, step.with_.engine, what="what finds the engine").value
            return _named("engine", bound and bound.label)
        return {}


def _named(field: str, name: object) -> dict[str, str]:
    """Whoever uses what has no name will say what is wrong with it."""
    return {field: name} if isinstance(name, str) and name else {}
