"""No setting is accepted in silence and ignored: code reads it, or who sets it is told that nothing does.

Code reads a setting where it takes that name of something that is called as the code calls that part of the settings
(``HELD``): ``run.max_turns`` counts for ``RunSettings``, ``visit.max_turns`` does not. So a setting that nobody reads
shows unless another thing of the same two names is read somewhere; that what is read also acts, other tests show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, create_model

from harness_core.settings.schemas import MODELS
from harness_core.settings.unused import UNUSED
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.load import effective_config
from harness_core.shell.config.sources import Source, Sources

ROOT = Path(__file__).resolve().parents[2]

BASH = "workflows: {w: {bash: {languages: [sql], timeout_ms: 5}}}"
NETWORK = "workflows: {w: {bash: {network: {allow: [u], methods: [GET], deny_private_ranges: true}}}}"
MEMORY = "workflows: {w: {memory: [{path: /m, mode: ro, purpose: why, store_id: s}]}}"

SET: dict[str, tuple[str, str]] = {
    "project": ("harness.yaml:2:10", "project: mine"),
    "routes": ("models.yaml:3:18", "models: {m: {provider: p}}\nroutes: {coding: m}"),
    "models.*.gpu.residency": ("models.yaml:2:44", "models: {m: {provider: p, gpu: {residency: pinned}}}"),
    "workflows.*.bash.languages": ("stages.yaml:2:35", BASH),
    "workflows.*.bash.timeout_ms": ("stages.yaml:2:54", BASH),
    "workflows.*.bash.network.allow": ("stages.yaml:2:41", NETWORK),
    "workflows.*.bash.network.methods": ("stages.yaml:2:55", NETWORK),
    "workflows.*.bash.network.deny_private_ranges": ("stages.yaml:2:83", NETWORK),
    "workflows.*.memory.*.path": ("stages.yaml:2:33", MEMORY),
    "workflows.*.memory.*.mode": ("stages.yaml:2:43", MEMORY),
    "workflows.*.memory.*.purpose": ("stages.yaml:2:56", MEMORY),
    "workflows.*.memory.*.store_id": ("stages.yaml:2:71", MEMORY),
}

HELD: Mapping[str, str] = {
    "HarnessSettings": "harness",
    "StoreSettings": "store",
    "RunSettings": "run",
    "Budget": "budget",
    "PluginsSettings": "plugins",
    "ModelEntry": "entry settings _settings",
    "KvCache": "kv_cache",
    "Gpu": "gpu",
    "ModelLimits": "limits",
    "ToolEntry": "entry tool",
    "Stage": "stage",
    "Approvals": "approvals",
    "Retry": "retry",
    "TransitionRule": "rule",
    "ContextSettings": "context",
    "ContextSource": "source",
    "OutputLimits": "limits",
    "Persona": "persona",
    "PoliciesSettings": "policies",
    "WorkflowDefinition": "definition one",
    "PlannerOf": "planner",
    "PolicyRule": "rule",
    "ProviderPolicy": "providers",
    "CompressionSettings": "compression",
}
"""What code calls each part of the settings; within its own class it is ``self``."""

WHOLE: Mapping[str, tuple[str, str]] = {
    "Inference": ("inference", "model_dump"), "TierModes": ("tiers", "mode"),
    "Slot": ("slot", "model_dump"), "WorkersOf": ("workers", "model_dump"),
    "PermissionsOf": ("settings", "model_dump"), "LimitsOf": ("settings", "model_dump"),
}  # fmt: skip
"""The parts that are not read setting by setting, and the read that counts for all of one."""

HANDED = ("ModelEntry", "KvCache", "Gpu", "ModelLimits", "Inference")
"""The parts that a provider is handed; no other plugin sees the core's settings."""

