"""Identity and drift: a plan and what it was checked against go in, its id and its lock come out; two locks, a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

from harness_hookspecs.compiler import (
    Difference,
    LockedEngine,
    LockedModel,
    LockedTool,
    Surroundings,
    VersionLock,
)
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.workflow import WorkflowDefinitionSnapshot

from .binding import named
from .plans import Plan

__all__ = ["differences", "lock_of", "version_id"]

_OF_PLANNING: Final = ("definitionHash", "description", "planner")


def version_id(lwir_hash: str) -> str:
    """The id of the plan with this hash."""
    return f"wfv_{lwir_hash[:32]}"


def lock_of(plan: Plan, lwir_hash: str, surroundings: Surroundings) -> VersionLock:
    """Lock a plan that has no errors; only what it names goes in, in the order of names."""
    uses, definition = named(plan), surroundings.definition
    tools = sorted({name for name, _, _ in uses.tools})
    models = sorted({name for name, _, _ in uses.models})
    usual = {surroundings.engine} if uses.without_engine and surroundings.engine is not None else set[str]()
    engines = sorted({name for name, _, _ in uses.engines} | usual)
    return VersionLock(
        workflow_version_id=version_id(lwir_hash),
        lwir_hash=lwir_hash,
        workflow_definition_hash=_definition_hash(definition),
        input_schema_hash=digest(plan.data["input"]["schema"]),
        output_schema_hash=digest(plan.data["output"]["schema"]),
        tools=tuple(_tool(name, surroundings) for name in tools),
        models=tuple(_model(name, surroundings) for name in models),
        engines=tuple(LockedEngine(name=name, version=surroundings.engines[name]) for name in engines),
        rules_engine=surroundings.rules.version,
        compiler_version=version("harness-executor-workflow"),
    )


def _definition_hash(definition: WorkflowDefinitionSnapshot | None) -> str | None:
    """Of what a plan is held to: who plans, and what for in a person's words, is nothing to a plan that is there."""
    if definition is None:
        return None
    return digest({name: value for name, value in definition.to_wire().items() if name not in _OF_PLANNING})


def _tool(name: str, surroundings: Surroundings) -> LockedTool:
    tool = surroundings.tools[name]
    return LockedTool(name=name, schema_hash=tool.schema_hash, tier=tool.tier, plugin=tool.plugin)


def _model(name: str, surroundings: Surroundings) -> LockedModel:
    model = surroundings.models[name]
    return LockedModel(slot=name, provider=model.provider, model_id=model.model_id)


def differences(before: VersionLock, now: VersionLock) -> tuple[Difference, ...]:
    """What is another one than it was, in the order of the lock."""
    was, found = before.to_wire(), now.to_wire()
    return tuple(one for name in VersionLock.model_fields for one in _compared(_wire_name(name), was, found))


def _wire_name(field: str) -> str:
    return VersionLock.model_fields[field].alias or field


def _compared(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = was.get(name, ""), now.get(name, "")
    if not isinstance(before, list):
        if before != after:
            yield Difference(name, before, after)
        return
    mine, theirs = _by_name(before), _by_name(after)
    for entry in sorted(mine.keys() | theirs.keys()):
        old, new = mine.get(entry), theirs.get(entry)
        if old is None or new is None:
            yield Difference(f"{name} {entry}", _shown(old), _shown(new))
            continue
        for part in old:
            if old[part] != new[part]:
                yield Difference(f"{name} {entry} {part}", old[part], new[part])


def _by_name(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(one.get("name") or one.get("slot")): one for one in entries}


def _shown(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return ""
    return " ".join(str(value)[:12] if part.endswith("Hash") else str(value) for part, value in entry.items())
