"""All settings in, problems out: names that point at nothing, personas in a circle, stages that ask for too much."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from harness_hookspecs.workflow_definition import WorkflowDefinition

from .harness import HarnessSettings
from .lint import Finding
from .models import ModelsSettings
from .paths import ConfigPath
from .problems import Problem, nearest
from .stages import RESERVED, Persona, Stage, StagesSettings, runs_plans
from .transitions import rules_of

__all__ = ["check_references"]


def check_references(
    harness: HarnessSettings, models: ModelsSettings, stages: StagesSettings, offered: Collection[str] = ()
) -> list[Finding]:
    """List what one file says of another that the other does not bear out; each stops a run.

    Args:
        harness: What harness.yaml says.
        models: What models.yaml says.
        stages: What stages.yaml says.
        offered: The workflows that installed plugins promise.
    """
    defined = _workflows(models, stages.workflows)
    return [*_models(models), *_stages(harness, models, stages, offered), *defined, *_personas(models, stages.roles)]


_DEFINED: Final = {"workflow": "workflows of stages.yaml defines one, or a plugin, which may not be installed here"}
"""Where to look for what is missing and nothing like it is known."""


def _unknown(path: ConfigPath, what: str, name: str, known: Iterable[str]) -> Finding:
    names = sorted(known)
    hint = nearest(name, names) or (f"known: {', '.join(names)}" if names else _DEFINED.get(what))
    return path, Problem("config.unknown_name", f'there is no {what} "{name}"', hint=hint)


def _models(settings: ModelsSettings) -> Iterator[Finding]:
    if settings.default is not None and settings.default not in settings.models:
        yield _unknown(("default",), "model", settings.default, settings.models)
    for route, name in settings.routes.items():
        if name not in settings.models:
            yield _unknown(("routes", route), "model", name, settings.models)


def _stages(
    harness: HarnessSettings, models: ModelsSettings, settings: StagesSettings, offered: Collection[str]
) -> Iterator[Finding]:
    names = settings.stages
    if settings.initial is None and len(names) > 1:
        message = f"with several stages, initial names the first; there are {', '.join(names)}"
        yield ("stages",), Problem("config.no_initial", message)
    elif settings.initial is not None and settings.initial not in names:
        yield _unknown(("initial",), "stage", settings.initial, names)
    for name, stage in names.items():
        if stage.model is not None and stage.model not in models.models:
            yield _unknown(("stages", name, "model"), "model", stage.model, models.models)
        most = harness.run.max_turns
        if stage.max_turns is not None and stage.max_turns > most:
            message = f"{stage.max_turns} is more than run.max_turns, which is {most}"
            yield ("stages", name, "max_turns"), Problem("config.limit", message)
        yield from _plans(name, stage, {*settings.workflows, *offered})
        yield from _targets(name, stage, names)
        yield from _sources(name, stage, names)


def _plans(name: str, stage: Stage, workflows: Iterable[str]) -> Iterator[Finding]:
    """A stage that runs plans has one, or a workflow that one is written for, and never both."""
    if stage.workflow is not None and stage.workflow not in workflows:
        yield _unknown(("stages", name, "workflow"), "workflow", stage.workflow, workflows)
    if stage.workflow is not None and stage.plan is not None:
        message = "a stage has a plan or a workflow that one is written for, not both"
        yield ("stages", name, "workflow"), Problem("config.two_plans", message, hint="take plan or workflow out")
    elif stage.workflow is None and stage.plan is None and runs_plans(stage):
        message = "the executor runs plans, and the stage has neither a plan nor a workflow that one is written for"
        hint = "give it plan, or workflow with the name of one"
        yield ("stages", name, "executor"), Problem("config.no_plan", message, hint=hint)
    for index, one in enumerate(stage.workflows or ()):
        if one not in workflows:
            yield _unknown(("stages", name, "workflows", index), "workflow", one, workflows)


def _workflows(models: ModelsSettings, workflows: Mapping[str, WorkflowDefinition]) -> Iterator[Finding]:
    """Who is to answer is there."""
    for name, workflow in workflows.items():
        for slot, said in workflow.models.items():
            if said.bind is not None and said.bind not in models.models:
                yield _unknown(("workflows", name, "models", slot, "bind"), "model", said.bind, models.models)


def _targets(name: str, stage: Stage, names: Iterable[str]) -> Iterator[Finding]:
    known = {*names, *RESERVED}
    for rule in rules_of(stage):
        for target in rule.goto:
            if target not in known:
                at = ("goto",) if rule.path[0] == "transitions" else ()
                yield _unknown(("stages", name, *rule.path, *at), "stage", target, known)
        if not rule.goto:
            yield ("stages", name, *rule.path), Problem("config.no_target", "the list of targets is empty")


def _sources(name: str, stage: Stage, names: Iterable[str]) -> Iterator[Finding]:
    needed = {"files": "glob", "artifact": "stage", "text": "text", "tool": "tool"}
    for index, source in enumerate(stage.context.sources):
        path: ConfigPath = ("stages", name, "context", "sources", index)
        key = needed.get(source.kind)
        if key is not None and getattr(source, key) is None:
            yield path, Problem("config.missing_key", f"a source of kind {source.kind} needs {key}")
        if source.stage is not None and source.stage not in names:
            yield _unknown((*path, "stage"), "stage", source.stage, names)


def _personas(models: ModelsSettings, roles: Mapping[str, Persona]) -> Iterator[Finding]:
    for name, persona in roles.items():
        if persona.model is not None and persona.model not in models.models:
            yield _unknown(("roles", name, "model"), "model", persona.model, models.models)
        if persona.extends is not None and persona.extends not in roles:
            yield _unknown(("roles", name, "extends"), "persona", persona.extends, roles)
        elif _circle(name, roles):
            yield ("roles", name, "extends"), Problem("config.circle", "the persona extends itself")


def _circle(name: str, roles: Mapping[str, Persona]) -> bool:
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at in roles and at not in seen:
        seen.add(at)
        at = roles[at].extends
    return at in seen
