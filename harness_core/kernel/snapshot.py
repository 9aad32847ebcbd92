"""A session's state in, strict JSON out, and back exactly: the same values, the same order, the same identities."""

from __future__ import annotations

from typing import Any

import attrs

from harness_hookspecs.kit.codec import dumps, loads_trusted

from .state import Approval, Causes, Failure, OpenRequest, SessionState, Usage, Visit

__all__ = ["snapshot_of", "state_of"]


def snapshot_of(state: SessionState) -> bytes:
    """Write the state down; one that was folded alike gives the same bytes.

    It is JSON in the order of the state and not the canonical form, which sorts keys and makes 1 of 1.0: what is asked
    first and what an event will say of a number would change with it.

    Raises:
        CodecError: Something in it is nested too deep to be written.
    """
    document = attrs.asdict(state)
    document["pending"] = [*state.pending]
    document["role_calls"] = {name: one.effect_id for name, one in state.role_calls.items()}
    document["timers"], document["externals"] = [*state.timers], [*state.externals]
    document["children"] = [*state.children]
    document["commands"] = sorted(state.commands)
    return dumps(document)


def state_of(snapshot: bytes) -> SessionState:
    """Read back what :func:`snapshot_of` wrote.

    Raises:
        CodecError: It is no JSON.
        KeyError, TypeError: It is no state of this version.
    """
    found = loads_trusted(snapshot)
    approvals = {name: Approval(**one) for name, one in found["approvals"].items()}
    requests = {name: _request(one) for name, one in found["open"].items()}
    restored = {
        "visit": _visit(found["visit"]),
        "open": requests,
        "role_calls": {name: requests[effect_id] for name, effect_id in found["role_calls"].items()},  # the same ones
        "timers": {effect_id: requests[effect_id] for effect_id in found["timers"]},
        "externals": {effect_id: requests[effect_id] for effect_id in found["externals"]},
        "children": {effect_id: requests[effect_id] for effect_id in found["children"]},
        "approvals": approvals,
        "pending": {name: approvals[name] for name in found["pending"]},  # and here: an end is told to one of both
        "causes": Causes(**found["causes"]),
        "commands": set(found["commands"]),
        "usage": Usage(**found["usage"]),
        "failure": _failure(found["failure"]),
    }
    return SessionState(**{**found, **restored})


def _visit(found: dict[str, Any] | None) -> Visit | None:
    return None if found is None else Visit(**{**found, "failure": _failure(found["failure"])})


def _request(found: dict[str, Any]) -> OpenRequest:
    suspended = found["suspended"]
    return OpenRequest(**{**found, "suspended": None if suspended is None else (suspended[0], suspended[1])})


def _failure(found: dict[str, Any] | None) -> Failure | None:
    return None if found is None else Failure(**found)
