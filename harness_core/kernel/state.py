"""What is open in one session: the fold of its events, with references instead of contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness_hookspecs.kit.codec import dumps

__all__ = [
    "FINAL",
    "MIGRATED",
    "PLUGIN_KEY",
    "Approval",
    "Causes",
    "Failure",
    "OpenRequest",
    "SessionState",
    "Usage",
    "Visit",
]

MIGRATED = "config.migrated"
"""Code of an attempt that an accepted change of the configuration ended."""

PLUGIN_KEY = "plugin:"
"""What the key of a change begins with that is another version of a plugin; the rest is its id."""

FINAL = frozenset({"completed", "failed", "cancelled"})


@attrs.define
class Failure:
    """Why an attempt or a session failed."""

    code: str
    message: str
    findings: list[Any] = attrs.Factory(list)
    hint: str | None = None

    @classmethod
    def told(cls, code: str, message: str, error: Mapping[str, Any], hint: str | None = None) -> Failure:
        """With the findings and the hint of a recorded error, as far as they are any: a plugin may put anything there.

        Args:
            code: Why, for the retry decision.
            message: The same for people.
            error: The envelope.
            hint: What to do next; else what the error says.
        """
        details = error.get("details") or {}
        found, hints = details.get("findings"), (hint, details.get("hint"))
        told = [_finding(one) for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []
        said = next((one for one in hints if one and isinstance(one, str)), None)
        return cls(code, message, [one for one in told if one is not None], said)


_OF_FINDING = ("code", "severity", "path", "message", "hint")
"""What a finding says in an event; one of a compiler may say more."""


def _finding(found: Mapping[str, Any]) -> dict[str, Any] | None:
    kept = {name: found[name] for name in _OF_FINDING if found.get(name) is not None}
    is_whole = kept.get("severity") in ("error", "warning") and {"code", "message"} <= kept.keys()
    return kept if is_whole and all(isinstance(one, str) for one in kept.values()) else None


@attrs.define
class OpenRequest:
    """A kernel request without its result; ``suspended`` says what a role call waits for."""

    kind: str  # context, validation, role, timer, external, compile, child
    effect_id: str
    payload: dict[str, Any]
    seq: int
    event_id: str
    step_path: str | None = None  # of a role call: where the executor says that it stands, and at which visit of it
    visit_index: int = 0
    suspended: tuple[str, str] | None = None
    suspended_seq: int = 0
    rounds: int = 0
    calls: int = 0
    begun_id: str | None = None  # of a role call: its last opening event
    calls_of: dict[str, str] = attrs.Factory(dict)  # its call, or its own start -> the latest event of that
    scope_of: dict[str, str] = attrs.Factory(dict)  # its call -> the conversation it belongs to
    last_of: dict[str, str] = attrs.Factory(dict)  # conversation -> the end of a call it goes on from
    asked_at: str = ""  # of a timer, or of what comes from outside: its delay or limit counts from then
    short: dict[str, Any] | None = None  # of a child: what it lacks; it goes no further without
    grant: dict[str, float] = attrs.Factory(dict)  # of a child: what it may use up; empty before it may begin

    @property
    def place(self) -> str | None:
        """Step path and visit in one; ``None`` where a call stands at no step."""
        return None if self.step_path is None else f"{self.step_path}#{self.visit_index}"


@attrs.define
class Causes:
    """Ids of the events that what comes next may be caused by (``causes.cause_of``)."""

    last_id: str | None = None  # the event before
    status_id: str | None = None  # gave the session its status
    moved_id: str | None = None  # let the stages go on
    decided_id: str | None = None  # ended an approval
    exhausted_id: str | None = None  # said that a budget is used up
    asked: dict[str, str] = attrs.Factory(dict)  # kind of command -> the last one received


@attrs.define
class Approval:
    """One approval; kept for the whole session, so that a late answer hears who was first."""

    approval_id: str
    payload: dict[str, Any]
    event_id: str = ""  # of the question
    status: str = "pending"  # pending, granted, denied, bypassed, expired, superseded
    ended: dict[str, Any] | None = None
    grant_event_id: str | None = None
    consumed: bool = False
    awaited: bool = False  # nobody answered yet, a person must


    def decision(self) -> str:
        """What was decided, as text: tool, tier, status and whether it was used; equal ones are counted as one."""
        return dumps([self.payload["name"], self.payload["tier"], self.status, self.consumed]).decode()


@attrs.define
class Usage:
    """Token counts; the cached and reasoning ones are subsets and never added (A-68)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    unknown_calls: int = 0
    calls: int = 0
    lost_calls: int = 0  # asked, and cut off before there was an answer: how much they used nobody knows
    failed_calls: int = 0  # how much they used nobody knows either
    asked_again: int = 0  # times that a call was asked once more, since its first answer was lost
    open: dict[str, str] = attrs.Factory(dict)  # call that has no answer yet -> its role call

    @property
    def known(self) -> bool:
        """Whether every call has told what it used."""
        return not (self.unknown_calls or self.failed_calls or self.lost_calls or self.open)

    def ask(self, call_id: str, role_call_id: str) -> None:
        """Count a call; one that is asked although it is open was cut off, and is no other call for that."""
        again = call_id in self.open
        self.lost_calls += again
        self.asked_again += again
        self.calls += not again
        self.open[call_id] = role_call_id

    def answer(self, call_id: str, usage: Mapping[str, Any]) -> None:
        """Add what a call used."""
        self.open.pop(call_id, None)
        self.input_tokens += usage.get("inputTokens", 0)
        self.output_tokens += usage.get("outputTokens", 0)
        self.cached_input_tokens += usage.get("cachedInputTokens", 0)
        self.reasoning_tokens += usage.get("reasoningTokens", 0)
        self.unknown_calls += 0 if usage.get("known", True) else 1

    def fail(self, call_id: str) -> None:
        """A call ended without an answer."""
        self.failed_calls += 1
        self.open.pop(call_id, None)

    def lose(self, role_call_id: str | None = None) -> None:
        """Nobody waits any more for the open calls of a role call, or for any."""
        lost = [one for one, role_call in self.open.items() if role_call_id in (None, role_call)]
        self.lost_calls += len(lost)
        for call_id in lost:
            del self.open[call_id]


