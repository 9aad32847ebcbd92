"""Configuration and flags in, the catalogue of what takes part out: the order in which the two need each other.

Manifests are read first, for their schemas check the configuration; then the configuration says who takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .catalogue import Catalogue
from .index import Index
from .policy import Named, Selection, with_flags

if TYPE_CHECKING:
    from harness_core.shell.config.effective import EffectiveConfig
    from harness_hookspecs.host import Processes

__all__ = ["open_catalogue", "selection_from_json", "selection_of", "selection_to_json"]

Load = Callable[[Mapping[tuple[str, str], Mapping[str, Any] | None]], "EffectiveConfig"]
"""Loads the configuration with the settings schemas of the installed offers."""


def open_catalogue(
    index: Index, load: Load, *, flags: Selection = Selection(), processes: Processes | None = None
) -> tuple[EffectiveConfig, Catalogue]:
    """Load the configuration and make the catalogue it asks for.

    Args:
        index: What is installed.
        load: Loads the configuration.
        flags: What ``flags_of`` found.
        processes: Tries first imports.

    Raises:
        ConfigError: The configuration is wrong, or names a plugin that is not installed.
        PluginError: A required plugin does not take part.
    """
    config = load(Catalogue(index, flags).manifest_schemas())
    catalogue = Catalogue(index, with_flags(selection_of(config), flags), processes=processes)
    for problem in catalogue.problems():
        raise problem
    return config, catalogue


def selection_of(config: EffectiveConfig) -> Selection:
    """Give what a configuration says about plugins."""
    plugins = config.harness.plugins

    def named(key: str, names: tuple[str, ...]) -> tuple[Named, ...]:
        return tuple(Named(name, config.origin(f"plugins.{key}").text()) for name in names)

    return Selection(
        mode=plugins.mode,
        disable=named("disable", plugins.disable),
        allow=named("allow", plugins.allow),
        require=named("require", plugins.require),
        bind={role: Named(name, config.origin(("bind", role)).text()) for role, name in config.harness.bind.items()},
        chosen=tuple(_chosen(config)),
    )


def _chosen(config: EffectiveConfig) -> list[tuple[str, str, str]]:
    """Everything the configuration chooses by name: kind, name, place."""
    found = [("store", config.harness.store.plugin, config.origin("store.plugin").text())]
    for name, model in config.models.models.items():
        found.append(("provider", model.provider, config.origin(("models", name, "provider")).text()))
    for name, tool in config.tools.tools.items():
        if tool.plugin is not None:
            said = tool.plugin if ":" in tool.plugin else f"{tool.plugin}:{name}"
            found.append(("tool", said, config.origin(("tools", name, "plugin")).text()))
    return found


def selection_to_json(selection: Selection) -> dict[str, Any]:
    """Give a selection as plain JSON, for the index."""
    return selection._asdict()


def selection_from_json(document: Mapping[str, Any]) -> Selection:
    """Read what ``selection_to_json`` gave."""
    lists = {key: tuple(Named(*named) for named in document[key]) for key in ("disable", "allow", "require")}
    bind = {role: Named(*named) for role, named in document["bind"].items()}
    chosen = tuple((kind, name, where) for kind, name, where in document["chosen"])
    return Selection(document["mode"], **lists, bind=bind, chosen=chosen, nothing=document["nothing"])
