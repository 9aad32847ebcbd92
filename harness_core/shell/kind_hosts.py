"""What each kind of plugin may ask of the host, as frozen values over the same few facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from harness_hookspecs.errors import ConfigError, HarnessError, NotFound, PluginError
from harness_hookspecs.host import Ports

from .redaction import Redactor

if TYPE_CHECKING:
    from harness_core.settings.models import ModelsSettings
    from harness_hookspecs.artifact import ArtifactType
    from harness_hookspecs.engine import Engine
    from harness_hookspecs.rules import Rules

    from .engines import Engines
    from .plugins.catalogue import Catalogue

__all__ = ["PartHost", "granted_secret", "register_secrets", "resolve_secret"]

_KINDS = ("env:", "file:")
_GIVEN = {"provider": "models", "role": "plugins.settings"}
"""The kinds that are given secrets, and where in the configuration their references stand."""


@attrs.frozen
class PartHost:
    """Implements every host protocol of a kind; a plugin is handed it typed as its own kind's (plugins.md)."""

    ports: Ports
    project_dir: Path
    state_dir: Path
    data_dir: Path
    kind: str
    entry_name: str
    terminal: tuple[int, int] | None
    redactor: Redactor = attrs.field(repr=False)
    find_artifact: Callable[[str], ArtifactType] = attrs.field(repr=False)
    engines: Engines | None = attrs.field(default=None, repr=False)

    def artifact_type(self, name: str) -> ArtifactType:
        """The artifact type of that name."""
        return self.find_artifact(name)

    def rules(self) -> Rules:
        """The rules engine of the session."""
        if self.engines is None:
            raise PluginError("nothing evaluates rules here", code="plugin.missing")
        return self.engines.rules()

    def engine(self, name: str | None = None) -> Engine:
        """The engine of that name, or the usual one."""
        if self.engines is None:
            raise PluginError("nothing runs code here", code="engine.not_available")
        return self.engines.code(name).engine

    def secret(self, reference: str) -> str:
        """The value behind a reference, from now on redacted everywhere (D-18).

        Raises:
            PluginError: ``secret.not_granted``: only providers and roles are given secrets. What another kind asked
                for while it runs would be known to no other process, and lie in clear in what those post.
            ConfigError: As :func:`granted_secret`.
        """
        if self.kind not in _GIVEN:
            asked = reference if reference.startswith(_KINDS) else "one"
            message = f"a plugin of kind {self.kind} is given no secrets, and {self.entry_name} asks for {asked}"
            raise PluginError(message, code="secret.not_granted")
        where = f"{_GIVEN[self.kind]}.{self.entry_name}"
        return granted_secret(reference, where, self.ports, self.project_dir, self.redactor)


def granted_secret(reference: str, where: str, ports: Ports, project_dir: Path, redactor: Redactor) -> str:
    """The value behind a reference, known to the redactor before the plugin is given it.

    Raises:
        ConfigError: As :func:`resolve_secret`, and ``secret.too_short``. Something else than a reference may be the
            secret itself, which the plugin knows already: it is redacted as well.
        Refused: The file may not be read, or is none.
    """
    try:
        value = resolve_secret(reference, ports, project_dir)
    except ConfigError as error:
        if error.code == "secret.reference":
            error.where = where
            with suppress(ConfigError):
                redactor.register(reference)
        raise
    redactor.register(value)
    return value


def resolve_secret(reference: str, ports: Ports, project_dir: Path) -> str:
    """Resolve ``env:NAME`` or ``file:PATH``; nothing else is a reference.

    Raises:
        ConfigError: ``secret.missing``, ``secret.unreadable`` or ``secret.reference``; the value itself is in no
            message.
        Refused: The file may not be read, or is none.
    """
    kind, _, name = reference.partition(":")
    if kind == "env":
        return _variable(name)
    if kind == "file":
        return _content(name, ports, project_dir)
    # What was written is in no message, not even its beginning: it may be the secret itself.
    raise ConfigError("a secret is written as env:NAME or file:PATH, never as itself", code="secret.reference")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"the environment has no {name}", code="secret.missing", hint=f"set {name}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ConfigError(f"the secret in {name} is not UTF-8 text", code="secret.unreadable")
    return value


def _content(name: str, ports: Ports, project_dir: Path) -> str:
    try:
        path = (project_dir / Path(name).expanduser()).resolve()
        return ports.files(path.parent).read_bytes(path.name, limit_bytes=65_536).decode().strip()
    except NotFound as error:
        raise ConfigError(f"there is no secret file {name}", code="secret.missing") from error
    except UnicodeDecodeError:  # which holds the bytes, so it is not shown as the cause
        raise ConfigError(f"the secret file {name} is not UTF-8 text", code="secret.unreadable") from None
    except (OSError, ValueError, RuntimeError) as error:  # a user that is not there, a NUL, links in a circle
        raise ConfigError(f"{name!r} cannot be a secret file: {error}", code="secret.unreadable") from error


def register_secrets(
    redactor: Redactor,
    catalogue: Catalogue,
    models: ModelsSettings,
    ports: Ports,
    project_dir: Path,
    *,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Tell the redactor every secret that model entries and roles refer to, before any of them asks for one.

    Only providers and roles are given secrets, and only their own keys can refer to one, or what their manifest says
    those keys are where nothing is set: a text anywhere else is text, whatever it looks like. Who answers or replays
    asks for none, and must leave out what the run left out. What cannot be resolved is passed over: whoever needs it
    says so when it asks. Of an untrusted project nothing is read, because its entries do not count.

    Args:
        redactor: Is told.
        catalogue: Who offers what, with the manifests.
        models: The model entries.
        ports: The doors.
        project_dir: Where a relative file lies.
        settings: What is set in ``plugins.settings``, by offer.
    """
    schemas = catalogue.manifest_schemas()
    told = [(schemas.get(("provider", entry.provider)), entry.own) for entry in models.models.values()]
    told += [(schema, (settings or {}).get(name, {})) for (kind, name), schema in schemas.items() if kind == "role"]
    for schema, own in told:
        for reference in _references({**_defaults(schema or {}), **own}):
            with suppress(HarnessError):
                redactor.register(resolve_secret(reference, ports, project_dir))


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    keys = schema.get("properties", {})
    return {name: key["default"] for name, key in keys.items() if isinstance(key, Mapping) and "default" in key}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(_KINDS):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references(item)
