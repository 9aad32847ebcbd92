"""The provider ``scripted``: answers written in a file, chosen by the request alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ProviderHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .provider import ScriptedProvider
    from .settings import ScriptedSettings

__all__ = ["harness_provide_providers"]


@implements(hooks.harness_provide_providers)
def harness_provide_providers() -> list[Offer[Any]]:
    """One provider, named ``scripted``."""
    return [Offer(kind="provider", name="scripted", build=_build, settings=_settings, look=_look)]


def _build(settings: ScriptedSettings, host: ProviderHost) -> ScriptedProvider:
    from .provider import build

    return build(settings, host)


def _look(settings: ScriptedSettings, host: ProviderHost) -> str:
    from .provider import look

    return look(settings, host)


def _settings() -> type[ScriptedSettings]:
    from .settings import ScriptedSettings

    return ScriptedSettings