ONLY_CHECK = ("lint.py", "references.py")
"""Modules of the settings that look at them and do not act."""


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The settings models that a field holds, in tables and lists too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def settings_below(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    """Every setting of a file by its key, ``*`` for names and places in lists, and the model it belongs to."""
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        many = "" if field.annotation in inner or not inner or type(None) in get_args(field.annotation) else ".*"
        for one in inner:
            yield from settings_below(one, f"{path}{name}{many}.")
        if not inner:
            yield f"{path}{name}", model.__name__


def every_setting() -> dict[str, str]:
    return {key: owner for model in MODELS.values() for key, owner in settings_below(model)}


def called(node: ast.AST, within: str) -> str | None:
    """What a thing is called where it is read: the last name before the attribute; ``self`` is its class."""
    match node:
        case ast.Name(id="self"):
            return within
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=function):
            return called(function, within)
    return None


def reads_in(node: ast.AST, within: str = "") -> Iterator[tuple[str | None, str]]:
    """What is read of what: attributes, words in brackets, and the beginning of a name that getattr puts together."""
    match node:
        case ast.ClassDef(name=name):
            within = name
        case ast.Attribute(value=of, attr=name, ctx=ast.Load()):
            yield called(of, within), name
        case ast.Subscript(value=of, slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            yield called(of, within), name
        case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.JoinedStr(values=[ast.Constant(value=str(name)), _])]):
            yield called(of, within), name
    for child in ast.iter_child_nodes(node):
        yield from reads_in(child, within)


@cache
def reads(pattern: str) -> frozenset[tuple[str | None, str]]:
    files = [file for file in ROOT.glob(pattern) if file.name not in ONLY_CHECK]
    return frozenset(read for file in files for read in reads_in(ast.parse(file.read_text(encoding="utf-8"))))


def unread(settings: Iterable[tuple[str, str]]) -> set[str]:
    """The keys whose setting nobody reads."""
    core, providers = reads("harness_core/**/*.py"), reads("plugins/harness-provider-*/harness_*/**/*.py")
    return {key for key, owner in settings if not is_read(key, owner, core | providers if owner in HANDED else core)}


def is_read(key: str, owner: str, found: frozenset[tuple[str | None, str]]) -> bool:
    if owner in WHOLE:
        return WHOLE[owner] in found
    name = key.rpartition(".")[2]
    names = {name, name.rstrip("0123456789")}  # tool_tier_0
    return any((holder, one) in found for holder in (owner, *HELD.get(owner, "").split()) for one in names)


def load(text: str, file: str) -> EffectiveConfig:
    source = Source("project", file.removesuffix(".yaml"), file, f"# first\n{text}\n".encode())
    return effective_config(Sources((source,), {}, {}), schemas={})


def warned(config: EffectiveConfig) -> list[tuple[str, str | None]]:
    return [(one.message, one.where) for one in config.warnings if one.code == "config.not_used"]


def test_every_setting_is_read_or_on_the_list_and_the_list_names_unread_settings_only() -> None:
    assert unread(every_setting().items()) == UNUSED
    assert SET.keys() == UNUSED


@pytest.mark.parametrize(
    ("owner", "name"), [("RunSettings", "stage"), ("Budget", "max_turns"), ("Stage", "on_ask"), ("Gpu", "provider")]
)
def test_a_setting_that_is_called_like_something_else_that_is_read_is_not_taken_for_read(owner: str, name: str) -> None:
    assert unread(settings_below(create_model(owner, **{name: (int, 0)}))) == {name}  # type: ignore[call-overload]


@pytest.mark.parametrize("key", sorted(SET))
def test_a_setting_that_nothing_reads_is_named_with_its_line(key: str) -> None:
    place, text = SET[key]
    found = warned(load(text, place.split(":")[0]))
    assert ("set, but not used by this version", place) in found  # beside those that it cannot be set without


def test_a_setting_that_counts_and_one_that_is_given_back_are_not_named() -> None:
    assert warned(load("run: {max_visits: 3, max_depth: null}", "harness.yaml")) == []
    assert warned(load("routes: {}", "models.yaml")) == []
    assert warned(load("rules: [{tool: 'x*', mode: deny}]", "policies.yaml")) == []
