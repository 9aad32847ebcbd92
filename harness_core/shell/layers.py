"""Which plugin stands at each layer: a configuration and a catalogue go in, plugins and what is missing come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from harness_hookspecs.errors import PluginError

from .config.effective import EffectiveConfig
from .model_entries import no_model
from .plugins.binding import answer_for
from .plugins.catalogue import Catalogue

__all__ = ["HOST", "Layer", "layers_of"]

HOST = "harness-host"
_DEFAULT_RULES = "cel"


class Layer(NamedTuple):
    """One layer between a person and a tool, who does its work, what is missing for it, and what to do about that."""

    layer: str
    plugins: tuple[str, ...]
    missing: tuple[str, ...]
    fix: str = "harness plugins list"


def layers_of(config: EffectiveConfig, catalogue: Catalogue) -> list[Layer]:
    """Name the plugins of each layer, from the person to the tools; nothing is imported.

    Args:
        config: What holds.
        catalogue: Who offers what.
    """
    stages = config.stages.stages.values()
    executors = sorted({("executor", stage.executor) for stage in stages})
    surfaces = [one.row.record.id for one in catalogue.offers_of("surface")]
    tools = sorted({one.row.record.id for one in catalogue.offers_of("tool")})
    compressions = sorted({one.row.record.id for one in catalogue.offers_of("compression")})
    return [
        Layer("user", (HOST, *surfaces), ()),
        Layer("router", tuple(one for one in surfaces if one == "surface-chat") or (HOST,), ()),
        _layer("kernel", catalogue, [("store", config.harness.store.plugin), ("rules", _DEFAULT_RULES)]),
        _layer("stage runtime", catalogue, executors),
        Layer("context processor", (HOST, *compressions), ()),
        _agents(config, catalogue),
        _inference(config, catalogue),
        Layer("tools", tuple(tools), () if tools else ("no tools are installed",)),
    ]


def _layer(name: str, catalogue: Catalogue, wanted: Iterable[tuple[str, str]]) -> Layer:
    calls = [lambda kind=kind, offer=offer: catalogue.resolve(kind, offer).row.record.id for kind, offer in wanted]
    plugins, missing = _tried(calls)
    return Layer(name, (HOST, *plugins) if name == "kernel" else plugins, missing)


def _inference(config: EffectiveConfig, catalogue: Catalogue) -> Layer:
    if not config.models.models:
        said, fix = no_model(config)
        return Layer("inference", (), (said,), fix)
    return _layer("inference", catalogue, sorted({("provider", one.provider) for one in config.models.models.values()}))


def _agents(config: EffectiveConfig, catalogue: Catalogue) -> Layer:
    """Who answers for the role that every agent stage calls, at each persona."""
    personas: list[str | None] = [*sorted({stage.role for stage in config.stages.stages.values()})]
    calls = [
        lambda persona=persona: answer_for(catalogue, "worker.ai-generate", persona).provider.row.record.id
        for persona in personas or [None]
    ]
    return Layer("agent runtime", *_tried(calls))


def _tried(calls: Iterable[Callable[[], str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    plugins: list[str] = []
    missing: list[str] = []
    for call in calls:
        try:
            plugins.append(call())
        except PluginError as error:
            missing.append(str(error))
    return tuple(dict.fromkeys(plugins)), tuple(dict.fromkeys(missing))
