"""What a configuration says about plugins: the effective configuration goes in, the catalogue of who takes part out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .catalogue import Catalogue
from .index import Index
from .listing import configuration_state
from .policy import Named, Selection, with_flags

if TYPE_CHECKING:
    from harness_core.shell.config.effective import EffectiveConfig
    from harness_hookspecs.host import Processes

__all__ = ["open_catalogue", "remembered_selection", "selection_of"]


def open_catalogue(
    index: Index,
    config: EffectiveConfig,
    *,
    disabled: Sequence[tuple[str, str]] = (),
    no_plugins: bool = False,
    processes: Processes | None = None,
) -> Catalogue:
    """Make the catalogue of a configuration.

    Args:
        index: What is installed.
        config: The configuration, which was loaded with the schemas of ``index.records``.
        disabled: Plugins left out by flags and environment, each with who says so.
        no_plugins: Whether ``--no-plugins`` was given.
        processes: Tries first imports.

    Raises:
        ConfigError: It names a plugin that is not installed.
        PluginError: A required plugin does not take part.
    """
    nothing = "--no-plugins" if no_plugins else None
    selection = with_flags(selection_of(config), disabled, nothing=nothing)
    catalogue = Catalogue(index, selection, processes=processes)
    for problem in catalogue.problems():
        raise problem
    return catalogue


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


# ---------------------------------------------------------------------------------------------- remembered


def remembered_selection(
    index: Index, project: str, load: Callable[[], Selection], env: Mapping[str, str]
) -> Selection:
    """Give what the configuration says, from the index while nothing it is made of has changed.

    Reading YAML costs more than all the rest of ``harness plugins list``.

    Args:
        index: Where it is remembered.
        project: The folder that holds ``.harness``.
        load: Loads the configuration.
        env: The environment.
    """
    key = configuration_state(project, env)
    kept = index.fact("selection", key)
    if kept is not None:
        return _from_json(kept)
    selection = load()
    index.keep_fact("selection", key, selection._asdict())
    return selection


def _from_json(document: Mapping[str, Any]) -> Selection:
    lists = {key: tuple(Named(*named) for named in document[key]) for key in ("disable", "allow", "require")}
    bind = {role: Named(*named) for role, named in document["bind"].items()}
    chosen = tuple((kind, name, where) for kind, name, where in document["chosen"])
    return Selection(document["mode"], **lists, bind=bind, chosen=chosen, nothing=document["nothing"])
