"""The approver ``terminal``: asks the person who sits there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import ApproverHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .approver import TerminalApprover
    from .settings import TerminalSettings

__all__ = ["harness_provide_approvers"]


@implements(hooks.harness_provide_approvers)
def harness_provide_approvers() -> list[Offer[Any]]:
    """One approver, named ``terminal``."""
    return [Offer(kind="approver", name="terminal", build=_build, settings=_settings)]


def _build(settings: TerminalSettings, host: ApproverHost) -> TerminalApprover:
    from .approver import build

    return build(settings, host)


def _settings() -> type[TerminalSettings]:
    from .settings import TerminalSettings

    return TerminalSettings
