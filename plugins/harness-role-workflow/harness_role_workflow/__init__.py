"""What harness-role-workflow offers: the role harness ``workflow``, the default; nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import EXECUTOR_ROLES, Offer

if TYPE_CHECKING:
    from .settings import WorkflowRoleSettings

__all__ = ["harness_provide_roles"]


@implements(hooks.harness_provide_roles)
def harness_provide_roles() -> list[Offer[Any]]:
    """The role harness ``workflow`` for all six executor roles."""
    return [Offer(kind="role", name="workflow", build=_build, settings=_settings, roles=EXECUTOR_ROLES)]


def _build(settings: Any, host: Any) -> Any:
    from .role import WorkflowRole

    return WorkflowRole(settings if settings is not None else _settings()(), host)


def _settings() -> type[WorkflowRoleSettings]:
    from .settings import WorkflowRoleSettings

    return WorkflowRoleSettings
