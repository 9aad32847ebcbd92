"""What harness-executor-listed offers: the executor ``listed`` and the engine ``plain``; nothing heavy is imported."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_engines", "harness_provide_executors"]


@implements(hooks.harness_provide_executors)
def harness_provide_executors() -> list[Offer[Any]]:
    """The executor ``listed``."""
    return [Offer(kind="executor", name="listed", build=_build_executor)]


@implements(hooks.harness_provide_engines)
def harness_provide_engines() -> list[Offer[Any]]:
    """The engine ``plain``."""
    return [Offer(kind="engine", name="plain", build=_build_engine)]


def _build_executor(settings: Any, host: Any) -> Any:
    from .executor import ListedExecutor

    return ListedExecutor()


def _build_engine(settings: Any, host: Any) -> Any:
    from harness_hookspecs.contracts.fake_engine import FakeEngine

    return FakeEngine()
