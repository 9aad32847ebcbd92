"""The doors to the world in three sets: ``threads`` (the default), ``inline`` and ``simulated`` (D-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness_hookspecs.errors import ConfigError
from harness_hookspecs.host import Ports

if TYPE_CHECKING:
    from .failpoints import Failpoints

__all__ = ["PORT_SETS", "HostPorts", "NoThread", "make_ports"]

PORT_SETS = ("threads", "inline", "simulated")


class NoThread(RuntimeError):
    """The machine gives no further thread: it is no plugin's fault, and what was to be spawned has not begun."""


class HostPorts(Ports, Protocol):
    """What the host itself has of ports, beside what plugins see."""

    failpoints: Failpoints
    concurrent: bool
    """Whether spawned work goes on beside its spawner; a watch that never ends must not be spawned where it is not."""

    def close(self) -> None:
        """Give back threads that wait for work; called last, by the thread that made the ports."""


def make_ports(kind: str, *, seed: int = 0) -> HostPorts:
    """A new set of ports.

    Args:
        kind: One of :data:`PORT_SETS`.
        seed: For ``simulated``: decides every switch, time, id and random number.

    Raises:
        ConfigError: For another kind, or for a wrong ``HARNESS_FAILPOINT``.
    """
    if kind == "threads":
        from .threads import ThreadPorts

        return ThreadPorts()
    if kind == "inline":
        from .inline import InlinePorts

        return InlinePorts()
    if kind == "simulated":
        from .simulated import SimulatedPorts

        return SimulatedPorts(seed)
    raise ConfigError(f"there is no port set {kind!r}; choose one of {', '.join(PORT_SETS)}")
