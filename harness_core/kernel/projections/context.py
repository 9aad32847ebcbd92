"""A session's events and stored content in, what a visit's model was given and what was left out and why out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from harness_core.kernel.facts import Event
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.codec import loads_trusted

from .artifacts import artifact_ref
from .places import Place, Places

__all__ = ["context_document", "find_visit"]


@attrs.define
class _Sources:
    """The events that pieces of context come from, as they stand before a context is assembled."""

    created: str = ""
    requested: str = ""
    retried: str | None = None
    artifacts: dict[str, str] = attrs.Factory(dict)
    steering: dict[str, str] = attrs.Factory(dict)

    def see(self, event: Event) -> None:
        payload = event.payload
        if event.type == "session.created":
            self.created = event.id
        elif event.type == "context.requested":
            self.requested = event.id
        elif event.type == "retry.scheduled":
            self.retried = event.id if payload["inject"] else None
        elif event.type == "stage.entered":
            self.retried = None
        elif event.type == "artifact.accepted":
            self.artifacts[artifact_ref(payload["body_ref"])] = event.id
        elif event.type == "steering.received":
            self.steering[payload["text"]] = event.id

    def of(self, item: Mapping[str, Any], text: str) -> list[str]:
        """The ids of the events behind an item: the artifact's, the instruction's, or the gathering itself."""
        source = item.get("source") or {}
        if item["kind"] == "steering":
            return [self.steering.get(text, self.requested)]
        if isinstance(source, Mapping) and source.get("artifact") in self.artifacts:
            return [self.artifacts[source["artifact"]]]
        return [self.requested]


def find_visit(events: Iterable[Event], reference: str) -> str:
    """The id of the stage visit that is meant.

    Args:
        events: The session's events.
        reference: Its id or a unique end of it, ``STAGE`` (the last visit) or ``STAGE#N`` (the first is 0); empty
            for the only visit there is.

    Raises:
        NotFound: ``visit.not_found``, naming the visits there are, in the fact ``visits`` too.
    """
    visits = [event.payload for event in events if event.type == "stage.entered"]
    stage, _, number = reference.partition("#")
    named = [v["visit_id"] for v in visits if v["stage"] == stage and number in ("", str(v["visit_index"]))]
    if named:
        return str(named[-1])
    ids = [str(v["visit_id"]) for v in visits]
    ends = [one for one in ids if len(reference) >= 4 and (one.startswith(reference) or one.endswith(reference))]
    found = ends if reference else ids
    if len(found) == 1:
        return found[0]
    known = [f"{v['stage']}#{v['visit_index']}" for v in visits]
    what = f"several visits fit {reference}" if found else f"the session has no visit {reference}".rstrip()
    raise NotFound(what, code="visit.not_found", hint=f"its visits: {', '.join(known) or 'none yet'}", visits=known)


def context_document(
    events: Iterable[Event], visit_id: str, read_blob: Callable[[str], bytes], session_id: str
) -> dict[str, Any]:
    """What ``context show`` prints: one entry an attempt, each item with its source events (B-101)."""
    places, sources = Places(), _Sources()
    packs: list[dict[str, Any]] = []
    stage: Place | None = None
    for event in events:
        place = places.see(event)
        sources.see(event)
        if place.visit_id != visit_id:
            continue
        stage = place
        if event.type == "context.assembled":
            packs.append(_pack(event, sources, read_blob))
        elif event.type == "context.failed":
            packs.append(_failed(event, place))
    return {
        "schema": "harness.context/1",
        "session_id": session_id,
        "visit_id": visit_id,
        "stage": stage.stage if stage else None,
        "visit": stage.visit_index if stage else None,
        "attempts": packs,
    }


def _pack(event: Event, sources: _Sources, read_blob: Callable[[str], bytes]) -> dict[str, Any]:
    payload = event.payload
    pack = loads_trusted(read_blob(payload["pack_ref"]))
    gathered = loads_trusted(read_blob(payload["facts_ref"]))
    texts = {item["item_id"]: item["text"] for item in gathered["items"]}
    asked: Mapping[str, Any] = pack["input"]

    def shown(item: Mapping[str, Any]) -> dict[str, Any]:
        text = texts.get(item["item_id"], "")
        return {**item, "text": text, "source_events": sources.of(item, text)}

    return {
        "attempt": payload["attempt"],
        "seq": event.seq,
        "event_id": event.id,
        "pack_ref": payload["pack_ref"],
        "facts_ref": payload["facts_ref"],
        "tokens": payload["tokens"],
        "budget_tokens": payload["budget_tokens"],
        "counted_by": payload["counted_by"],
        "task": {"text": asked.get("prompt", ""), "source_events": [sources.created]},
        "feedback": _feedback(asked, sources),
        "tools": list(asked.get("tools", ())),
        "items": [shown(item) for item in pack["items"]],
        "left_out": [shown(item) for item in pack["left_out"]],
        "error": None,
    }


def _feedback(asked: Mapping[str, Any], sources: _Sources) -> dict[str, Any] | None:
    if asked.get("feedback") is None:
        return None
    return {"text": asked["feedback"], "source_events": [sources.retried] if sources.retried else []}


def _failed(event: Event, place: Place) -> dict[str, Any]:
    return {"attempt": place.attempt, "seq": event.seq, "event_id": event.id, "error": event.payload["error"]}
