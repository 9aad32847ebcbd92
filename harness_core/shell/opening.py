"""A project, overrides and options in, the configuration, the catalogue and the part builder of a host out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from harness_hookspecs.errors import ConfigError, HarnessError, NotFound
from harness_hookspecs.kit.paths import decode_path

from .config.opening import open_config
from .engines import Engines
from .kind_hosts import PartHost, register_secrets
from .parts import Need, Parts
from .plugins.index import open_index
from .plugins.opening import open_catalogue
from .redaction import Redactor

if TYPE_CHECKING:
    from harness_hookspecs.host import Ports, WaitLock
    from harness_hookspecs.store import Store

    from .assembly import Assembly
    from .config.effective import EffectiveConfig
    from .plugins.catalogue import Catalogue

__all__ = ["Opened", "PluginFlags", "open_project"]


class PluginFlags(Protocol):
    """The flags that decide about plugins before anything is looked for."""

    @property
    def disabled(self) -> Sequence[tuple[str, str]]: ...

    @property
    def no_plugins(self) -> bool: ...


@attrs.frozen
class _NoFlags:
    disabled: Sequence[tuple[str, str]] = ()
    no_plugins: bool = False


@attrs.define(eq=False)
class Opened:
    """What a host stands on."""

    ports: Ports
    config: EffectiveConfig
    catalogue: Catalogue
    project: Path
    data_dir: Path
    state_dir: Path
    redactor: Redactor
    terminal: tuple[int, int] | None
    parts: Parts = attrs.field(init=False)
    _engine_lock: WaitLock = attrs.field(init=False)
    _running: dict[str | None, Opened] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._engine_lock = self.ports.wait.lock()
        self.parts = self.new_parts(self.config)

    def running(self, workflow: str | None = None) -> Opened:
        """This one under the configuration of the sessions that it runs: with the workflows of plugins that its stages
        may use, and with the one of that name, for a session that is begun for it.

        Raises:
            ConfigError: As ``with_offered``.
            PluginError: Likewise.
        """
        if workflow in self._running:
            return self._running[workflow]
        from .offered_workflows import is_promised, with_offered  # with all that says what a workflow is

        if workflow is not None and not is_promised(workflow, self.catalogue):  # plans may have any name
            return self.running()
        config = with_offered(self.config, self.catalogue, self.parts, begun_for=workflow)
        found = self if config is self.config else copy(self)
        found.config = config
        self._running[workflow] = found
        return found

    def disagreements(self) -> list[HarnessError]:
        """All that is written down and would stop a session or be left out of one (``Assembly.disagreements``)."""
        found = self.assembly(live=False).disagreements()
        try:
            self.running()
        except HarnessError as error:
            found.append(error)
        return found

    def new_parts(self, config: EffectiveConfig) -> Parts:
        """A builder of parts under a configuration, this host's or a session's own."""
        parts = Parts(
            self.catalogue,
            lambda need, schema: config.settings_for(need.kind, need.key[1], schema),
            lambda need: self._host_of(need, parts, config),
            self.redactor,
        )
        return parts

    def _engines(self, parts: Parts, config: EffectiveConfig) -> Engines:
        return Engines(self.catalogue, parts, config, self._engine_lock)

    def _host_of(self, need: Need, parts: Parts, config: EffectiveConfig) -> PartHost:
        return PartHost(
            ports=self.ports,
            project_dir=self.project,
            state_dir=self.state_dir,
            data_dir=self.data_dir,
            kind=need.kind,
            entry_name=need.key[1],
            terminal=self.terminal,
            redactor=self.redactor,
            find_artifact=lambda name: parts.get(Need("artifact", name)),
            engines=self._engines(parts, config),
        )

    def open_store(self) -> Store:
        """Open the configured log.

        Raises:
            StoreError: It cannot be read or written; a file that is not ours stays as it is.
        """
        store: Store = self.parts.get(self._need_of_store())
        return store

    def look_at_store(self) -> str | None:
        """Say whether the configured log would open, without a write; ``None`` when its plugin cannot tell.

        Raises:
            StoreError: As ``open_store``.
        """
        return self.parts.look(self._need_of_store())

    def name_of_removals(self) -> str:
        """What the head of the configured log's own stream is copied out as, beside the heads of sessions.

        No two logs share the id of a session, but each has a ``store:main``: what was removed from one must not be
        missed in another. They are told apart by what their plugin says of their place, without the data folder, which
        may move. A plugin that words it otherwise later costs the comparison with an older copy and raises no alarm.
        Asked once the log is open: before, it may not be there yet.

        Raises:
            StoreError: As ``open_store``.
        """
        from .removed import MAIN  # late: who lists sessions reads no event

        said = f"{self.config.harness.store.plugin} {self.look_at_store()}".replace(str(self.data_dir), "")
        return f"{MAIN}.{sha256(said.encode()).hexdigest()[:16]}"

    def _need_of_store(self) -> Need:
        name = self.config.harness.store.plugin
        return Need("store", name, where=self.config.origin(("store", "plugin")).text())

    def learn_secrets(self, store: Store, session_id: str) -> None:
        """Know the secrets that a session's own configuration refers to; it may be of another project, or older.

        Called before anything is posted to it: a row of the inbox stays as it was posted (I-29).
        """
        from harness_core.kernel.projections.event import payload_of

        from .replaying import recorded_config

        first, *rest = store.read(f"session:{session_id}")
        with suppress(NotFound):  # it died before it recorded one: nothing ran yet that could know a secret
            config = recorded_config(store, session_id, rest)
            project = Path(decode_path(payload_of(first)["project"]))
            settings = config.harness.plugins.settings
            register_secrets(self.redactor, self.catalogue, config.models, self.ports, project, settings=settings)

    def build_observers(self) -> None:
        """Build the installed observers that can be and may be; for who ends a session without the parts to run it."""
        with suppress(ConfigError):
            self.config.require_trust()
            for one in self.catalogue.offers_of("observer"):
                with suppress(HarnessError):
                    self.parts.get(Need("observer", one.provided.name, optional=True))

    def assembly(self, config: EffectiveConfig | None = None, *, live: bool = True) -> Assembly:
        """The maker of sessions' parts, for running or for replaying."""
        from .assembly import Assembly  # with all that runs sessions, which looking at them does not need

        chosen = config or self.config
        parts = self.parts if live and config is None else self.new_parts(chosen)
        engines = self._engines(parts, chosen)
        return Assembly(chosen, self.catalogue, parts, engines, self.project, self.data_dir, live)


