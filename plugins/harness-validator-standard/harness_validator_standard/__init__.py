"""What harness-validator-standard offers: ``payload`` and ``changed_files``; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ValidatorHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .validator import ChangedFilesValidator, PayloadValidator

__all__ = ["harness_provide_validators"]


@implements(hooks.harness_provide_validators)
def harness_provide_validators() -> list[Offer[Any]]:
    """One validator a level; neither takes settings."""
    return [
        Offer(kind="validator", name="payload", build=_build_payload),
        Offer(kind="validator", name="changed_files", build=_build_changed_files),
    ]


def _build_payload(settings: Any, host: ValidatorHost) -> PayloadValidator:
    from .validator import PayloadValidator

    return PayloadValidator(host)


def _build_changed_files(settings: Any, host: ValidatorHost) -> ChangedFilesValidator:
    from .validator import ChangedFilesValidator

    return ChangedFilesValidator(host)
