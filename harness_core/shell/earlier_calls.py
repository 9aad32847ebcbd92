"""A repair's place in its run in, the results that code was given there before out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_core.kernel.projections.event import decoded
from harness_core.kernel.state import OpenRequest, Visit
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.store import Store

__all__ = ["Earlier", "earlier_results"]

Earlier = Mapping[tuple[str, str, str, int], Mapping[str, Any]]
"""Scope, tool, digest of the arguments and number among equals of a call by code -> the event that has its result."""


def earlier_results(store: Store, stream: str, request: OpenRequest, visit: Visit) -> Earlier:
    """What code at the place of a role call was given before, in the same attempt of its stage.

    A repair, and the run of a step that was repaired, is given these results in place of the effects. Of equal calls
    the last one counts. Only what stands between the first call at that place and this one is read: with thousands of
    branches the log is long.
    """
    found: dict[tuple[str, str, str, int], Mapping[str, Any]] = {}
    calls = set(visit.requested.values()) - {request.payload["role_call_id"]}
    first = visit.begun_at.get(request.place or "", visit.entered_seq)
    for event in store.read(stream, after=first, until=request.seq):
        if event.type != "harness.tool_call.succeeded":
            continue
        _, _, _, payload, refs, *_ = decoded(event)
        place = (refs.get("step_path"), refs.get("visit_index"))
        if refs.get("role_call_id") not in calls or place != (request.step_path, request.visit_index):
            continue
        if payload["caller"] == "code":
            scope = (payload.get("scope") or {}).get("scope", "")
            key = (scope, payload["toolName"], digest(payload["args"]), payload.get("callIndex") or 0)
            found[key] = payload
    return found
