"""The approver ``policy``: answers by written rules, without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ApproverHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .approver import PolicyApprover
    from .settings import PolicySettings

__all__ = ["harness_provide_approvers"]


@implements(hooks.harness_provide_approvers)
def harness_provide_approvers() -> list[Offer[Any]]:
    """One approver, named ``policy``."""
    return [Offer(kind="approver", name="policy", build=_build, settings=_settings)]


def _build(settings: PolicySettings, host: ApproverHost) -> PolicyApprover:
    from .approver import build

    return build(settings, host)


def _settings() -> type[PolicySettings]:
    from .settings import PolicySettings

    return PolicySettings