def open_project(
    project: str | Path | None,
    ports: Ports,
    *,
    overrides: Mapping[str, Any] | None = None,
    flags: PluginFlags | None = None,
    terminal: tuple[int, int] | None = None,
    env: Mapping[str, str] | None = None,
) -> Opened:
    """Read everything that is needed before a session; no plugin is imported.

    Args:
        project: The folder; ``None`` and ``.`` look for the nearest ``.harness`` upwards.
        ports: The doors.
        overrides: Config paths to values, the highest layer.
        flags: Which plugins are left out.
        terminal: File descriptors of a person's terminal.
        env: The environment; the process's own when omitted.

    Raises:
        ConfigError: The configuration is wrong in one or more places.
        PluginError: A required plugin does not take part.
        NotFound: The project is no folder.
    """
    environment = os.environ if env is None else env
    start = None if project is None or str(project) == "." else project
    index = open_index()
    config = open_config(start, ports, env=environment, plugins=index.records, flags=overrides)
    if config.project is None or config.folders is None:
        raise ConfigError("the configuration has no project")
    chosen = flags or _NoFlags()
    catalogue = open_catalogue(
        index, config, disabled=chosen.disabled, no_plugins=chosen.no_plugins, processes=ports.processes
    )
    redactor = Redactor()
    settings = config.harness.plugins.settings
    register_secrets(redactor, catalogue, config.models, ports, config.project, settings=settings)
    return Opened(
        ports, config, catalogue, config.project, config.folders.data, config.folders.state, redactor, terminal
    )
