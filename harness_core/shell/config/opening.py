"""Where the person stands, what they typed and which plugins are installed in, their project's configuration out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from harness_hookspecs.host import Ports

from .effective import EffectiveConfig
from .folders import find_project
from .load import RuleCheck, load_config
from .sections import PluginSchemas

__all__ = ["Provides", "installed_schemas", "open_config"]


class _Offered(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def config(self) -> Mapping[str, Any] | None: ...


class Provides(Protocol):
    """A plugin as its manifest describes it."""

    @property
    def id(self) -> str:
        """The plugin's id."""

    @property
    def provides(self) -> Iterable[_Offered]:
        """What it promises to offer."""


def installed_schemas(plugins: Iterable[Provides]) -> PluginSchemas:
    """Collect the settings schemas of the offers that are installed, by ``NAME`` and by ``ID:NAME``."""
    found: dict[tuple[str, str], Mapping[str, Any] | None] = {}
    for plugin in plugins:
        for offered in plugin.provides:
            found.setdefault((offered.kind, offered.name), offered.config)
            found[offered.kind, f"{plugin.id}:{offered.name}"] = offered.config
    return found


def open_config(
    start: str | Path | None,
    ports: Ports,
    *,
    env: Mapping[str, str],
    plugins: Iterable[Provides],
    flags: Mapping[str, Any] | None = None,
    check_rule: RuleCheck | None = None,
) -> EffectiveConfig:
    """Find the project and load its configuration.

    Args:
        start: The project's folder, as ``--project`` names it; None looks from the working folder upwards.
        ports: The doors to the world; only files are used.
        env: The environment.
        plugins: What is installed.
        flags: As for ``load_config``.
        check_rule: As for ``load_config``.

    Raises:
        ConfigError: The files are wrong.
        NotFound: ``start`` is no folder.
    """
    project = find_project(Path(start or "."), exact=start is not None)
    return load_config(
        project, ports.files, env=env, flags=flags, schemas=installed_schemas(plugins), check_rule=check_rule
    )
