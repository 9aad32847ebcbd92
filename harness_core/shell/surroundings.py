"""A stage and the parts of its session in, what there is where its plans are to run out, for a compiler to check."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.definition import StagePlan
from harness_hookspecs.host import Processes

from .parts import Parts

if TYPE_CHECKING:  # with all models of a plan, which few sessions have
    from harness_hookspecs.compiler import Surroundings

    from .config.effective import EffectiveConfig
    from .plugins.catalogue import Catalogue
    from .session_parts import SessionParts

__all__ = ["PlanSite", "plan_site", "surroundings_of"]


@attrs.frozen
class PlanSite:
    """What of a host plans are checked against, beside what their stage has.

    Attributes:
        built_by: Name of a tool set -> id and version of its plugin.
        rules_module: The plugin of the rules engine, as a child process imports it.
        rules_name: The engine's offer.
        rules_settings: What it is built with, as plain JSON.
    """

    built_by: Mapping[str, str]
    rules_module: str
    rules_name: str
    rules_settings: Mapping[str, Any]


def plan_site(parts: Parts, catalogue: Catalogue, config: EffectiveConfig) -> PlanSite:
    """What was built for a session, as far as a plan depends on it."""
    built = parts.built()
    [rules] = [part.need for part in built if part.need.kind == "rules"]
    found = catalogue.resolve("rules", rules.name)
    name = found.provided.name
    settings = config.settings_for("rules", name, found.provided.config)
    tools = {part.need.key[1]: f"{part.plugin_id}@{part.plugin_version}" for part in built if part.need.kind == "tool"}
    return PlanSite(tools, found.row.record.module, name, settings)


def surroundings_of(stage: StagePlan, parts: SessionParts, processes: Processes, definition: Any) -> Surroundings:
    """What there is for a plan of that stage.

    Args:
        stage: Its tools, as far as its model can use them, are those that the plan may call.
        parts: What the session runs with; its models are the slots.
        processes: Tries what a model wrote.
        definition: The wire form of the definition that the plan is written for, or ``None``.
    """
    from harness_hookspecs.compiler import KnownModel, KnownTool, Surroundings, Trial
    from harness_hookspecs.workflow import WorkflowDefinitionSnapshot

    site = parts.plans
    assert site is not None, "a session that runs has one"
    tools = parts.toolbox.allowed(stage.allowed_tools, stage.model.capabilities)
    return Surroundings(
        rules=parts.definition.rules,
        models={name: KnownModel(one.provider_name, one.model_id) for name, one in parts.models.items()},
        tools={
            name: KnownTool(tool.spec, tool.tier, tool.schema_hash, site.built_by.get(tool.set_name, tool.set_name))
            for name, tool in tools.items()
        },
        definition=None if definition is None else WorkflowDefinitionSnapshot.from_wire(definition),
        trial=Trial(processes, site.rules_module, site.rules_name, dict(site.rules_settings), tuple(sys.path)),
    )
