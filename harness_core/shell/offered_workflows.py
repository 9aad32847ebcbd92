"""A configuration and who offers workflows in, the configuration with the definitions that a session may use out.

They stand beside those of the file from then on: a session keeps them with its settings, so a resume that meets other
ones stops as it does for a changed file, and a replay asks no plugin. Only what a stage may use is added, or what the
session is begun for: a plugin that is installed for one project changes nothing of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from harness_core.settings.paths import format_path
from harness_hookspecs.errors import ConfigError, HarnessError
from harness_hookspecs.value import FrozenDict

from .config.effective import EffectiveConfig, digest_of
from .config.origins import Origin
from .definitions import ORCHESTRATES
from .parts import Need, Part, Parts
from .plugins.catalogue import Catalogue, Provider

__all__ = ["is_promised", "listed_workflows", "with_offered"]

_KIND: Final = "workflow"
_MEANT: Final = ("ok", "doubled", "broken")
"""Of a plugin that somebody switched off, or that does not fit here, nothing is meant to be used."""


def with_offered(
    config: EffectiveConfig, catalogue: Catalogue, parts: Parts, *, begun_for: str | None = None
) -> EffectiveConfig:
    """The configuration with the workflows of plugins that a stage names or may use, and the one begun for.

    Raises:
        ConfigError: ``config.two_workflows``: a plugin offers one that the file defines as well;
            ``workflow.definition``: what a plugin defines is no workflow.
        PluginError: Of one that is wanted nobody, or more than one, can be asked (``plugin.doubled`` and its kin).
    """
    promised = _promised(catalogue)
    for name in sorted({one.provided.name for one in promised}.intersection(config.stages.workflows)):
        _refuse_two(name, config, catalogue)
    wanted = _wanted(config, promised, begun_for)
    if not wanted:
        return config
    found = {name: _built(catalogue, parts, name, where) for name, where in sorted(wanted.items())}
    workflows = {**config.stages.workflows, **{name: part.thing for name, part in found.items()}}
    stages = config.stages.model_copy(update={"workflows": FrozenDict(workflows)})
    six = attrs.evolve(config.six, stages=stages)
    origins = dict(entry for part in found.values() for entry in _origins(part))
    return attrs.evolve(config, six=six, digest=digest_of(six), origins={**config.origins, **origins})


def is_promised(name: str, catalogue: Catalogue) -> bool:
    """Whether any installed plugin promises a workflow of that name."""
    return any(one.provided.name == name for one in _promised(catalogue))


def _promised(catalogue: Catalogue) -> list[Provider]:
    """What any installed plugin promises, also what may not be used: who wants that is told why."""
    return [*catalogue.offers_of(_KIND), *catalogue.offers_out(_KIND)]


def _wanted(config: EffectiveConfig, promised: Sequence[Provider], begun_for: str | None) -> dict[str, str]:
    """The workflows of plugins that are asked for, each with the place that asks."""
    every = [one.provided.name for one in promised if one.row.status in _MEANT]
    found = {} if begun_for is None else {begun_for: "the session's workflow"}
    for name, stage in config.stages.stages.items():
        if stage.workflow is not None:
            found[stage.workflow] = _place(config, name, "workflow")
        found |= dict.fromkeys(stage.workflows or (), _place(config, name, "workflows"))
        if stage.workflows is None and stage.executor.rpartition(":")[2] == ORCHESTRATES:
            found = {**dict.fromkeys(every, _place(config, name, "executor")), **found}
    names = {one.provided.name for one in promised}.difference(config.stages.workflows)
    return {name: where for name, where in found.items() if name in names}


def _place(config: EffectiveConfig, stage: str, key: str) -> str:
    return config.origin(("stages", stage, key)).text()


def _refuse_two(name: str, config: EffectiveConfig, catalogue: Catalogue) -> None:
    origin = config.origin(_path(name))
    ids = [one.row.record.id for one in catalogue.providers_of(_KIND, name) if one.row.takes_part]
    if ids and origin.layer != "plugin":
        message = f"the workflow {name} is defined by {origin.text()} and by the plugin {' and '.join(ids)}"
        hint = f"take it out of the file, or plugins: {{disable: [{ids[0]}]}} in harness.yaml"
        raise ConfigError(message, code="config.two_workflows", where=origin.text(), hint=hint, plugins=ids)


def _built(catalogue: Catalogue, parts: Parts, name: str, where: str | None = None) -> Part:
    """The definition, and whose it is; a mistake in it is told with the plugin and the place in the definition."""
    try:
        return parts.part(Need(_KIND, name, where=where))
    except ConfigError as error:
        if error.code != "workflow.definition":
            raise
        plugin = catalogue.resolve(_KIND, name).row.record.id
        message = f"the workflow {name} of the plugin {plugin} is none: {error.where or '/'}: {error.message}"
        hint = f"harness plugins info {plugin}"
        told = {"hint": error.hint or hint, "plugin": plugin, **error.facts}
        raise ConfigError(message, code=error.code, where=where, **told) from error


def _origins(part: Part) -> Iterator[tuple[str, Origin]]:
    """Where the definition and what it sets come from."""
    origin = Origin("plugin", _source(part.plugin_id, part.plugin_version))
    said = [(), *((key,) for key in part.thing.model_fields_set)]
    said += [("models", slot) for slot in part.thing.models]
    return ((format_path((*_path(part.need.name), *path)), origin) for path in said)


def _source(plugin: str, version: str) -> str:
    return f"plugin {plugin} {version}"


def _path(name: str) -> tuple[str, ...]:
    return ("workflows", name)


def listed_workflows(config: EffectiveConfig, catalogue: Catalogue, parts: Parts) -> list[dict[str, Any]]:
    """What lists say of the workflows of the file and of those that plugins offer, wanted or not, by name and source.

    What plugin and file both have stands there twice; of one that cannot be used it is said why.
    """
    defined = config.stages.workflows.items()
    found = [_item(name, config.origin(_path(name)).text(), one.description) for name, one in defined]
    meant = [one for one in _promised(catalogue) if one.row.status in _MEANT]
    found += [_offer_item(one, catalogue, parts) for one in meant]
    return sorted(found, key=lambda one: (one["name"], one["source"]))


def _offer_item(offer: Provider, catalogue: Catalogue, parts: Parts) -> dict[str, Any]:
    name, source = offer.provided.name, _source(offer.row.record.id, offer.row.record.version)
    try:
        return _item(name, source, _built(catalogue, parts, name).thing.description)
    except HarnessError as error:
        return _item(name, source, None, problem=str(error))


def _item(name: str, source: str, description: str | None, *, problem: str | None = None) -> dict[str, Any]:
    return {"name": name, "description": description, "source": source, "problem": problem}
