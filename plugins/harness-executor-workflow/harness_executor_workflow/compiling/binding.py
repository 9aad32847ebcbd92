"""Phase 8: a plan and what there is go in; models, tools and arguments that do not fit come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_hookspecs.compiler import KnownTool, Surroundings
from harness_hookspecs.tool import TIERS
from harness_hookspecs.workflow import Permissions, PlanFinding

from .arguments import check_arguments
from .findings import Place, did_you_mean, finding
from .plans import Located, Plan
from .shapes import Shape

__all__ = ["Named", "allowed_models", "ceilings", "check_binding", "named"]


class Named:
    """What a plan names: its models, tools and engines, each with where; what a lock keeps."""

    def __init__(self) -> None:
        self.models: Final[list[tuple[str, Place, str | None]]] = []
        self.tools: Final[list[tuple[str, Place, str | None]]] = []
        self.engines: Final[list[tuple[str, Place, str | None]]] = []
        self.without_engine: Final[list[Located]] = []


def named(plan: Plan) -> Named:
    """Everything that the steps of a plan name."""
    found = Named()
    for one in plan.all:
        place, settings = one.place / "with", one.settings
        if "model" in settings:
            found.models.append((settings["model"], place / "model", one.id))
        if "tool" in settings:
            found.tools.append((settings["tool"], place / "tool", one.id))
        for number, tool in enumerate(settings.get("tools", ())):
            found.tools.append((tool, place / "tools" / number, one.id))
        if "engine" in settings:
            found.engines.append((settings["engine"], place / "engine", one.id))
        elif one.uses == "code.run":
            found.without_engine.append(one)
        if "fixer" in one.data.get("onFailure", {}):
            at = one.place / "onFailure" / "fixer" / "model"
            found.models.append((one.data["onFailure"]["fixer"]["model"], at, one.id))
    return found


def check_binding(plan: Plan, surroundings: Surroundings, shapes: Mapping[Place, Shape]) -> Iterator[PlanFinding]:
    """Look at the permissions, then at each name, then at the arguments of each call."""
    uses = named(plan)
    for ceiling in ceilings(surroundings):
        yield from _above(plan.workflow.permissions, ceiling)
    yield from _models(plan, uses, surroundings)
    yield from _tools(plan, uses, surroundings)
    yield from _engines(uses, surroundings)
    for one in plan.all:
        yield from _arguments(one, surroundings, shapes)


def _engines(uses: Named, surroundings: Surroundings) -> Iterator[PlanFinding]:
    out, there = surroundings.engines_out, ", ".join(sorted(surroundings.engines))
    instead = f"let {there} run it" if there else "plan without code.run"
    for name, place, step in uses.engines:
        if name in out:
            yield finding("bind.unknown_engine", place, step, _refuses(name, out), instead)
        elif name not in surroundings.engines:
            hint = did_you_mean(name, surroundings.engines)
            yield finding("bind.unknown_engine", place, step, f"There is no engine {name}.", hint)
    usual = surroundings.engine
    for one in uses.without_engine if usual is None or usual in out else ():
        if usual is None:
            message = f"Any of {there} might run this code." if there else "There is no engine that runs code."
            hint = "name one under engine" if there else instead
        else:
            message, hint = _refuses(usual, out), instead
        yield finding("bind.unknown_engine", one.place / "with", one.id, message, hint)


def _refuses(name: str, out: Mapping[str, str]) -> str:
    return f"The engine {name} runs nothing here: {out[name]}."


def ceilings(surroundings: Surroundings) -> list[Permissions]:
    """The permissions that a plan may not go beyond: of policy and stage, and of the workflow it is written for."""
    definition = surroundings.definition
    found = [surroundings.permissions, None if definition is None else definition.permissions]
    return [one for one in found if one is not None]


def allowed_models(surroundings: Surroundings) -> list[str]:
    """The model slots that a plan may name."""
    found = ceilings(surroundings)
    return sorted(name for name in surroundings.models if all(name in one.models for one in found))


def _above(mine: Permissions, ceiling: Permissions) -> Iterator[PlanFinding]:
    """What the plan allows itself and is not allowed."""
    root = Place(("permissions",))
    for kind in ("models", "tools", "secrets", "network"):
        allowed = getattr(ceiling, kind) or ()
        for number, name in enumerate(getattr(mine, kind) or ()):
            if name not in allowed:
                code = "bind.tool_not_permitted" if kind == "tools" else "bind.permission_exceeded"
                message = f"{name} is not among the {kind} that this workflow may use."
                yield finding(code, root / kind / number, None, message, did_you_mean(name, allowed))
    if _rank(mine.max_tier) > _rank(ceiling.max_tier):
        message = f"maxTier {mine.max_tier} is above {ceiling.max_tier}, which is allowed at most."
        yield finding("bind.tier_exceeded", root / "maxTier", None, message, f"set maxTier to {ceiling.max_tier}")


def _rank(tier: str | None) -> int:
    return TIERS.index(tier) if tier in TIERS else len(TIERS)


def _models(plan: Plan, uses: Named, surroundings: Surroundings) -> Iterator[PlanFinding]:
    mine = plan.workflow.permissions.models
    declared = [(name, Place(("permissions", "models", number)), None) for number, name in enumerate(mine)]
    for name, place, step in [*declared, *uses.models]:
        if name not in surroundings.models:
            hint = did_you_mean(name, surroundings.models)
            yield finding("bind.unknown_model", place, step, f"There is no model slot {name}.", hint)
        elif name not in mine:
            message = f"The model slot {name} is not among the plan's permissions."
            yield finding("bind.unknown_model", place, step, message, "add it to /permissions/models")


def _tools(plan: Plan, uses: Named, surroundings: Surroundings) -> Iterator[PlanFinding]:
    permissions = plan.workflow.permissions
    declared = [(name, Place(("permissions", "tools", number)), None) for number, name in enumerate(permissions.tools)]
    highest = min((_highest(surroundings), permissions.max_tier or TIERS[-1]), key=_rank)
    for name, place, step in [*declared, *uses.tools]:
        tool = surroundings.tools.get(name)
        if tool is None:
            hint = did_you_mean(name, surroundings.tools)
            yield finding("bind.tool_missing", place, step, f"There is no tool {name}.", hint)
        elif name not in permissions.tools:
            message = f"The tool {name} is not among the plan's permissions."
            yield finding("bind.tool_not_permitted", place, step, message, "add it to /permissions/tools")
        elif step is not None and _rank(tool.tier) > _rank(highest):
            message = f"{name} is of tier {tool.tier}; this plan may use tools up to {highest}."
            yield finding("bind.tier_exceeded", place, step, message, _lower(surroundings.tools, highest))


def _highest(surroundings: Surroundings) -> str:
    return min((one.max_tier for one in ceilings(surroundings) if one.max_tier), key=_rank, default=TIERS[-1])


def _lower(tools: Mapping[str, KnownTool], highest: str) -> str | None:
    fitting = sorted(name for name, tool in tools.items() if _rank(tool.tier) <= _rank(highest))
    return f"within {highest} there is {', '.join(fitting[:3])}" if fitting else None


def _arguments(one: Located, surroundings: Surroundings, shapes: Mapping[Place, Shape]) -> Iterator[PlanFinding]:
    tool: Any = surroundings.tools.get(one.settings.get("tool", "")) if one.uses == "tool.call" else None
    if tool is not None:
        yield from check_arguments(one, tool.spec, shapes)
