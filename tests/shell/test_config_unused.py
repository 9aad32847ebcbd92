"""No setting is accepted in silence and ignored: something reads it, or who sets it is told that nothing does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from harness_core.settings.schemas import MODELS
from harness_core.settings.unused import UNUSED
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.load import effective_config
from harness_core.shell.config.sources import Source, Sources

ROOT = Path(__file__).resolve().parents[2]

SET: dict[str, tuple[str, str]] = {
    "project": ("harness.yaml:2:10", "project: mine"),
    "run.max_depth": ("harness.yaml:2:18", "run: {max_depth: 2}"),
    "run.max_concurrent_sub_runs": ("harness.yaml:2:32", "run: {max_concurrent_sub_runs: 2}"),
    "routes": ("models.yaml:3:18", "models: {m: {provider: p}}\nroutes: {coding: m}"),
    "models.*.gpu.residency": ("models.yaml:2:44", "models: {m: {provider: p, gpu: {residency: pinned}}}"),
}


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The settings models that a field holds, in tables and lists too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def settings_below(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every setting of a file by its key, ``*`` for names and places in lists."""
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        many = "" if field.annotation in inner or not inner or type(None) in get_args(field.annotation) else ".*"
        for one in inner:
            yield from settings_below(one, f"{path}{name}{many}.")
        if not inner:
            yield f"{path}{name}"


def every_setting() -> set[str]:
    return {key for model in MODELS.values() for key in settings_below(model)}


def read_names() -> set[str]:
    """What code reads by name: attributes and whole words in quotes, in the core and in every plugin."""
    files = [*(ROOT / "harness_core").rglob("*.py"), *(ROOT / "plugins").glob("*/harness_*/**/*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def load(text: str, file: str) -> EffectiveConfig:
    source = Source("project", file.removesuffix(".yaml"), file, f"# first\n{text}\n".encode())
    return effective_config(Sources((source,), {}, {}), schemas={})


def warned(config: EffectiveConfig) -> list[tuple[str, str | None]]:
    return [(one.message, one.where) for one in config.warnings if one.code == "config.not_used"]


def test_every_setting_is_read_or_on_the_list_and_the_list_names_settings_only() -> None:
    known, read = every_setting(), read_names()
    names = {key: key.rpartition(".")[2] for key in known - UNUSED}
    made_up = {key for key, name in names.items() if re.sub(r"\d$", "", name) in read}  # tool_tier_0
    assert {key for key, name in names.items() if name not in read} - made_up == set()
    assert known >= UNUSED and SET.keys() == UNUSED


@pytest.mark.parametrize("key", sorted(SET))
def test_a_setting_that_nothing_reads_is_named_with_its_line(key: str) -> None:
    place, text = SET[key]
    assert warned(load(text, place.split(":")[0])) == [("set, but not used by this version", place)]


def test_a_setting_that_counts_and_one_that_is_given_back_are_not_named() -> None:
    assert warned(load("run: {max_visits: 3, max_depth: null}", "harness.yaml")) == []
    assert warned(load("routes: {}", "models.yaml")) == []
    assert warned(load("rules: [{tool: 'x*', mode: deny}]", "policies.yaml")) == []
