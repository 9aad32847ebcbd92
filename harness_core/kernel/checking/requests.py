"""The kernel's requests and their results in, results without a request, a second time or of another kind out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness_core.kernel.externals import DELIVERY
from harness_core.kernel.facts import Event
from harness_core.kernel.inbox import is_command

from .history import Broken, Payload

__all__ = ["Requests"]

_ENDS = {
    "context.assembled": "context",
    "context.failed": "context",
    "role.returned": "role",
    "role.failed": "role",
    "workflow.version_registered": "compile",
    "compile.failed": "compile",
    "child.completed": "child",
    "child.failed": "child",
    "timer.elapsed": "timer",
    "timer.cancelled": "timer",
    "external.delivered": "external",
    "external.timed_out": "external",
    "external.cancelled": "external",
    "validation.passed": "validation",
    "validation.failed": "validation",
    "validation.errored": "validation",
}
_NEEDS_NONE_OPEN = frozenset({"artifact.proposed", "artifact.accepted", "retry.scheduled", "stage.left"})


class _Request(NamedTuple):
    kind: str
    visit_id: str
    payload: Payload


class Requests:
    """Intent before result (I-15), one result each (I-17), none again (I-16), joins after all (I-21)."""

    def __init__(self) -> None:
        self._open: dict[str, _Request] = {}
        self._ended: set[str] = set()
        self._kept: dict[str, tuple[str, str]] = {}  # delivery -> its name and what it brought
        self._waits = 0  # so many of the open ones are timers, or wait for what comes from outside

    def see(self, event: Event) -> Iterator[Broken]:
        if event.type in _ENDS:
            yield from self._result(event)
        elif event.type in _NEEDS_NONE_OPEN:
            yield from self._joined(event)
        elif event.type in _REQUESTS:
            yield from self._requested(event)
        elif event.type == "command.received" and event.payload["kind"] == DELIVERY:
            self._keep(event)

    def _requested(self, event: Event) -> Iterator[Broken]:
        payload = event.payload
        effect_id, kind = payload["effect_id"], event.type.removesuffix(".requested")
        if effect_id in self._open or effect_id in self._ended:
            yield Broken("I-16", event.seq, f"{kind} {effect_id} is asked for a second time")
        self._open[effect_id] = _Request(kind, payload["visit_id"], payload)
        self._waits += kind in _WAITS

    def _keep(self, event: Event) -> None:
        body = event.payload.get("body") or {}
        if is_command(DELIVERY, body) and "value_ref" in body:
            self._kept[event.payload["command_id"]] = (body["name"], body["value_ref"])

    def _result(self, event: Event) -> Iterator[Broken]:
        payload, kind = event.payload, _ENDS[event.type]
        effect_id = payload["effect_id"]
        if event.type == "external.delivered" and self._kept.pop(payload["delivery_id"], None) != _brought(payload):
            yield Broken("I-15", event.seq, f"{payload['name']} is handed over without a delivery that nobody had")
        if event.type == "timer.cancelled" and len(self._open) > self._waits:
            yield Broken("I-21", event.seq, "a timer is cancelled while other things of its attempt are open")
        request = self._open.pop(effect_id, None)
        self._waits -= request is not None and request.kind in _WAITS
        if request is None and effect_id in self._ended:
            yield Broken("I-17", event.seq, f"{event.type} is a second result of {effect_id}")
        elif request is None:
            yield Broken("I-15", event.seq, f"{event.type} is the result of {effect_id}, which nobody asked for")
        elif request.kind != kind or not _FITS[kind](request.payload, payload):
            yield Broken("I-17", event.seq, f"{event.type} is the result of something else than {effect_id}")
        elif event.type == "validation.passed" and payload["level"] == "payload" and not request.payload["validators"]:
            yield Broken("I-24", event.seq, "a payload passed that nobody was asked about")
        self._ended.add(effect_id)

    def _joined(self, event: Event) -> Iterator[Broken]:
        visit_id = event.refs.get("stage_visit_id")
        if any(request.visit_id == visit_id for request in self._open.values()):
            yield Broken("I-21", event.seq, f"{event.type} does not wait for what was asked for in its attempt")


def _brought(payload: Payload) -> tuple[str, str]:
    return payload["name"], payload["value_ref"]


_WAITS = frozenset({"timer", "external"})
_REQUESTS = frozenset({f"{kind}.requested" for kind in ("context", "role", "compile", "validation", "child", *_WAITS)})
_FITS: dict[str, Callable[[Payload, Payload], bool]] = {
    "context": lambda asked, got: got.get("attempt", asked["attempt"]) == asked["attempt"],
    "role": lambda asked, got: bool(got["role_call_id"] == asked["role_call_id"]),
    "compile": lambda asked, got: True,
    "timer": lambda asked, got: True,
    "external": lambda asked, got: bool(got.get("name", asked["name"]) == asked["name"]),
    "child": lambda asked, got: bool(got["child_id"] == asked["child_id"]),
    "validation": lambda asked, got: bool(got["level"] == asked["level"]),
}
