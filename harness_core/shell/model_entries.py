"""The model entries of a configuration and the catalogue in; rows about them, settings and a probe's findings out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import attrs

from harness_core.settings.models import ModelEntry
from harness_core.settings.problems import nearest
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.folders import has_project
from harness_core.shell.config.trust import TRUST_HINT
from harness_hookspecs.errors import InternalError, NotFound, PluginError, ProviderError
from harness_hookspecs.host import Ports
from harness_hookspecs.provider import ModelFacts, Probes

from .kind_hosts import granted_secret, register_secrets
from .parts import Need, Parts
from .plugins.catalogue import Catalogue
from .redaction import Redactor

__all__ = ["EntryHost", "EntryRow", "entry_need", "entry_rows", "find_entry", "no_model", "probe"]


class EntryRow(NamedTuple):
    """What is known of a model entry without importing its provider; ``plugin`` is ``None`` when nobody offers it."""

    name: str
    provider: str
    plugin: str | None
    default: bool
    reason: str | None
    path: str | None
    capabilities: tuple[str, ...]
    context_tokens: int
    origin: str


def entry_rows(config: EffectiveConfig, catalogue: Catalogue) -> list[EntryRow]:
    """Describe each entry, by name."""
    return [_row(name, config, catalogue) for name in sorted(config.models.models)]


def _row(name: str, config: EffectiveConfig, catalogue: Catalogue) -> EntryRow:
    entry = config.models.models[name]
    plugin, reason = None, None
    try:
        plugin = catalogue.resolve("provider", entry.provider).row.record.id
    except PluginError as error:
        reason = str(error)
    return EntryRow(
        name=name,
        provider=entry.provider,
        plugin=plugin,
        default=name == config.models.default_name(),
        reason=reason,
        path=entry.path,
        capabilities=entry.capabilities,
        context_tokens=entry.context_size,
        origin=config.origin(("models", name)).text(),
    )


def entry_need(config: EffectiveConfig, name: str) -> Need:
    """What an entry asks for: its provider, with the line that names it."""
    where = config.origin(("models", name, "provider")).text()
    return Need("provider", config.models.models[name].provider, entry=name, where=where)


def no_model(config: EffectiveConfig) -> tuple[str, str]:
    """Say of a configuration without a model why it has none, and what to do."""
    waiting = [] if config.trusted else [leaf.path[1] for leaf in config.untrusted_leaves if leaf.path[0] == "models"]
    names = ", ".join(dict.fromkeys(map(str, waiting)))
    if names:
        return f"models.yaml names {names}; models do not count before the project is trusted", TRUST_HINT
    here = config.project is not None and has_project(config.project)
    return "models.yaml names no model", "name one in .harness/models.yaml" if here else "harness init"


def find_entry(config: EffectiveConfig, name: str) -> ModelEntry:
    """Give an entry.

    Raises:
        NotFound: There is none of that name (``model.not_found``).
    """
    found = config.models.models.get(name)
    if found is None:
        hint = nearest(name, config.models.models) or "harness models lists them"
        if config.untrusted_leaves and not config.trusted:
            hint = "models of a project that is not trusted do not count before: harness trust"
        raise NotFound(f'models.yaml has no model "{name}"', code="model.not_found", hint=hint)
    return found


@attrs.frozen
class EntryHost:
    """``ProviderHost`` for a call outside any session."""

    ports: Ports
    project_dir: Path
    state_dir: Path
    entry_name: str
    redactor: Redactor = attrs.field(repr=False)

    def secret(self, reference: str) -> str:
        """The value behind ``env:NAME`` or ``file:PATH``, from now on redacted in what the provider says.

        Raises:
            ConfigError: As :func:`granted_secret`.
        """
        return granted_secret(reference, f"models.{self.entry_name}", self.ports, self.project_dir, self.redactor)


def probe(name: str, config: EffectiveConfig, catalogue: Catalogue, ports: Ports) -> ModelFacts:
    """Build the provider of an entry, ask it what its model can do and close it again.

    Raises:
        NotFound: There is no such entry.
        PluginError: Its provider cannot be built, or broke (``plugin.raised``).
        ProviderError: The model cannot be reached or loaded, or its provider cannot be asked (``provider.no_probe``)
            or gives no facts (``provider.no_answer``).
    """
    entry = find_entry(config, name)
    if config.project is None or config.folders is None:
        raise InternalError("A session's own configuration has no folders to probe from.")
    redactor = Redactor()
    register_secrets(redactor, catalogue, config.models, ports, config.project)
    host = EntryHost(ports, config.project, config.folders.state, name, redactor)
    parts = Parts(catalogue, lambda _, schema: config.settings_for("provider", name, schema), lambda _: host, redactor)
    need = entry_need(config, name)
    try:
        if not isinstance(parts.get(need), Probes):
            message = f"the provider {entry.provider} cannot be asked what its models can do"
            hint = "harness models shows what its entry says of it"
            raise ProviderError(message, code="provider.no_probe", where=need.where, hint=hint)
        facts: object = parts.ask(need, "probe")
    finally:
        failed = parts.close()
    if failed:
        raise failed[0]
    if not isinstance(facts, ModelFacts):
        message = f"the provider {entry.provider} gave {type(facts).__name__} where ModelFacts belong"
        raise ProviderError(message, code="provider.no_answer", where=need.where)
    return facts
