"""What harness-executor-orchestrate offers: the executor ``orchestrate``; nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_executors"]


@implements(hooks.harness_provide_executors)
def harness_provide_executors() -> list[Offer[Any]]:
    """The executor ``orchestrate``; it takes no settings."""
    return [Offer(kind="executor", name="orchestrate", build=_build)]


def _build(settings: Any, host: Any) -> Any:
    from .executor import OrchestrateExecutor

    return OrchestrateExecutor()
