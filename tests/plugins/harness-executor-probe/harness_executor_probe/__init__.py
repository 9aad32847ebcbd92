"""The executors that tests give a stage; nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["harness_provide_executors"]


@implements(hooks.harness_provide_executors)
def harness_provide_executors() -> list[Offer[Any]]:
    """The executors ``branches`` and ``compiling``; they take no settings."""
    return [
        Offer(kind="executor", name="branches", build=_branches),
        Offer(kind="executor", name="compiling", build=_compiling),
    ]


def _branches(settings: Any, host: Any) -> Any:
    from .executor import Branches

    return Branches()


def _compiling(settings: Any, host: Any) -> Any:
    from .compiling import Compiling

    return Compiling()
