"""A built thing and its kind in, the methods that it lacks out; the protocol of a kind says which it must have.

Only presence is looked at: what a method takes and gives is seen when it is called. Protocols that a thing may keep
besides (``Previews``, ``Probes`` and the like) are no part of its kind's.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, Final

__all__ = ["PROTOCOL_OF_KIND", "missing_methods"]

PROTOCOL_OF_KIND: Final[Mapping[str, str]] = {
    "provider": "provider.Provider",
    "tool": "tool.ToolSet",
    "role": "role.RoleHarness",
    "compression": "compression.Compression",
    "validator": "validator.Validator",
    "artifact": "artifact.ArtifactType",
    "executor": "executor.Executor",
    "engine": "engine.Engine",
    "rules": "rules.Rules",
    "store": "store.Store",
    "sandbox": "sandbox.Sandbox",
    "mount": "mount.MountSource",
    "approver": "approver.Approver",
    "broker": "broker.Broker",
    "surface": "surface.Surface",
    "observer": "observer.Observer",
}
"""Where below ``harness_hookspecs`` the protocol of a kind stands; texts, so that none is imported before its use."""


def missing_methods(kind: str, thing: object) -> tuple[str, ...]:
    """Name the methods of the kind's protocol that a thing lacks, in the protocol's order."""
    module, _, name = PROTOCOL_OF_KIND[kind].rpartition(".")
    members: dict[str, Any] = vars(getattr(import_module(f"harness_hookspecs.{module}"), name))
    methods = [name for name, member in members.items() if isinstance(member, FunctionType) and name[0] != "_"]
    return tuple(name for name in methods if not callable(getattr(thing, name, None)))
