"""The recorded events of one role call in, answers to the same calls asked again out (architecture D-5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness_core.kernel.facts import Event
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.state import OpenRequest
from harness_hookspecs.errors import Diverged
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.store import Store

__all__ = ["OMITTED", "CallRecord", "Journal", "recorded_events"]


OMITTED = "too large"
"""What a recorded failure says in place of arguments that were too large to keep, beside their digest."""

_STANDS_IN = frozenset({"omitted", "sizeBytes", "sha256"})  # a tool's own arguments may have one of the names


def recorded_events(request: OpenRequest, store: Store, stream: str) -> list[Event]:
    """What a role call has recorded so far; nothing is read for a call that has recorded nothing."""
    if not request.calls and not request.rounds:
        return []
    marker = f'"role_call_id":"{request.payload["role_call_id"]}"'.encode()
    return [decoded(event) for event in store.read(stream, after=request.seq) if marker in event.refs]


class CallRecord:
    """One recorded call: its latest intent, its end if there is one, and whether the role asked for it again."""

    __slots__ = ("ended", "ended_type", "event_id", "intent", "seq", "starts", "used")

    def __init__(self, seq: int, event_id: str, intent: Mapping[str, Any]) -> None:
        self.seq = seq
        self.event_id = event_id
        self.intent = intent
        self.starts = 1  # more when it was started anew, because what was lost is known to have never happened
        self.ended: Mapping[str, Any] | None = None
        self.ended_type = ""
        self.used = False


class Journal:
    """What a role call has recorded so far, in order; empty for a call that runs for the first time."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.models: dict[tuple[str, int], CallRecord] = {}
        self.by_model: dict[str, CallRecord] = {}  # call id -> a tool call the model asked for
        self.by_code: dict[tuple[str, str, str, int], CallRecord] = {}
        self.manifest_hash: str | None = None
        self.resolved = False
        self.step_started = False
        self.notes: list[str] = []
        self._by_call_id: dict[str, CallRecord] = {}
        for event in events:
            handler = _HANDLERS.get(event.type)
            if handler is not None:
                handler(self, event, event.payload)

    def model(self, scope: str, turn: int, prompt_hash: str) -> CallRecord | None:
        """The recorded model call of that turn.

        Raises:
            Diverged: The recorded call asked something else.
        """
        record = self.models.get((scope, turn))
        if record is None:
            return None
        if record.intent["promptHash"] != prompt_hash:
            raise Diverged(
                f"turn {turn} asks another question than the one recorded at event {record.seq}",
                seq=record.seq,
                recorded=record.intent["promptHash"],
                replayed=prompt_hash,
            )
        record.used = True
        return record

    def model_tool(self, call_id: str, name: str, args: Any) -> CallRecord | None:
        """The recorded tool call the model asked for under that id."""
        record = self.by_model.get(call_id)
        if record is None:
            return None
        if (record.intent["toolName"], _args_digest(record.intent)) != (name, digest(args)):
            raise Diverged(
                f"call {call_id} is another call than the one recorded at event {record.seq}", seq=record.seq
            )
        record.used = True
        return record

    def code_tool(self, key: tuple[str, str, str], nth: int) -> CallRecord | None:
        """The recorded n-th call by code of that scope, name and digest of arguments."""
        record = self.by_code.get((*key, nth))
        if record is not None:
            record.used = True
        return record

    def has_note(self, payload: Mapping[str, Any]) -> bool:
        """Whether this note is recorded; each recorded one answers for one note."""
        try:
            self.notes.remove(digest(payload))
        except ValueError:
            return False
        return True

    def take_as_read(self) -> None:
        """The role has looked at its record and decides itself: what has ended need not be asked for again (A-33)."""
        for records in (self.models, self.by_model, self.by_code):
            for record in records.values():
                record.used = record.used or record.ended is not None

    def unkeyed(self) -> Iterator[CallRecord]:
        """Tool calls that were started and may not happen twice, ended or not."""
        for records in (self.by_model, self.by_code):
            for record in records.values():
                if record.intent.get("effectClass") == "unkeyed":
                    yield record

    def first_unused(self) -> CallRecord | None:
        """The first recorded call the role did not ask for again; there must be none when it ends."""
        unused = [
            record
            for records in (self.models, self.by_model, self.by_code)
            for record in records.values()
            if not record.used
        ]
        return min(unused, key=lambda record: record.seq) if unused else None

    # -- reading ---

    def _role_resolved(self, event: Event, payload: Mapping[str, Any]) -> None:
        self.resolved = True

    def _role_session(self, event: Event, payload: Mapping[str, Any]) -> None:
        self.manifest_hash = payload["manifestHash"]

    def _step(self, event: Event, payload: Mapping[str, Any]) -> None:
        self.step_started = True

    def _note(self, event: Event, payload: Mapping[str, Any]) -> None:
        self.notes.append(digest(payload))

    def _model_called(self, event: Event, payload: Mapping[str, Any]) -> None:
        record = CallRecord(event.seq, event.id, payload)
        self.models[(payload.get("scope", ""), payload["turn"])] = record
        self._by_call_id[payload["callId"]] = record

    def _tool_started(self, event: Event, payload: Mapping[str, Any]) -> None:
        record = CallRecord(event.seq, event.id, payload)
        before = self._by_call_id.get(payload["callId"])
        if before is not None:
            record.starts = before.starts + 1
        self._file(record)

    def _file(self, record: CallRecord) -> None:
        payload = record.intent
        self._by_call_id[payload["callId"]] = record
        if payload["caller"] == "model":
            self.by_model[payload["callId"]] = record
            return
        scope = (payload.get("scope") or {}).get("scope", "")
        key = (scope, payload["toolName"], _args_digest(payload), payload.get("callIndex") or 0)
        self.by_code[key] = record

    def _ended(self, event: Event, payload: Mapping[str, Any]) -> None:
        record = self._by_call_id.get(payload["callId"])
        if record is None:  # a call that did not run is its failure alone
            record = CallRecord(event.seq, event.id, payload)
            self._file(record)
        record.ended, record.ended_type = payload, event.type


def _args_digest(call: Mapping[str, Any]) -> str:
    """The digest of a recorded call's arguments: the one that its start carries, else what the record of a call that
    did not run has in their place when they were too large to be kept, else their own."""
    if known := call.get("argsDigest"):
        return str(known)
    args = call["args"]
    if isinstance(args, Mapping) and args.keys() == _STANDS_IN and args["omitted"] == OMITTED:
        return str(args["sha256"])
    return digest(args)


_HANDLERS = {
    "role.resolved": Journal._role_resolved,
    "role.note": Journal._note,
    "harness.session.started": Journal._role_session,
    "harness.execute_step.started": Journal._step,
    "harness.model.called": Journal._model_called,
    "harness.model.responded": Journal._ended,
    "harness.model.failed": Journal._ended,
    "harness.tool_call.started": Journal._tool_started,
    "harness.tool_call.succeeded": Journal._ended,
    "harness.tool_call.failed": Journal._ended,
}
