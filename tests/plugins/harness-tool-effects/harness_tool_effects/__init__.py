"""The tool set ``effects``: every call leaves one line in a file outside, where a test can count it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ToolHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .settings import EffectsSettings
    from .tool import EffectsTools

__all__ = ["harness_provide_tools"]


@implements(hooks.harness_provide_tools)
def harness_provide_tools() -> list[Offer[Any]]:
    """One set, named ``effects``."""
    return [Offer(kind="tool", name="effects", build=_build, settings=_settings)]


def _build(settings: EffectsSettings, host: ToolHost) -> EffectsTools:
    from .tool import build

    return build(settings, host)


def _settings() -> type[EffectsSettings]:
    from .settings import EffectsSettings

    return EffectsSettings
