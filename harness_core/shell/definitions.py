"""The workflows that a configuration defines in, the frozen contracts that their plans must keep out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from harness_core.kernel.definition import ModelPlan, StagePlan
from harness_core.settings.stages import Stage
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.value import thaw
from harness_hookspecs.workflow_definition import Slot, WorkflowDefinition

from .config.effective import EffectiveConfig
from .parts import Need, Parts
from .session_parts import SessionParts
from .surroundings import slots_of
from .toolbox import Toolbox

__all__ = [
    "ORCHESTRATES", "RUNS_PLANS", "slots_wanted", "snapshot_wire", "tools_of_workflows", "with_plans", "with_workflows",
    "workflow_needs", "workflow_wire",
]  # fmt: skip

ORCHESTRATES: Final = "orchestrate"
"""The executor whose stages may plan and run workflows."""

RUNS_PLANS: Final = ("workflow", "json")
"""The executor of a session that plans or runs one, and the type of what it comes to."""


def workflow_needs(config: EffectiveConfig) -> list[Need]:
    """What the sessions of workflows need; nothing where none is defined."""
    if not config.stages.workflows:
        return []
    executor, artifact = RUNS_PLANS
    return [Need("executor", executor, where="workflows"), Need("artifact", artifact, where="workflows")]


def tools_of_workflows(config: EffectiveConfig) -> list[tuple[str, Sequence[str]]]:
    """The tools that plans may use, each with the place where that is said."""
    return [(_where(config, name, "tools"), one.tools) for name, one in config.stages.workflows.items()]


def slots_wanted(config: EffectiveConfig) -> set[str]:
    """The models that plans and definitions of workflows name, as far as there are such models."""
    defined = config.stages.workflows.values()
    named = [slot.bind or name for one in defined for name, slot in one.models.items()]
    named += [slot for stage in config.stages.stages.values() for slot in slots_of(stage.plan)]
    return {slot for slot in named if slot in config.models.models}


def with_workflows(parts: SessionParts, config: EffectiveConfig, built: Parts) -> SessionParts:
    """The parts of a session with the workflows that its stages may begin, and what those sessions run with.

    Raises:
        ConfigError: ``config.no_workflow``: a stage names one that is none; ``config.no_model``: nobody
            fits a model that one names; ``config.tool_not_allowed``.
    """
    if not config.stages.workflows:
        return parts
    stages = dict(parts.definition.stages)
    for name, stage in config.stages.stages.items():
        if stage.workflow is not None:
            stages[name] = _planned(stages[name], stage.workflow, parts, config)
    slots: dict[tuple[str, str], Mapping[str, str]] = {}
    for name, stage in _orchestrating(config).items():
        found = tuple(_workflows(name, stage, parts, config))
        stages[name] = attrs.evolve(stages[name], workflows=found)
        for one in found:
            of = one["workflowId"]
            slots[name, of] = _bound(of, one["modelSlots"], config, stages[name].model)
    initial = parts.definition.initial
    for of in config.stages.workflows:  # a session may be begun for it alone
        with suppress(ConfigError):  # which is said when it is
            default = stages[initial].model
            slots[initial, of] = _bound(of, config.stages.workflows[of].models or (default.name,), config, default)
    parts = with_plans(parts, built)
    return attrs.evolve(
        parts,
        definition=attrs.evolve(parts.definition, stages=stages),
        slots=slots,
        sketched=frozenset(n for n, one in config.stages.workflows.items() if one.planner.form == "sketch"),
    )


def with_plans(parts: SessionParts, built: Parts) -> SessionParts:
    """The parts of a session with what runs plans."""
    executor, artifact = RUNS_PLANS
    executors = {**parts.definition.executors, executor: built.get(Need("executor", executor, where="workflows"))}
    return attrs.evolve(
        parts,
        definition=attrs.evolve(parts.definition, executors=executors),
        artifacts={**parts.artifacts, artifact: built.get(Need("artifact", artifact, where="workflows"))},
    )


def workflow_wire(name: str, parts: SessionParts, config: EffectiveConfig, *, stage: str) -> dict[str, Any]:
    """The contract of a workflow of the configuration, for a session that is begun for it in the place of that stage.

    Raises:
        ConfigError: ``config.no_model``: nobody fits a model that it names.
    """
    default = parts.definition.stages[stage].model
    return _snapshot(name, parts, config, default=default, where=_where(config, name))


def _orchestrating(config: EffectiveConfig) -> dict[str, Stage]:
    stages = config.stages.stages.items()
    return {name: one for name, one in stages if one.executor.rpartition(":")[2] == ORCHESTRATES}


def _workflows(name: str, stage: Stage, parts: SessionParts, config: EffectiveConfig) -> Iterator[dict[str, Any]]:
    defined, default = config.stages.workflows, parts.definition.stages[name].model
    where = config.origin(("stages", name, "workflows")).text()
    for one in defined if stage.workflows is None else stage.workflows:
        yield _snapshot(one, parts, config, default=default, where=where)


def _snapshot(
    name: str, parts: SessionParts, config: EffectiveConfig, *, default: ModelPlan, where: str
) -> dict[str, Any]:
    """A workflow that a stage names at that place."""
    defined = config.stages.workflows
    if name not in defined:
        known = ", ".join(defined) or "none"
        raise ConfigError(f"there is no workflow {name}; workflows: {known}", code="config.no_workflow", where=where)
    _bound(name, defined[name].models, config, default)
    return snapshot_wire(name, defined[name], parts.toolbox, default=default.name)


def _bound(name: str, slots: Iterable[str], config: EffectiveConfig, default: ModelPlan) -> dict[str, str]:
    """Who answers for each model that plans of the workflow may name.

    Raises:
        ConfigError: ``config.no_model``: who should is none, or cannot do what the workflow asks for.
    """
    found, said = {}, config.stages.workflows[name].models
    for slot in slots:
        asked = said.get(slot, Slot())
        entry = asked.bind or (slot if slot in config.models.models else default.name)
        known = config.models.models.get(entry)
        lacking = [one for one in asked.capabilities if known is None or one not in known.capabilities]
        if known is None or lacking:
            why = "there is no such model" if known is None else f"it cannot do {', '.join(lacking)}"
            models = ", ".join(config.models.models) or "none"
            message = f"workflow {name} has the model {slot}, for which {entry} would answer; {why}; models: {models}"
            hint = "name one that fits under bind"
            where = _where(config, name, "models", slot)
            raise ConfigError(message, code="config.no_model", where=where, hint=hint)
        found[slot] = entry
    return found


def _planned(plan: StagePlan, workflow: str, parts: SessionParts, config: EffectiveConfig) -> StagePlan:
    """The stage with the workflow that its plan is written for. Of its tools it keeps those that the workflow names,
    and the workflow names none that it does not allow: the planner would be told of what no plan may use.
    """
    where = config.origin(("stages", plan.name, "workflow")).text()
    snapshot = _snapshot(workflow, parts, config, default=plan.model, where=where)
    tools, allowed = snapshot["permissions"]["tools"], parts.toolbox.named(plan.allowed_tools)
    missing = [name for name in tools if name not in allowed]
    if missing:
        raise ConfigError(
            f"stage {plan.name} runs the workflow {workflow}, whose plans may use {', '.join(missing)}, "
            "which the stage does not allow",
            code="config.tool_not_allowed",
            where=where,
            hint="add it to allowed_tools of the stage, or take it out of tools of the workflow",
        )
    told = snapshot["workers"].get("system") or plan.system
    form = config.stages.workflows[workflow].planner.form
    slots = _bound(workflow, snapshot["modelSlots"], config, plan.model)
    return attrs.evolve(
        plan, definition=snapshot, plan_form=form, slots=slots, allowed_tools=tuple(tools), system=told
    )


def _where(config: EffectiveConfig, name: str, *key: str) -> str:
    return config.origin(("workflows", name, *key)).text()


def snapshot_wire(
    name: str, definition: WorkflowDefinition, toolbox: Toolbox, *, default: str
) -> dict[str, Any]:
    """The wire form of its ``WorkflowDefinitionSnapshot``.

    Args:
        name: The workflow.
        definition: What the configuration says of it.
        toolbox: The tools that there are; each is named with the hash of its schema.
        default: The model where it names none.
    """
    told_of: dict[str, Any] = {"mode": "json", "exclude_none": True, "exclude": {"bind"}}
    slots = {name: slot.model_dump(**told_of) for name, slot in definition.models.items()}
    slots = slots or {default: {"capabilities": []}}
    tools, planner = toolbox.named(definition.tools), definition.planner
    told = {} if planner.system is None else {"system": planner.system}
    wire: dict[str, Any] = {
        "workflowId": name,
        "name": name,
        "inputSchema": thaw(definition.input),
        "outputSchema": thaw(definition.output),
        "modelSlots": slots,
        "permissions": {"models": sorted(slots), "tools": sorted(tools), **_wire(definition.permissions)},
        "planner": {"maxRepairs": planner.max_repairs, **told},
        "workers": definition.workers.model_dump(mode="json", exclude_none=True),
        "memory": [_wire(one) for one in definition.memory],
        "limits": _wire(definition.limits),
    }
    if definition.bash is not None:
        wire["bash"] = _wire(definition.bash)
    if definition.description is not None:
        wire["description"] = definition.description
    return {**wire, "definitionHash": digest(wire), "tools": [tool.reference() for tool in tools.values()]}


def _wire(settings: BaseModel) -> dict[str, Any]:
    """The settings as the wire has them."""
    return _in_camel_case(settings.model_dump(mode="json", exclude_none=True))


def _in_camel_case(value: dict[str, Any]) -> dict[str, Any]:
    return {to_camel(key): _in_camel_case(one) if isinstance(one, dict) else one for key, one in value.items()}
