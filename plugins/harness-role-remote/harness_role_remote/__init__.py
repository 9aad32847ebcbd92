"""What harness-role-remote offers: the role harness ``remote``, for every executor role; nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import EXECUTOR_ROLES, Offer

if TYPE_CHECKING:
    from .settings import RemoteRoleSettings

__all__ = ["harness_provide_roles"]


@implements(hooks.harness_provide_roles)
def harness_provide_roles() -> list[Offer[Any]]:
    """The role harness ``remote`` for all six executor roles; nobody has it who does not bind it."""
    return [Offer(kind="role", name="remote", build=_build, settings=_settings, roles=EXECUTOR_ROLES)]


def _build(settings: Any, host: Any) -> Any:
    from .role import RemoteRole

    return RemoteRole(settings, host)


def _settings() -> type[RemoteRoleSettings]:
    from .settings import RemoteRoleSettings

    return RemoteRoleSettings
