"""Every hook there is: one per kind, each returning offers, and two that listen. Read this first.

A plugin is a module that implements some of these with :func:`harness_hookspecs.implements`. Hooks are called
once per host, after the manifest was read and the first import was tried in a child process. Which of the offers is
used is the configuration's choice alone, never load order's (architecture D-11). A hook that raises is a
``plugin.failed`` event and one line on stderr; the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .markers import hookspec
from .offer import Offer

if TYPE_CHECKING:
    from .provider import Chunk
    from .store import StoredEvent

__all__ = [
    "HOOK_OF_KIND",
    "harness_on_chunk",
    "harness_on_event",
    "harness_provide_approvers",
    "harness_provide_artifacts",
    "harness_provide_brokers",
    "harness_provide_compressions",
    "harness_provide_engines",
    "harness_provide_executors",
    "harness_provide_mounts",
    "harness_provide_observers",
    "harness_provide_providers",
    "harness_provide_roles",
    "harness_provide_rules",
    "harness_provide_sandboxes",
    "harness_provide_stores",
    "harness_provide_surfaces",
    "harness_provide_tools",
    "harness_provide_validators",
    "harness_provide_workflows",
]


@hookspec
def harness_provide_providers() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.provider.Provider`, one per model entry that names it."""


@hookspec
def harness_provide_tools() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.tool.ToolSet`, once per session that may use it."""


@hookspec
def harness_provide_roles() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.role.RoleHarness`; ``roles`` says for which executor roles."""


@hookspec
def harness_provide_compressions() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.compression.Compression`."""


@hookspec
def harness_provide_validators() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.validator.Validator`; all of them run."""


@hookspec
def harness_provide_artifacts() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build an :class:`~harness_hookspecs.artifact.ArtifactType`, named as ``stages.yaml`` names it."""


@hookspec
def harness_provide_executors() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build an :class:`~harness_hookspecs.executor.Executor`."""


@hookspec
def harness_provide_engines() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build an :class:`~harness_hookspecs.engine.Engine`."""


@hookspec
def harness_provide_rules() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.rules.Rules`."""


@hookspec
def harness_provide_stores() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.store.Store`, one per host."""


@hookspec
def harness_provide_sandboxes() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.sandbox.Sandbox`."""


@hookspec
def harness_provide_mounts() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.mount.MountSource`."""


@hookspec
def harness_provide_approvers() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build an :class:`~harness_hookspecs.approver.Approver`; asked in configured order."""


@hookspec
def harness_provide_brokers() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.broker.Broker`."""


@hookspec
def harness_provide_surfaces() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.surface.Surface`."""


@hookspec
def harness_provide_observers() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build an :class:`~harness_hookspecs.observer.Observer`."""


@hookspec
def harness_provide_workflows() -> list[Offer[Any]]:  # type: ignore[empty-body]
    """Offers that build a :class:`~harness_hookspecs.workflow_definition.WorkflowDefinition`, named as the workflow."""


@hookspec
def harness_on_event(event: StoredEvent) -> None:
    """Told of every event after its commit, in order; the return value is dropped. Errors are never fatal."""


@hookspec
def harness_on_chunk(session_id: str, chunk: Chunk) -> None:
    """Told of provisional model text, joined to at most twenty calls a second; the return value is dropped."""


HOOK_OF_KIND: dict[str, str] = {
    "provider": "harness_provide_providers",
    "tool": "harness_provide_tools",
    "role": "harness_provide_roles",
    "compression": "harness_provide_compressions",
    "validator": "harness_provide_validators",
    "artifact": "harness_provide_artifacts",
    "executor": "harness_provide_executors",
    "engine": "harness_provide_engines",
    "rules": "harness_provide_rules",
    "store": "harness_provide_stores",
    "sandbox": "harness_provide_sandboxes",
    "mount": "harness_provide_mounts",
    "approver": "harness_provide_approvers",
    "broker": "harness_provide_brokers",
    "surface": "harness_provide_surfaces",
    "observer": "harness_provide_observers",
    "workflow": "harness_provide_workflows",
}
