"""The effective configuration: typed settings, their digest, and for each leaf where it comes from and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import attrs
from pydantic import ValidationError

from harness_core.settings.compression import CompressionSettings
from harness_core.settings.harness import HarnessSettings
from harness_core.settings.models import ModelsSettings
from harness_core.settings.paths import ConfigPath, format_path, parse_path
from harness_core.settings.policies import PoliciesSettings
from harness_core.settings.problems import Problem, nearest
from harness_core.settings.stages import StagesSettings
from harness_core.settings.tools import ToolsSettings
from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.kit.canonical import digest

from .explain import Explanation, dig, explain_leaf, leaves_below
from .folders import Folders
from .origins import Layer, Origin, Tree
from .trust import Trusted, UntrustedLeaf, untrusted_error
from .validated import Six, handed_settings, of_document

__all__ = ["EffectiveConfig"]


@attrs.frozen(eq=False, kw_only=True)
class EffectiveConfig:
    """What holds, all layers laid over each other.

    Attributes:
        six: The settings of the six files.
        digest: SHA-256 of the settings alone: the same settings have the same digest, wherever they were written.
        origins: Where each key that any layer sets comes from, by the key's text.
        warnings: What is allowed and can hardly be meant.
        untrusted_leaves: What the project's files set that only a trusted project may set; left out of the settings
            while the project is not trusted.
        trusted: Whether the project is trusted, or has nothing that needs trust.
        trusted_earlier: What was trusted of it, the same or not; None when nothing was, or nothing needs it.
        ignored: The keys of the project's files that do not count now.
        files: The files that were read, as they are shown.
        project: The folder that holds ``.harness``; None for a session's own configuration.
        folders: The folders of the person; None for a session's own configuration.
        trees: What each layer says, for ``explain``; empty for a session's own configuration.
    """

    six: Six
    digest: str
    origins: Mapping[str, Origin]
    warnings: tuple[Problem, ...] = ()
    untrusted_leaves: tuple[UntrustedLeaf, ...] = ()
    trusted: bool = True
    trusted_earlier: Trusted | None = None
    ignored: tuple[ConfigPath, ...] = ()
    files: tuple[str, ...] = ()
    project: Path | None = None
    folders: Folders | None = None
    trees: Mapping[Layer, Tree | None] = {}

    @property
    def harness(self) -> HarnessSettings:
        """What harness.yaml sets."""
        return self.six.harness

    @property
    def models(self) -> ModelsSettings:
        """What models.yaml sets."""
        return self.six.models

    @property
    def tools(self) -> ToolsSettings:
        """What tools.yaml sets."""
        return self.six.tools

    @property
    def stages(self) -> StagesSettings:
        """What stages.yaml sets."""
        return self.six.stages

    @property
    def policies(self) -> PoliciesSettings:
        """What policies.yaml sets."""
        return self.six.policies

    @property
    def compression(self) -> CompressionSettings:
        """What compression.yaml sets."""
        return self.six.compression

    def document(self) -> dict[str, Any]:
        """Give everything that a session keeps of it, as plain JSON: settings, digest, origins.

        ``from_document`` gives it back, so that resume and replay run under what the session ran under.
        """
        origins = {path: attrs.asdict(origin) for path, origin in self.origins.items()}
        return {"settings": self.six.kept(), "digest": self.digest, "origins": origins}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Build the configuration that a session has kept.

        Raises:
            ConfigError: The document is not one, or was written by another version whose settings are not ours
                (code ``config.document``).
        """
        try:
            six = of_document(document["settings"])
            origins = {path: Origin(**origin) for path, origin in document["origins"].items()}
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            message = "the configuration that the session has kept cannot be read by this version"
            raise ConfigError(message, code="config.document") from error
        found = cls(six=six, digest=digest_of(six), origins=origins)
        if found.digest != document["digest"]:
            message = "the configuration that the session has kept does not match its digest"
            raise ConfigError(message, code="config.document", kept=document["digest"], computed=found.digest)
        return found

    def origin(self, path: str | Sequence[str | int]) -> Origin:
        """Give where a key comes from; a key that no layer sets is built in."""
        text = path if isinstance(path, str) else format_path(path)
        return self.origins.get(text, Origin("built-in"))

    def explain(self, path: str) -> tuple[Explanation, ...]:
        """Explain a key, or every key below it.

        Raises:
            NotFound: There is no such key (code ``config.no_key``).
            ConfigError: The text is not a key.
        """
        parts = parse_path(path)
        flat = {key: item for file in self.six.document().values() for key, item in file.items()}
        found = leaves_below(parts, flat, self.trees)
        if not found:
            above = flat if len(parts) == 1 else dig(flat, parts[:-1])
            known = [str(key) for key in above] if isinstance(above, Mapping) else []
            below = f"{format_path(parts[:-1])} has {', '.join(known)}" if known and parts[:-1] else None
            raise NotFound(
                f'there is no key "{format_path(parts)}"',
                code="config.no_key",
                hint=nearest(str(parts[-1]), known) or below or "harness config show lists them",
            )
        return tuple(explain_leaf(at, dig(flat, at), self.trees, self.ignored) for at in found)

    def settings_for(self, kind: str, name: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """Give the settings that an offer is built with.

        Args:
            kind: Kind of the offer. ``store`` is the one of harness.yaml, ``provider`` a model entry, ``tool`` an
                entry of tools.yaml, anything else what stands in ``plugins.settings``.
            name: Name of the entry (the offer's own name for all but ``provider``).
            schema: The offer's ``config`` schema from its manifest.

        Returns:
            Plain JSON; empty when nothing is set.
        """
        document = self.six.document()
        places: dict[str, Any] = {
            "store": document["harness"]["store"],
            "provider": document["models"]["models"].get(name, {}),
            "tool": document["tools"]["tools"].get(name, {}),
        }
        entry = places[kind] if kind in places else document["harness"]["plugins"]["settings"].get(name, {})
        return handed_settings(kind, entry, schema)

    def require_trust(self) -> None:
        """Stop what an untrusted project may not start.

        Raises:
            ConfigError: The project is not trusted and sets what only a trusted one may (code ``config.untrusted``).
        """
        if not self.trusted and self.project is not None:
            raise untrusted_error(self.untrusted_leaves, self.project, self.trusted_earlier)


def digest_of(six: Six) -> str:
    """Give the digest of the settings."""
    return digest(six.kept())
