"""What an executor waits for from outside: its events and what was delivered in, what is open and who gets what out.

A delivery is a command of the inbox. It is kept, whether somebody waits for it yet or not, until a request of its name
is open; the request that was open first gets what was delivered first, once. Who gets what follows from the log alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from harness_hookspecs.kit.canonical import canonical

from .facts import Decision, Event, Fact
from .state import OpenRequest, SessionState

__all__ = ["DELIVERY", "EXTERNALS", "TIMED_OUT", "delivery", "hand_over", "keep", "times_out"]

DELIVERY: Final = "event"
"""The kind of command that delivers something."""

TIMED_OUT: Final = "wait.timed_out"
"""Code of a wait whose limit has passed."""


def delivery(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What is recorded of a delivery, and its payload as content: a log says once what it brought."""
    content = canonical(body.get("payload"))
    ref = hashlib.sha256(content).hexdigest()
    return {"name": body["name"], "value_ref": ref, "by": body["by"]}, {ref: content}


def keep(state: SessionState, event: Event) -> None:
    """Fold a delivery that was received."""
    body = event.payload["body"]
    if isinstance(body.get("value_ref"), str):
        kept = {"delivery_id": event.payload["command_id"], "value_ref": body["value_ref"], "event_id": event.id}
        state.kept.setdefault(body["name"], []).append(kept)


def hand_over(state: SessionState, still_asked: Callable[[], Collection[str]]) -> Decision | None:
    """Give what is kept to the first request that waits for it; one that its executor wants no more gets nothing.

    Args:
        state: Read only.
        still_asked: The ids of all requests that the executor has open; called only where something is to be given.

    Returns:
        One fact, since what is wanted may be another one after it; ``None`` where nothing is to be given.
    """
    if not state.kept:
        return None
    found = next((one for one in state.externals.values() if one.payload["name"] in state.kept), None)
    if found is None:
        return None
    refs = {"stage_visit_id": found.payload["visit_id"]}
    if found.payload["request_id"] not in still_asked():
        reason = "its executor waits for it no more"
        return Decision((Fact("external.cancelled", {"effect_id": found.effect_id, "reason": reason}, refs),))
    name = found.payload["name"]
    first = state.kept[name][0]
    payload = {"effect_id": found.effect_id, "name": name}
    payload |= {part: first[part] for part in ("delivery_id", "value_ref")}
    return Decision((Fact("external.delivered", payload, refs),))


def times_out(state: SessionState, request: OpenRequest) -> bool:
    """Whether the limit of a request ends it now: what was delivered before is given to it although it is late."""
    name = request.payload["name"]
    served = islice(_named(state, name), len(state.kept.get(name, ())))  # none of ten thousand where nothing is kept
    return request.effect_id not in [one.effect_id for one in served]


def _named(state: SessionState, name: str) -> Iterator[OpenRequest]:
    return (one for one in state.externals.values() if one.payload["name"] == name)


# -- the fold ---


def _requested(state: SessionState, event: Event) -> None:
    payload, visit = dict(event.payload), state.visit
    assert visit is not None, "an event is waited for outside of a visit"
    effect_id = payload["effect_id"]
    request = OpenRequest("external", effect_id, payload, event.seq, event.id, asked_at=event.timestamp)
    state.open[effect_id] = state.externals[effect_id] = request
    visit.requested[payload["request_id"]] = effect_id


def _delivered(state: SessionState, event: Event) -> None:
    payload = event.payload
    kept = [one for one in state.kept.pop(payload["name"], ()) if one["delivery_id"] != payload["delivery_id"]]
    if kept:
        state.kept[payload["name"]] = kept
    _ended(state, event, {"ok": True, "value_ref": payload["value_ref"]})


def _timed_out(state: SessionState, event: Event) -> None:
    asked = state.externals.get(event.payload["effect_id"])
    if asked is not None:
        name, seconds = asked.payload["name"], asked.payload.get("limit_ms", 0) / 1000
        message = f"nothing was delivered under the name {name} within {seconds:g} s"
        error = {"name": "HarnessError", "code": TIMED_OUT, "message": message}
        _ended(state, event, {"ok": False, "error": error})


def _cancelled(state: SessionState, event: Event) -> None:
    _ended(state, event, None)


def _ended(state: SessionState, event: Event, outcome: Mapping[str, Any] | None) -> None:
    effect_id = event.payload["effect_id"]
    state.open.pop(effect_id, None)
    request = state.externals.pop(effect_id, None)
    if request is not None and outcome is not None and state.visit is not None:
        state.visit.outcomes.append({"request_id": request.payload["request_id"], **outcome})


EXTERNALS: dict[str, Callable[[SessionState, Event], None]] = {
    "external.requested": _requested,
    "external.delivered": _delivered,
    "external.timed_out": _timed_out,
    "external.cancelled": _cancelled,
}
"""By type of the event."""
