"""The roles that tests bind: some look at their context, some misbehave on purpose; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import EXECUTOR_ROLES, Offer

if TYPE_CHECKING:
    from harness_hookspecs.store import StoredEvent

__all__ = ["harness_on_event", "harness_provide_roles"]

_NAMES = (
    "probe",
    "delegating",
    "late-delegating",
    "wrong-kind",
    "wire",
    "garbage",
    "raising",
    "swallowing",
    "returning-in-finally",
    "resuming",
    "dying",
    "counting",
    "editing",
    "unasked",
    "keeping",
    "asking",
    "asking-at-once",
    "impostor",
)


_CHOOSING = ("own-plans", "own-words")


@implements(hooks.harness_provide_roles)
def harness_provide_roles() -> list[Offer[Any]]:
    """One offer a behaviour, each for the role of agent stages; and two that answer for some tasks of all roles."""
    found = [Offer(kind="role", name=name, build=_builder(name), roles=("worker.ai-generate",)) for name in _NAMES]
    return [*found, *(Offer(kind="role", name=name, build=_choosing(name), roles=EXECUTOR_ROLES) for name in _CHOOSING)]


def _builder(name: str) -> Callable[[Any, Any], Any]:
    def build(settings: Any, host: Any) -> Any:
        from .role import Probe

        return Probe(name)

    return build


def _choosing(name: str) -> Callable[[Any, Any], Any]:
    def build(settings: Any, host: Any) -> Any:
        from .choosing import OwnPlans, OwnWords

        return OwnPlans() if name == "own-plans" else OwnWords()

    return build


@implements(hooks.harness_on_event)
def harness_on_event(event: StoredEvent) -> None:
    """Write a line for each event to the file that the environment names, or fail when it says so."""
    import os

    file = os.environ.get("HARNESS_PROBE_EVENTS")
    if not file:
        return
    from .role import witness

    witness(file, f"{event.seq} {event.type}")