@attrs.define
class Visit:
    """The stage visit that is open."""

    stage: str
    visit_id: str
    index: int
    persona: str
    executor: str
    model: str
    max_attempts: int
    entered_seq: int = 0  # its first event: none of it is before
    tokens_before: int = 0  # used when its last plan was registered
    attempt: int = 1
    retries: int = 0
    passed: list[str] = attrs.Factory(list)
    pack_ref: str | None = None
    facts_ref: str | None = None
    requested: dict[str, str] = attrs.Factory(dict)  # request id -> its role call, or its effect
    begun_at: dict[str, int] = attrs.Factory(dict)  # place -> the seq of the first role call there
    repaired: dict[str, str] = attrs.Factory(dict)  # place -> the role call of the last repair there
    outcomes: list[dict[str, Any]] = attrs.Factory(list)
    artifact_id: str | None = None
    artifact_type: str | None = None
    output_ref: str | None = None
    body_ref: str | None = None
    status: str | None = None
    body: Any = None
    accepted: bool = False
    warnings: list[Any] = attrs.Factory(list)
    steering: list[str] = attrs.Factory(list)  # instructions that its contexts hold
    failure: Failure | None = None
    skipped: bool = False
    feedback: str | None = None
    prior: list[dict[str, Any]] = attrs.Factory(list)  # how the attempts before this one ended
    temperature: float | None = None
    left: bool = False

    def keep_ended(self, retry: Mapping[str, Any]) -> None:
        """Remember how this attempt ended, before the next one; one that a change has ended is no fault of it."""
        if retry["code"] != MIGRATED:
            ended = {"attempt": self.attempt, "code": retry["code"], "reason": retry["reason"]}
            self.prior.append({**ended, "output_ref": self.output_ref})

    def ask(self, request: OpenRequest) -> None:
        """Remember a role call of this attempt."""
        role_call_id = request.payload["role_call_id"]
        self.requested[request.payload["request_id"]] = role_call_id
        if request.place is not None:
            self.begun_at.setdefault(request.place, request.seq)
            if request.payload["role"] == "fixer":
                self.repaired[request.place] = role_call_id


