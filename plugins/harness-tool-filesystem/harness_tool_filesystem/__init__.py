"""The tool set ``filesystem``: read, search, list, edit and write files of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ToolHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .settings import FilesystemSettings
    from .tool import FilesystemTools

__all__ = ["harness_provide_tools"]


@implements(hooks.harness_provide_tools)
def harness_provide_tools() -> list[Offer[Any]]:
    """One set, named ``filesystem``."""
    return [Offer(kind="tool", name="filesystem", build=_build, settings=_settings)]


def _build(settings: FilesystemSettings, host: ToolHost) -> FilesystemTools:
    from .tool import build

    return build(settings, host)


def _settings() -> type[FilesystemSettings]:
    from .settings import FilesystemSettings

    return FilesystemSettings
