"""The executor ``branches`` that tests give a stage; nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_executors"]


@implements(hooks.harness_provide_executors)
def harness_provide_executors() -> list[Offer[Any]]:
    """The executor ``branches``; it takes no settings."""
    return [Offer(kind="executor", name="branches", build=_build)]


def _build(settings: Any, host: Any) -> Any:
    from .executor import Branches

    return Branches()
