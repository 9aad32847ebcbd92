"""The child sessions that calls of a role ask for: their events in, which may begin and what each may use up out.

A child is asked for by ``child.requested``, which reserves its id. It may begin when ``child.granted`` says what it may
use up, goes no further after ``child.exhausted`` until it is granted more, and ends once, by ``child.completed`` or
``child.failed``; of what was granted only what it used stays spent. What one used that nobody waits for any more is
unknown, and unknown is not zero: all that it was granted stays spent.

What a child asks for and how it ends also says how long the parent has been run since it last told: a child is granted
no time that has passed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .definition import Limits
from .facts import Decision, Event, Fact, derive
from .state import OpenRequest, SessionState

__all__ = [
    "ABANDONED", "CHILDREN", "abandoned", "begin_children", "child_effect_id", "child_session_id", "children_of",
    "end_of_child", "reserved_for_children", "seconds_left",
]  # fmt: skip

ABANDONED: Final = "child.abandoned"
"""Code of a child whose role call ended before it."""

NOTHING = Decision()


def child_effect_id(role_call_id: str, call_id: str) -> str:
    """The identity of the child that a call asks for: the same whenever the call is met."""
    return derive("eff", "child", role_call_id, call_id)


def child_session_id(parent_id: str, role_call_id: str, call_id: str) -> str:
    """The id that the child of a call has, whoever begins it: a UUIDv7 with the parent's time, and derived otherwise.

    Derived, not drawn: a call that is met again after a crash reserves the same one (A-91).
    """
    drawn = hashlib.sha256(chr(31).join(("child", parent_id, role_call_id, call_id)).encode()).hexdigest()
    variant = "89ab"[int(drawn[3], 16) % 4]
    return f"{parent_id[:13]}-7{drawn[:3]}-{variant}{drawn[4:7]}-{drawn[7:19]}"


def children_of(state: SessionState, role_call_id: str) -> Iterator[OpenRequest]:
    """The open children of a role call, in the order in which they were asked for."""
    return (one for one in state.children.values() if one.payload["role_call_id"] == role_call_id)


def end_of_child(state: SessionState, role_call_id: str, call_id: str) -> Mapping[str, Any] | None:
    """How the child of a call ended: the payload of the event; ``None`` where it has not, or where there is none."""
    return state.child_ends.get(role_call_id, {}).get(call_id)


# -- what they may use up ---


Lacking = tuple[str, float]
"""The dimension in which there is not enough, and how much was wanted."""


class Room(NamedTuple):
    """What is left of a budget, and each limit that it comes from."""

    left: Mapping[str, float]
    limits: Mapping[str, float]


def reserved_for_children(state: SessionState, dimension: str) -> float:
    """What children have used up, or may yet."""
    granted: float = sum(one.grant.get(dimension, 0) for one in state.children.values())
    return state.child_spent.get(dimension, 0) + granted


def seconds_left(state: SessionState, limits: Limits) -> float:
    """What is left of the time of a session, and so of each of its children: it passes for all of them at once."""
    return float(state.budget.get("seconds", limits.budget_seconds) - state.active_ms / 1000)


def _room(state: SessionState, limits: Limits) -> Room:
    of = {
        "tokens": state.budget.get("tokens", limits.budget_tokens),
        "calls": state.budget.get("calls", limits.budget_calls),
        "seconds": state.budget.get("seconds", limits.budget_seconds),
    }
    used = {
        "tokens": state.spent_tokens + sum(state.reserved.values()) + reserved_for_children(state, "tokens"),
        "calls": state.usage.calls + reserved_for_children(state, "calls"),
        "seconds": state.active_ms / 1000,
    }
    return Room({name: limit - used[name] for name, limit in of.items()}, of)


def begin_children(state: SessionState, limits: Limits) -> Decision:
    """Let those begin, in their order, for which there is room: so many at once, each with its share of what is left.

    One that has used up its share goes before those that have not begun. With too little left they wait for what others
    give back; where nobody can, the budget of the parent is used up.
    """
    short = [one for one in state.children.values() if one.short is not None]
    waiting = [one for one in state.children.values() if not one.grant]
    places = max(0, limits.max_children - len(state.children) + len(waiting))
    next_ones = waiting[:places]
    if not (short or next_ones):
        return NOTHING
    room = _room(state, limits)
    facts, lacking = _extended(short, room) if short else _shared(next_ones, places, room)
    busy = any(one.grant and one.short is None for one in state.children.values())
    if facts or busy or state.exhausted is not None:
        return Decision(facts)
    return Decision((_used_up(room, *lacking),))


def _shared(children: Sequence[OpenRequest], places: int, room: Room) -> tuple[tuple[Fact, ...], Lacking]:
    """A share of what is left for each, while there is any: one for each place that is free, and one for the parent."""
    facts, left = list[Fact](), dict(room.left)
    for place, child in enumerate(children):
        shares = places - place + 1
        tokens, calls = (int(left[name]) // shares or min(1, int(left[name])) for name in ("tokens", "calls"))
        grant = {"tokens": tokens, "calls": calls, "seconds": left["seconds"]}  # time passes for all of them at once
        missing = next((name for name, amount in grant.items() if amount <= 0), None)
        if missing is not None:
            return tuple(facts), (missing, 1)
        facts.append(_granted(child, grant))
        left["tokens"], left["calls"] = left["tokens"] - tokens, left["calls"] - calls
    return tuple(facts), ("", 0)


def _extended(short: Sequence[OpenRequest], room: Room) -> tuple[tuple[Fact, ...], Lacking]:
    """The first of those that can be given what it lacks, and half of what is left then."""
    lacks: Lacking = ("", 0)
    for child in short:
        assert child.short is not None
        dimension = child.short["dimension"]
        missing = child.short["used"] + child.short["wanted"] - child.short["limit"]
        left = room.left[dimension]
        if dimension == "seconds":
            enough, grant = left > 0, child.short["used"] + left
        else:
            whole = max(1, math.ceil(missing))
            enough, grant = left >= whole, child.grant[dimension] + whole + (int(left) - whole) // 2
        if enough:
            return (_granted(child, {**child.grant, dimension: grant}),), lacks
        lacks = lacks if lacks[0] else (dimension, missing)
    return (), lacks


def _granted(child: OpenRequest, grant: Mapping[str, float]) -> Fact:
    payload = {"effect_id": child.effect_id, "child_id": child.payload["child_id"], **grant}
    return Fact("child.granted", payload, {"stage_visit_id": child.payload["visit_id"]})


def _used_up(room: Room, dimension: str, wanted: float) -> Fact:
    limit = room.limits[dimension]
    used = limit - room.left[dimension]
    return Fact("budget.exhausted", {"dimension": dimension, "limit": limit, "used": used, "wanted": wanted})


# -- their ends ---


def abandoned(state: SessionState, role_call_id: str) -> tuple[Fact, ...]:
    """The ends of the open children of a role call that is over: nobody waits for them any more."""
    message = "the role call that asked for it has ended"
    error = {"name": "RoleError", "code": ABANDONED, "message": message}
    return tuple(
        Fact(
            "child.failed",
            {
                "effect_id": one.effect_id,
                "child_id": one.payload["child_id"],
                "status": "cancelled",
                "error": error,
                "spent": {name: one.grant.get(name, 0) for name in ("tokens", "calls")},  # what it used is unknown
            },
            {"stage_visit_id": one.payload["visit_id"]},
        )
        for one in children_of(state, role_call_id)
    )


# -- the fold ---


def _passed(state: SessionState, event: Event) -> None:
    state.active_ms += event.payload.get("elapsed_ms", 0)  # older logs do not say it


def _requested(state: SessionState, event: Event) -> None:
    payload = dict(event.payload)
    effect_id = payload["effect_id"]
    _passed(state, event)
    child = OpenRequest("child", effect_id, payload, event.seq, event.id)
    state.open[effect_id] = state.children[effect_id] = child


def _begun(state: SessionState, event: Event) -> None:
    child = state.children.get(event.payload["effect_id"])
    if child is not None:
        child.rounds += bool(child.grant)
        child.short = None
        child.grant = {name: event.payload[name] for name in ("tokens", "calls", "seconds")}


def _short(state: SessionState, event: Event) -> None:
    _passed(state, event)
    child = state.children.get(event.payload["effect_id"])
    if child is not None:
        child.short = dict(event.payload)


def _ended(state: SessionState, event: Event) -> None:
    payload = dict(event.payload)
    _passed(state, event)
    child = state.children.pop(payload["effect_id"], None)
    if child is None:
        return
    state.open.pop(child.effect_id, None)
    if payload.get("error", {}).get("code") == ABANDONED:
        state.given_up.append(payload["child_id"])
    for name, amount in payload["spent"].items():
        state.child_spent[name] = state.child_spent.get(name, 0) + amount
    asked = child.payload
    if asked["role_call_id"] in state.role_calls:
        state.child_ends.setdefault(asked["role_call_id"], {})[asked["call_id"]] = {
            "type": event.type, "goal": asked["goal"], **payload,
        }  # fmt: skip
    if (version := payload.get("version")) is not None:
        state.versions[version["workflow_version_id"]] = {"workflow_id": asked["workflow_id"], **version}


CHILDREN: dict[str, Callable[[SessionState, Event], None]] = {
    "child.requested": _requested,
    "child.granted": _begun,
    "child.exhausted": _short,
    "child.completed": _ended,
    "child.failed": _ended,
}
"""By type of the event."""
