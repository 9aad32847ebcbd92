"""The tool sets of a session and what configuration says of them in, each tool with its tier and limits out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import attrs

from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.frozen import freeze, thaw
from harness_hookspecs.provider import ToolSchema
from harness_hookspecs.tool import TIERS, Previews, Probes, Tier, ToolSet, ToolSpec

from .perform_attempt import attempt

__all__ = ["OF_HOST", "Tool", "Toolbox", "spec_flaw", "tool_of_host"]

OF_HOST: Final = ("plan_workflow", "run_workflow", "start_workflow")
"""Names that no tool set may give a tool: the host gives these to an orchestration (A-23)."""

_FIELDS: Final[Mapping[str, Any]] = {
    "name": str, "description": str, "input_schema": Mapping, "requires": Collection,
    "timeout_seconds": int | float | None,
}  # fmt: skip
"""What of a tool is read before anything runs, and its types."""
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")


@attrs.frozen
class Tool:
    """One tool as this session has it."""

    spec: ToolSpec
    toolset: ToolSet
    set_name: str
    tier: Tier
    timeout_seconds: float
    schema_hash: str
    # Asked once here: looking whether an object fits a protocol is slow, and calls are many.
    previews: Previews | None = attrs.field(init=False)
    probes: Probes | None = attrs.field(init=False)

    @previews.default
    def _find_previews(self) -> Previews | None:
        return self.toolset if isinstance(self.toolset, Previews) else None

    @probes.default
    def _find_probes(self) -> Probes | None:
        return self.toolset if isinstance(self.toolset, Probes) else None

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    def reference(self) -> dict[str, Any]:
        """How it stands in manifests and requests."""
        return {"name": self.name, "schemaHash": self.schema_hash, "tier": self.tier}

    def shown(self) -> dict[str, Any]:
        """What of it is part of a prompt; hashes to ``schema_hash``."""
        return _shown(self.spec)

    def schema(self) -> ToolSchema:
        """How the model is shown it."""
        return ToolSchema(self.name, self.spec.description, thaw(self.spec.input_schema))  # to adapt as it likes


def tool_of_host(spec: ToolSpec, toolset: ToolSet, set_name: str) -> Tool:
    """A tool that the host itself has; no configuration is about it, and it may take its time."""
    return Tool(_kept(spec), toolset, set_name, spec.tier, float("inf"), digest(_shown(spec)))


class Toolbox:
    """Every enabled tool by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def named(self, names: Sequence[str]) -> Mapping[str, Tool]:
        """The tools of a stage: named itself or by its set (B-47)."""
        return {
            name: tool for name, tool in sorted(self._tools.items()) if name in names or tool.set_name in names
        }

    def allowed(self, names: Sequence[str], capabilities: frozenset[str]) -> Mapping[str, Tool]:
        """Those of them that a model can use (B-111)."""
        return {
            name: tool for name, tool in self.named(names).items() if capabilities.issuperset(tool.spec.requires)
        }

    @staticmethod
    def of_set(
        set_name: str, toolset: ToolSet, plugin_id: str, entries: Mapping[str, Any], default_timeout_seconds: float
    ) -> list[Tool]:
        """The enabled tools of a set under its entries of ``tools.yaml`` (by set and by tool; the tool's wins).

        Raises:
            PluginError: ``tool.no_tier`` for a tool that declares none (K-25), or the set broke or gives what is no
                tool (``plugin.bound_broken``).
        """
        tools = []
        said = attempt(_specs, toolset, set_name, plugin_id, what=f"tool set {set_name}")
        if said.error is not None:
            raise said.error
        for spec, schema_hash in said.value or ():
            levels = [entry for entry in (entries.get(spec.name), entries.get(set_name)) if entry is not None]
            if not all(entry.enabled for entry in levels):
                continue
            tier = next((entry.tier for entry in levels if entry.tier is not None), spec.tier)
            configured = next((entry.timeout_sec for entry in levels if entry.timeout_sec is not None), None)
            limits = [t for t in (spec.timeout_seconds, configured, default_timeout_seconds) if t is not None]
            tools.append(Tool(spec, toolset, set_name, tier, min(limits), schema_hash))
        return tools


def _specs(toolset: ToolSet, set_name: str, plugin_id: str) -> list[tuple[ToolSpec, str]]:
    """What a set says its tools are, each with the hash of what a prompt shows of it."""
    specs = list(toolset.specs())
    for spec in specs:
        flaw = spec_flaw(spec)
        if flaw is not None:
            code, said = flaw
            hint = f"mend the plugin, or: harness plugins disable {plugin_id}"
            raise PluginError(f"tool set {set_name} gives {said}", code=code, hint=hint, plugin=plugin_id)
    return [(spec, digest(_shown(spec))) for spec in map(_kept, specs)]


def spec_flaw(spec: object) -> tuple[str, str] | None:
    """Tell how what a set gives breaks the contract: the error's code, and words that follow "gives"."""
    if not isinstance(spec, ToolSpec):
        return "plugin.bound_broken", f"{type(spec).__name__} where a ToolSpec belongs"
    for name, kind in _FIELDS.items():
        value = getattr(spec, name)
        if not isinstance(value, kind):
            return "plugin.bound_broken", f"a tool whose {name} is {type(value).__name__}"
    if not _NAME.fullmatch(spec.name):
        return "plugin.bound_broken", f"a tool called {spec.name!r}; names are {_NAME.pattern}"
    if spec.name in OF_HOST:
        return "tool.reserved", f"a tool called {spec.name}, which only the host gives"
    if spec.tier not in TIERS:
        return "tool.no_tier", f"the tool {spec.name} with the tier {spec.tier!r}; tiers: {', '.join(TIERS)}"
    return None


def _kept(spec: ToolSpec) -> ToolSpec:
    """The tool with a schema that nobody can change: every call's arguments are held to it."""
    return replace(spec, input_schema=freeze(dict(spec.input_schema)))


def _shown(spec: ToolSpec) -> dict[str, Any]:
    """What of a tool is part of a prompt: its name, its text, its schema (trap 3)."""
    return {"name": spec.name, "description": spec.description, "input": dict(spec.input_schema)}
