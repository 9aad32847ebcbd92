"""Approvals and the calls they let happen in, decisions that do not fit and calls that nobody let happen out (I-23)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from harness_core.kernel.approvals import approval_digest, artifact_digest, find_grant
from harness_core.kernel.facts import Event

from .history import Broken, Payload

__all__ = ["Approvals"]

_FREE_TIERS = ("T0", "T1")


@attrs.define
class _Asked:
    payload: Payload
    status: str = "pending"
    awaited: bool = False
    used_by: tuple[str, str] | None = None  # role call and call


class Approvals:
    """Each bound to what was asked, decided once, used once by the call that the grant caused.

    Args:
        session_id: Whose they are; an approval is bound to it.
    """

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._asked: dict[str, _Asked] = {}
        self._questions: dict[tuple[str, str], int] = {}  # role call and call -> how often it was asked about
        self._about: dict[tuple[str, str], _Asked] = {}  # and what was asked last, under the settings of today
        self._grants: list[Mapping[str, Any]] = []
        self._lets: dict[str, _Asked] = {}  # id of the event that let it happen
        self._attempts: dict[str, int] = {}  # visit -> its attempt
        self._gates: dict[str, _Asked] = {}  # visit -> the gate of its attempt
        self._answer: Payload = {}  # the body of the answer right before
        self._awaiting = False
        self._last = 0

    def see(self, event: Event) -> Iterator[Broken]:
        answer, self._answer = self._answer, {}
        self._last = event.seq
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            yield from handler(self, event)
        elif event.type in _ENDS:
            yield from self._decided(event, answer)
        elif event.type.startswith("session."):
            self._awaiting = False

    def end(self) -> Iterator[Broken]:
        """Whoever waits must wait for something, or nobody will ever go on with it (I-20)."""
        if self._awaiting and not any(one.awaited and one.status == "pending" for one in self._asked.values()):
            yield Broken("I-20", self._last, "the session awaits an approval, and none is pending")

    def _command(self, event: Event) -> Iterator[Broken]:
        body = event.payload.get("body")
        if event.payload["kind"] == "answer" and isinstance(body, Mapping):
            self._answer = body
        yield from ()

    # -- asked and decided ---

    def _requested(self, event: Event) -> Iterator[Broken]:
        asked = event.payload
        if asked["approval_id"] in self._asked:
            yield Broken("I-23", event.seq, f"{asked['approval_id']} is asked for a second time")
        if asked["digest"] != self._bound_to(asked):
            yield Broken("I-23", event.seq, f"{asked['approval_id']} is not bound to what it is asked about")
        self._asked[asked["approval_id"]] = one = _Asked(asked)
        if asked["subject"] == "artifact":
            self._gates[asked["visit_id"]] = one
        else:
            self._about[_call_of(one)] = one

    def _bound_to(self, asked: Payload) -> str:
        if asked["subject"] != "tool":
            attempt = self._attempts.get(asked["visit_id"], 1)
            body_ref = (asked["args"] or {}).get("body_ref")
            return artifact_digest(
                asked["name"], body_ref, session_id=self._session_id, visit_id=asked["visit_id"], attempt=attempt
            )
        call = (str(asked.get("role_call_id")), str(asked.get("call_id")))
        self._questions[call] = generation = self._questions.get(call, 0) + 1
        place = "/".join(call)
        return approval_digest(
            asked["name"], asked["args"], session_id=self._session_id, place=place, generation=generation
        )

    def _decided(self, event: Event, answer: Payload) -> Iterator[Broken]:
        ended, status = event.payload, event.type.removeprefix("approval.")
        one = self._asked.get(ended["approval_id"])
        if one is None or one.status != "pending":
            yield Broken("I-23", event.seq, f"{ended['approval_id']} is decided, and it is not pending")
            return
        if ended["digest"] != one.payload["digest"]:
            yield Broken("I-23", event.seq, f"the decision about {ended['approval_id']} is bound to something else")
        if ended["kind"] == "person" and not _says(answer, ended, status):
            yield Broken("I-23", event.seq, f"no answer says what was decided about {ended['approval_id']}")
        name, tier = one.payload["name"], one.payload["tier"]
        if ended["kind"] == "grant" and find_grant(self._grants, name, tier) is None:
            yield Broken("I-23", event.seq, f"nobody has granted {name} at {tier} for the session")
        one.status = status
        if status in ("granted", "bypassed"):
            self._lets[event.id] = one
        if ended.get("scope") == "session":
            self._grants.append({"name": name, "tier": tier})

    def _awaits(self, event: Event) -> Iterator[Broken]:
        self._awaiting = True
        for approval_id in event.payload["approval_ids"]:
            one = self._asked.get(approval_id)
            if one is None or one.status != "pending":
                yield Broken("I-20", event.seq, f"the session awaits {approval_id}, which is not pending")
            else:
                one.awaited = True

    # -- used ---

    def _started(self, event: Event) -> Iterator[Broken]:
        payload = event.payload
        call = (str(event.refs.get("role_call_id")), payload["callId"])
        one = self._lets.get(str(event.refs.get("causation_id")))
        if one is None or (payload["tier"] in _FREE_TIERS and _call_of(one) != call):
            yield from self._without(event, call)  # it may follow right after the grant of another call
            return
        asked = one.payload
        approved = (asked.get("role_call_id"), asked.get("call_id"), asked["name"], asked["tier"], asked["args"])
        if approved != (*call, payload["toolName"], payload["tier"], payload["args"]):
            yield Broken("I-23", event.seq, f"{payload['callId']} runs under the approval of another call")
        elif one.used_by not in (None, call):
            yield Broken("I-23", event.seq, f"{asked['approval_id']} is used for a second time")
        one.used_by = call

    def _without(self, event: Event, call: tuple[str, str]) -> Iterator[Broken]:
        """A call runs that no grant of its own let happen: it must be free, and one that nobody was asked about."""
        payload, about = event.payload, self._about.get(call)
        asked = None if about is None else (about.payload["name"], about.payload["args"])
        if payload["tier"] not in _FREE_TIERS:
            yield Broken("I-23", event.seq, f"{payload['toolName']} ({payload['tier']}) runs without an approval")
        elif asked == (payload["toolName"], payload["args"]):
            message = f"{payload['callId']} runs as {payload['tier']} and without the approval that it was asked about"
            yield Broken("I-23", event.seq, message)

    def _migrated(self, event: Event) -> Iterator[Broken]:
        self._about.clear()  # what had to be asked about may be free now
        yield from ()

    def _passed(self, event: Event) -> Iterator[Broken]:
        gate = self._gates.get(str(event.refs.get("stage_visit_id")))
        if event.payload["level"] == "approval" and gate is not None and gate.status not in ("granted", "bypassed"):
            yield Broken("I-24", event.seq, f"an artifact passes whose approval is {gate.status}")

    def _retried(self, event: Event) -> Iterator[Broken]:
        self._attempts[event.payload["visit_id"]] = event.payload["attempt"]
        self._gates.pop(event.payload["visit_id"], None)
        yield from ()


def _call_of(one: _Asked) -> tuple[str, str]:
    return str(one.payload.get("role_call_id")), str(one.payload.get("call_id"))


def _says(answer: Payload, ended: Payload, status: str) -> bool:
    """Whether a command that was just received is the answer that was decided on."""
    said = (answer.get("approval_id"), answer.get("digest"), answer.get("by"))
    decided = "denied" if answer.get("decision") == "deny" else "granted"
    return said == (ended["approval_id"], ended["digest"], ended["by"]) and decided == status


_ENDS = frozenset({f"approval.{status}" for status in ("granted", "denied", "bypassed", "expired", "superseded")})
_HANDLERS: dict[str, Callable[[Approvals, Event], Iterator[Broken]]] = {
    "command.received": Approvals._command,
    "config.migrated": Approvals._migrated,
    "approval.requested": Approvals._requested,
    "session.awaiting": Approvals._awaits,
    "harness.tool_call.started": Approvals._started,
    "validation.passed": Approvals._passed,
    "retry.scheduled": Approvals._retried,
}
