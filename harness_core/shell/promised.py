"""A built thing and its kind in, what it lacks out: methods of the kind's protocol, or being the kind's value at all.

Of methods only presence is looked at: what one takes and gives is seen when it is called. Protocols that a thing may
keep besides (``Previews``, ``Probes`` and the like) are no part of its kind's.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, Final

__all__ = ["PROTOCOL_OF_KIND", "VALUE_OF_KIND", "lacking"]

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


VALUE_OF_KIND: Final[Mapping[str, str]] = {"workflow": "workflow_definition.WorkflowDefinition"}
"""The same of the kinds that build a value and nothing that is called."""


def lacking(kind: str, thing: object) -> str | None:
    """Say in a few words what a thing lacks: methods, in the protocol's order, or being such a value."""
    if kind in VALUE_OF_KIND:
        wanted = _of_contract(VALUE_OF_KIND[kind])
        return None if isinstance(thing, wanted) else f"is no {wanted.__name__}"
    members: dict[str, Any] = vars(_of_contract(PROTOCOL_OF_KIND[kind]))
    methods = [name for name, member in members.items() if isinstance(member, FunctionType) and name[0] != "_"]
    missing = [name for name in methods if not callable(getattr(thing, name, None))]
    return f"has no method {', '.join(missing)}" if missing else None


def _of_contract(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"harness_hookspecs.{module}"), name)