@attrs.define
class SessionState:
    """The state of one session. Mutable, owned by the loop, thrown away after a failed append (D-9)."""

    session_id: str = ""
    status: str = ""  # "" before session.created
    seq: int = 0
    created: dict[str, Any] = attrs.Factory(dict)
    created_at: str = ""
    updated_at: str = ""
    config_digest: str = ""
    config_ref: str = ""  # its content
    forked_from: str | None = None  # the session that it is a fork of
    plugins: dict[str, str] = attrs.Factory(dict)  # id -> version of those that took part, as last accepted
    migrated_seq: int = 0  # of the last accepted change of the configuration
    changed_seq: int = 0  # of the last event after which what was asked for before may run, or may not any more
    visit: Visit | None = None
    visits: int = 0
    visits_of: dict[str, int] = attrs.Factory(dict)
    target: str | None = None  # where a committed transition leads
    open: dict[str, OpenRequest] = attrs.Factory(dict)
    role_calls: dict[str, OpenRequest] = attrs.Factory(dict)  # those of them that are role calls, by their own id
    timers: dict[str, OpenRequest] = attrs.Factory(dict)  # those of them that are timers
    externals: dict[str, OpenRequest] = attrs.Factory(dict)  # those of them that wait for an event from outside
    kept: dict[str, list[dict[str, str]]] = attrs.Factory(dict)  # name -> what was delivered, and nobody has had
    children: dict[str, OpenRequest] = attrs.Factory(dict)  # those of them that are child sessions
    child_ends: dict[str, dict[str, Any]] = attrs.Factory(dict)  # open role call -> its call -> how its child ended
    child_spent: dict[str, float] = attrs.Factory(dict)  # tokens and calls of children that have ended
    given_up: list[str] = attrs.Factory(list)  # children that nobody waits for, and that are to be ended
    versions: dict[str, dict[str, Any]] = attrs.Factory(dict)  # workflow version id -> what a child registered
    approvals: dict[str, Approval] = attrs.Factory(dict)  # all of them: to look one up, never to walk over
    pending: dict[str, Approval] = attrs.Factory(dict)  # those that nobody has decided
    unused: dict[str, str] = attrs.Factory(dict)  # event of a tool's grant no call has used -> its approval
    questions: dict[str, dict[str, list[str]]] = attrs.Factory(dict)  # open role call -> its call -> its approvals
    decided: dict[str, int] = attrs.Factory(dict)  # what was decided (``Approval.decision``) -> how often
    commands: set[str] = attrs.Factory(set)  # ids of those received: two readers of the inbox may bring one twice
    grants: list[dict[str, Any]] = attrs.Factory(list)
    steering: list[str] = attrs.Factory(list)  # instructions that no context holds yet
    artifacts: list[dict[str, Any]] = attrs.Factory(list)
    usage: Usage = attrs.Factory(Usage)
    reserved: dict[str, int] = attrs.Factory(dict)  # call id -> tokens
    spent_tokens: int = 0
    active_ms: int = 0  # as settlements told, over all processes that ran the session
    budget: dict[str, float] = attrs.Factory(dict)
    exhausted: dict[str, Any] | None = None
    in_doubt: dict[str, dict[str, Any]] = attrs.Factory(dict)
    settled: dict[str, dict[str, Any]] = attrs.Factory(dict)
    plugin_failures: int = 0
    pausing: str | None = None
    cancelling: str | None = None
    failure: Failure | None = None
    unknown_types: list[str] = attrs.Factory(list)
    causes: Causes = attrs.Factory(Causes)

    @property
    def final(self) -> bool:
        """Whether nothing can change any more (I-20)."""
        return self.status in FINAL

    def open_of(self, role_call_id: str) -> OpenRequest | None:
        """The open role call of that id."""
        return self.role_calls.get(role_call_id)
