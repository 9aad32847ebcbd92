"""What each kind of plugin may ask of the host, as frozen values over the same few facts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from harness_hookspecs.artifact import ArtifactType
from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.host import Ports

from .redaction import Redactor

__all__ = ["PartHost", "resolve_secret"]


@attrs.frozen
class PartHost:
    """Implements every host protocol of a kind; a plugin is handed it typed as its own kind's (plugins.md)."""

    ports: Ports
    project_dir: Path
    state_dir: Path
    data_dir: Path
    entry_name: str
    terminal: tuple[int, int] | None
    redactor: Redactor = attrs.field(repr=False)
    find_artifact: Callable[[str], ArtifactType] = attrs.field(repr=False)

    def artifact_type(self, name: str) -> ArtifactType:
        """The artifact type of that name."""
        return self.find_artifact(name)

    def secret(self, reference: str) -> str:
        """The value behind a reference, from now on redacted everywhere (D-18)."""
        value = resolve_secret(reference, self.ports, self.project_dir)
        self.redactor.register(value)
        return value


def resolve_secret(reference: str, ports: Ports, project_dir: Path) -> str:
    """Resolve ``env:NAME`` or ``file:PATH``; nothing else is a reference.

    Raises:
        ConfigError: ``secret.missing`` or ``secret.reference``; the value itself is in no message.
    """
    kind, _, name = reference.partition(":")
    if kind == "env":
        value = os.environ.get(name)
        if not value:
            raise ConfigError(f"the environment has no {name}", code="secret.missing", hint=f"set {name}")
        return value
    if kind == "file":
        path = (project_dir / Path(name).expanduser()).resolve()
        try:
            return ports.files(path.parent).read_bytes(path.name, limit_bytes=65_536).decode().strip()
        except NotFound as error:
            raise ConfigError(f"there is no secret file {name}", code="secret.missing") from error
    raise ConfigError(f"{kind}: is no kind of secret; write env:NAME or file:PATH", code="secret.reference")
