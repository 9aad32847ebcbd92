"""The engine ``sandbox``: the code of a step, for CPython inside a sandbox, which is refused until there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import EngineHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .engine import SandboxEngine

__all__ = ["harness_provide_engines"]


@implements(hooks.harness_provide_engines)
def harness_provide_engines() -> list[Offer[Any]]:
    """One engine, named ``sandbox``."""
    return [Offer(kind="engine", name="sandbox", build=_build, look=_look)]


def _build(settings: None, host: EngineHost) -> SandboxEngine:
    from .engine import SandboxEngine

    return SandboxEngine()


def _look(settings: None, host: EngineHost) -> str:
    """Say that it runs nothing before anybody relies on it.

    Raises:
        PluginError: ``engine.not_available``.
    """
    from .engine import no_sandbox

    raise no_sandbox()
