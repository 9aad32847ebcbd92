"""What harness-provider-local offers: the provider ``local``; nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.hooks import harness_provide_providers as hook
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_providers"]


def _settings() -> Any:
    from .settings import LocalModelSettings

    return LocalModelSettings


def _build(settings: Any, host: Any) -> Any:
    from .provider import build

    return build(settings, host)


@implements(hook)
def harness_provide_providers() -> list[Offer[Any]]:
    """Offer the provider of local models."""
    return [Offer(kind="provider", name="local", settings=_settings, build=_build)]
