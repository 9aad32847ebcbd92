"""A session's events in, where a fork of it can begin and what that takes along out; and in the fork, what it inherits.

A fork begins between two stages: there no role call, no effect and no approval is open, so nothing of its parent can
be done twice under one identity, or be allowed by what somebody answered there. What it needs of the time before stands
in its own ``session.forked``: its log is whole by itself, whatever becomes of its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .definition import RESERVED_TARGETS
from .facts import Event
from .state import FINAL, SessionState

__all__ = ["border", "inherit", "inheritance"]

_OF_ARTIFACT = ("ref", "artifact_id", "type", "status", "stage", "visit_id")


def border(events: Iterable[Event]) -> int:
    """The seq of the last event after which no stage is open and one is about to be entered; of the first one at least.

    A transition has left its stage: what follows it in its batch only says so.
    """
    between, found = True, 0
    for event in events:
        if event.type == "stage.entered" or event.type.removeprefix("session.") in FINAL:
            between = False
        elif event.type == "transition.taken":
            between = event.payload["target"] not in RESERVED_TARGETS
        if between:
            found = event.seq
    return found


def inheritance(state: SessionState, artifacts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a fork takes along from its parent at a border: where it was going, and what it knew.

    Left behind are approvals, grants and a yolo, which hold for the session they were given to, effects with their
    doubts, usage and what was spent.

    Args:
        state: The parent's, folded up to the border.
        artifacts: Its accepted artifacts up to there, items of ``harness.artifacts/1``.
    """
    taken: dict[str, Any] = {
        "visits": dict(state.visits_of),
        "artifacts": [dict(one) for one in artifacts],
        "steering": list(state.steering),
    }
    return taken if state.target is None else {"target": state.target, **taken}


def inherit(state: SessionState, event: Event) -> None:
    """Fold a ``session.forked``."""
    payload = event.payload
    state.forked_from = payload["parent_id"]
    state.target = payload.get("target")
    state.visits_of = dict(payload["visits"])
    state.visits = sum(state.visits_of.values())
    state.artifacts = [{name: one[name] for name in _OF_ARTIFACT} for one in payload["artifacts"]]
    state.steering = list(payload["steering"])
