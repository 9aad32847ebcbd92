"""The doors to the world in three sets: ``threads`` (the default), ``inline`` and ``simulated`` (D-4)."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.errors import ConfigError

__all__ = ["PORT_SETS", "make_ports"]

PORT_SETS = ("threads", "inline", "simulated")


def make_ports(kind: str, *, seed: int = 0) -> Any:
    """A new set of ports.

    Args:
        kind: One of :data:`PORT_SETS`.
        seed: For ``simulated``: decides every switch, time, id and random number.

    Raises:
        ConfigError: For another kind.
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
