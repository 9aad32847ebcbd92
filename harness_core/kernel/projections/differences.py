"""What two sessions did in, ``harness.session_diff/1`` out: what was pinned, and in order each thing that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from harness_core.kernel.facts import Event
from harness_hookspecs.kit.canonical import digest

from .artifacts import artifact_items
from .places import Place, placed
from .report import report_document
from .transitions import transition_items

__all__ = ["Changed", "Done", "changed_leaves", "done", "session_diff"]

_ASKED = ("title", "text_ref", "project", "seed", "on_ask", "yolo", "budget")
_COUNTERS = ("calls", "failed_calls", "unknown_calls")
_OWN = frozenset({"seq", "timestamp", "visit_id", "artifact_id"})
"""What no two sessions share, whatever they did."""

_STEPS: Mapping[str, Sequence[str]] = {
    "stages": ("stage",),
    "transitions": ("kind", "from", "to"),
    "artifacts": ("stage", "type"),
    "tool_calls": ("stage", "tool", "args"),
}
"""The lists that are compared, each with what says that two of its items are about the same thing."""


class Changed(NamedTuple):
    """A leaf of two trees that differs; ``None`` where it is not set."""

    key: str
    a: Any
    b: Any


def changed_leaves(a: Any, b: Any, path: str = "") -> list[Changed]:
    """Every leaf that differs, by its key."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted({*a, *b})
        return [one for key in keys for one in changed_leaves(a.get(key), b.get(key), f"{path}.{key}".lstrip("."))]
    return [] if a == b else [Changed(path, a, b)]


class Done(NamedTuple):
    """What a session did, as far as it is compared: who it is, what was asked and pinned, its steps, what it used."""

    side: Mapping[str, Any]
    asked: Mapping[str, Any]
    settings: Mapping[str, Any]
    steps: Mapping[str, Sequence[Mapping[str, Any]]]
    usage: Mapping[str, Any]


def done(session_id: str, events: Callable[[], Iterator[Event]], settings: Mapping[str, Any]) -> Done:
    """Read a session's log.

    Args:
        session_id: The session.
        events: Reads the log from its beginning, as often as it is called.
        settings: What the six files set when it ran, by file.
    """
    created: Mapping[str, Any] = next((one.payload for one in events() if one.type == "session.created"), {})
    report = report_document(events(), session_id)
    plugins = {one["id"]: f"{one['version']} {one['status']}" for one in created.get("plugins", ())}
    visits = list(_visits(events()))
    side = {
        "id": session_id,
        "title": created.get("title", ""),
        "status": report["status"],
        "stage": visits[-1]["stage"] if visits else None,
        "seconds": report["seconds"],
    }
    steps = {
        "stages": visits,
        "transitions": transition_items(events()),
        "artifacts": artifact_items(events()),
        "tool_calls": list(_tool_calls(events())),
    }
    asked = {name: created[name] for name in _ASKED if name in created}
    used = {**report["usage"], **{name: report[name] for name in _COUNTERS}}
    return Done(side, asked, {**settings, "plugins": plugins}, steps, used)


def session_diff(a: Done, b: Done) -> dict[str, Any]:
    """Compare them. Ids, times and how long things took differ always, and are no difference."""
    leaves = {name: changed_leaves(getattr(a, name), getattr(b, name)) for name in ("asked", "settings", "usage")}
    steps = {name: _aligned(a.steps[name], b.steps[name], about) for name, about in _STEPS.items()}
    return {
        "schema": "harness.session_diff/1",
        "a": dict(a.side),
        "b": dict(b.side),
        "equal": a.side["status"] == b.side["status"]
        and not any(leaves.values())
        and not any(one["differ"] for one in steps.values()),
        **{name: [change._asdict() for change in changes] for name, changes in leaves.items()},
        **steps,
    }


def _aligned(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], about: Sequence[str]) -> dict[str, Any]:
    """Each item beside the one that is about the same thing, in order; what has none beside nothing."""
    named, other_named = ([digest([item[name] for name in about]) for item in items] for items in (a, b))
    pairs: list[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]] = []
    for _, a_start, a_end, b_start, b_end in SequenceMatcher(None, named, other_named).get_opcodes():
        pairs += zip_longest(a[a_start:a_end], b[b_start:b_end])
    differ = [{"a": one, "b": other} for one, other in pairs if _said(one) != _said(other)]
    return {"same": len(pairs) - len(differ), "differ": differ}


def _said(item: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if item is None else {name: value for name, value in item.items() if name not in _OWN}


def _visits(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    visits: list[dict[str, Any]] = []
    for event, place in placed(events):
        payload = event.payload
        if event.type == "stage.entered":
            visits.append(
                {
                    "seq": event.seq,
                    "stage": place.stage,
                    "visit": place.visit_index,
                    "persona": place.persona,
                    "model": place.model,
                    "attempts": 1,
                    "status": None,
                }
            )
        elif event.type == "retry.scheduled":
            visits[-1]["attempts"] = payload["attempt"]
        elif event.type == "stage.left":
            visits[-1]["status"] = payload["status"]
    return iter(visits)


def _tool_calls(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Tool calls in the order in which they were started; one that did not run stands where it was refused."""
    calls: dict[tuple[Any, Any], dict[str, Any]] = {}
    for event, place in placed(events):
        if event.type.startswith("harness.tool_call."):
            key = (event.refs.get("role_call_id"), event.payload["callId"])
            item = calls.setdefault(key, _begun(event, place))
            if event.type != "harness.tool_call.started":
                item |= _ended(event)
    return iter(calls.values())


def _begun(event: Event, place: Place) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "stage": place.stage,
        "tool": event.payload["toolName"],
        "args": event.payload["args"],
        "outcome": "open",
        "code": None,
        "result_hash": None,
    }


def _ended(event: Event) -> dict[str, Any]:
    payload = event.payload
    if event.type == "harness.tool_call.succeeded":
        return {"outcome": "succeeded", "result_hash": digest(payload.get("result"))}
    return {"outcome": "failed", "code": (payload.get("error") or {}).get("code")}
