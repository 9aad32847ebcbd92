"""The engine ``monty``: the code of a step, run by an interpreter of its own in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.host import EngineHost
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from .engine import MontyEngine
    from .settings import MontySettings

__all__ = ["harness_provide_engines"]


@implements(hooks.harness_provide_engines)
def harness_provide_engines() -> list[Offer[Any]]:
    """One engine, named ``monty``."""
    return [Offer(kind="engine", name="monty", build=_build, settings=_settings)]


def _build(settings: MontySettings, host: EngineHost) -> MontyEngine:
    from .engine import MontyEngine

    return MontyEngine(settings, host)


def _settings() -> type[MontySettings]:
    from .settings import MontySettings

    return MontySettings
