"""A stage and the parts of its session in, what there is where its plans are to run out, for a compiler to check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from harness_core.kernel.definition import Limits, StagePlan
from harness_hookspecs.host import Processes
from harness_hookspecs.kit.canonical import read_canonical

from .parts import Parts

if TYPE_CHECKING:  # with all models of a plan, which few sessions have
    from harness_core.settings.harness import RunSettings
    from harness_core.settings.models import ModelEntry
    from harness_hookspecs.compiler import Surroundings

    from .config.effective import EffectiveConfig
    from .plugins.catalogue import Catalogue
    from .session_parts import SessionParts

__all__ = ["PlanSite", "given_by", "limits_of_run", "plan_site", "slots_of", "surroundings_of"]

_IDENTIFYING: Final = ("model", "revision", "sha256")
"""The keys by which providers say which model they ask for, or what is in its file."""


@attrs.frozen
class PlanSite:
    """What of a host plans are checked against, beside what their stage has.

    Attributes:
        built_by: Name of a tool set -> id and version of its plugin.
        models: Name of a configured model -> provider, and what is behind it, of those whose provider no policy
            denies; each is a slot.
        engines: Name of an installed engine for code -> version of its plugin.
        engine: The one that runs code which names none.
        rules_module: The plugin of the rules engine, as a child process imports it.
        rules_name: The engine's offer.
        rules_settings: What it is built with, as plain JSON.
    """

    built_by: Mapping[str, str]
    models: Mapping[str, tuple[str, str]]
    engines: Mapping[str, str]
    engine: str | None
    rules_module: str
    rules_name: str
    rules_settings: Mapping[str, Any]


def plan_site(parts: Parts, catalogue: Catalogue, config: EffectiveConfig, engine: str | None) -> PlanSite:
    """What was built for a session, as far as a plan depends on it."""
    built = parts.built()
    [rules] = [part.need for part in built if part.need.kind == "rules"]
    found = catalogue.resolve("rules", rules.name)
    name = found.provided.name
    settings = config.settings_for("rules", name, found.provided.config)
    tools = {part.need.key[1]: f"{part.plugin_id}@{part.plugin_version}" for part in built if part.need.kind == "tool"}
    denied = config.policies.providers.deny
    known = {name: (one.provider.rpartition(":")[2], _behind(name, one)) for name, one in config.models.models.items()}
    models = {name: (provider, behind) for name, (provider, behind) in known.items() if provider not in denied}
    engines = {one.provided.name: one.row.record.version for one in catalogue.offers_of("engine")}
    return PlanSite(tools, models, engines, engine, found.row.record.module, name, settings)


def _behind(name: str, entry: ModelEntry) -> str:
    """What identifies the model of an entry: a name, or a file, with what it says of its content; else its own name."""
    said = {key: entry.own.get(key) for key in _IDENTIFYING}
    found = [str(value) for value in (said["model"] or entry.path, said["revision"], said["sha256"]) if value]
    return " ".join(found) or name


def given_by(
    stage: StagePlan, prior: Sequence[Mapping[str, Any]], read_blob: Callable[[str], bytes]
) -> dict[str, Any]:
    """What a stage's executor is given of it, and of its attempts before this one, beside what every one is."""
    given: dict[str, Any] = {"plan": stage.plan, "definition": stage.definition, "system": stage.system}
    found = {name: value for name, value in given.items() if value is not None}
    if stage.definition is not None:
        found["goal"] = stage.goal
        if prior:
            found["prior"] = [_cycle(one, read_blob) for one in prior]
        if stage.plan_form != "plan":
            found["plan_form"] = stage.plan_form
    return {**found, "workflows": list(stage.workflows)} if stage.workflows else found


def _cycle(ended: Mapping[str, Any], read_blob: Callable[[str], bytes]) -> dict[str, Any]:
    """An attempt that failed, as who plans again is told of it (A-93)."""
    ref, summary = ended["output_ref"], f"{ended['code']}: {ended['reason']}"
    output = None if ref is None else read_canonical(read_blob(ref))
    return {"cycleNumber": ended["attempt"], "status": "failed", "output": output, "summary": summary}


def limits_of_run(run: RunSettings) -> Limits:
    """How far a session may go."""
    return Limits(
        max_visits=run.max_visits,
        budget_tokens=run.budget.tokens,
        budget_calls=run.budget.calls,
        budget_seconds=run.budget.seconds,
        requests_per_attempt=run.max_requests,
        max_children=run.max_concurrent_sub_runs,
        max_depth=run.max_depth,
    )


def slots_of(plan: Any) -> list[str]:
    """The models that a plan asks for, as far as it can be read; what is wrong with it its compiler says."""
    return _permitted(plan, "models")


def _permitted(plan: Any, what: str) -> list[str]:
    permissions = plan.get("permissions") if isinstance(plan, Mapping) else None
    named = permissions.get(what) if isinstance(permissions, Mapping) else None
    return [name for name in named if isinstance(name, str)] if isinstance(named, Sequence) else []


def _tools_named(plan: Any) -> Iterator[str]:
    """The tools that a plan, or the sketch of one, permits or calls: one that is called and not permitted is there."""
    yield from _permitted(plan, "tools")
    waiting = [plan]
    for one in waiting:  # grows
        if not isinstance(one, Mapping):
            continue
        steps, settings = one.get("steps"), one.get("with")
        waiting += steps if isinstance(steps, list | tuple) else ()
        for said in (one, settings if isinstance(settings, Mapping) else {}):
            named = [said.get("tool"), *(said["tools"] if isinstance(said.get("tools"), list | tuple) else ())]
            yield from (name for name in named if isinstance(name, str))


def surroundings_of(
    plan: Any, stage: StagePlan, parts: SessionParts, processes: Processes | None, *, definition: Any = None
) -> Surroundings:
    """What there is for a plan of that stage.

    Args:
        plan: The document, which may be none; it may write a dot where a tool's name has an underscore.
        stage: Its tools, as far as its model can use them, are those that the plan may call.
        parts: What the session runs with.
        processes: Tries what a model wrote; ``None`` where nothing is checked.
        definition: The wire form of the definition that the plan is written for, or ``None``.
    """
    from harness_hookspecs.compiler import KnownModel, KnownTool, Surroundings, Trial
    from harness_hookspecs.workflow import WorkflowDefinitionSnapshot

    site = parts.plans
    assert site is not None, "a session that runs has one"
    tools = {
        name: KnownTool(tool.spec, tool.tier, tool.schema_hash, site.built_by.get(tool.set_name, tool.set_name))
        for name, tool in parts.toolbox.allowed(stage.allowed_tools, stage.model.capabilities).items()
    }
    slots = {**{name: name for name in site.models}, **stage.slots}
    out = {} if parts.engines is None else parts.engines.out()
    dotted = {name: name.replace(".", "_") for name in _tools_named(plan)}
    return Surroundings(
        rules=parts.definition.rules,
        models={name: KnownModel(*site.models[entry]) for name, entry in slots.items() if entry in site.models},
        tools={**tools, **{name: tools[plain] for name, plain in dotted.items() if plain in tools}},
        engines={name: version for name, version in site.engines.items() if name not in out},
        engines_out=out,
        engine=site.engine,
        definition=None if definition is None else WorkflowDefinitionSnapshot.from_wire(definition),
        max_turns=stage.max_turns,
        trial=None
        if processes is None
        else Trial(processes, site.rules_module, site.rules_name, dict(site.rules_settings), tuple(sys.path)),
    )
