"""What harness-rules-cel offers: the rules engine ``cel``; nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_rules"]


@implements(hooks.harness_provide_rules)
def harness_provide_rules() -> list[Offer[Any]]:
    """The engine ``cel``; it takes no settings."""
    return [Offer(kind="rules", name="cel", build=_build)]


def _build(settings: Any, host: Any) -> Any:
    from .rules import CelRules

    return CelRules()
