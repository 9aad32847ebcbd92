"""The specific part of a session's loop: the kernel's pure functions bound to one definition, and append checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness_core.kernel.asking import ASKED, ENDING, REQUESTED
from harness_core.kernel.causes import cause_of
from harness_core.kernel.commands import Advance, Command
from harness_core.kernel.compiling import compiled_value
from harness_core.kernel.decide import decide
from harness_core.kernel.definition import Definition
from harness_core.kernel.effects import Effect
from harness_core.kernel.evolve import evolve
from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.kernel.guard import guarded
from harness_core.kernel.projections.session import session_document
from harness_core.kernel.react import react
from harness_core.kernel.stages import advance
from harness_core.kernel.state import SessionState, Visit
from harness_hookspecs.errors import HarnessError, PluginError, VocabularyError
from harness_hookspecs.events import ACTORS, EVENTS, check_payload
from harness_hookspecs.executor import Opens, Outcome, Request, StageInput
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.kit.prompt import PromptHasher

__all__ = ["WAITING_TYPES", "SessionMachine"]

WAITING_TYPES = frozenset(
    {
        "harness.model.called", "harness.tool_call.started", "approval.requested", "timer.requested",
        "external.requested", "child.requested", "child.granted",
    }
)  # fmt: skip
"""Intents that are on the disk, with all before them, before their effect starts (D-7)."""

_SUMMARISED = frozenset(
    {"stage.entered", "artifact.accepted", "budget.exhausted", "effect.in_doubt"}
    | {event_type for event_type in EVENTS if event_type.startswith("session.")}
)
"""What a listing shows changes with these."""


class SessionMachine:
    """Binds the kernel to a definition.

    Args:
        session_id: The session; ids derive from it.
        definition: What it runs under; replaced by a migration.
        read_blob: Content by digest, for the executor's input and outcomes.
    """

    waiting_types = WAITING_TYPES

    def __init__(self, session_id: str, definition: Definition, read_blob: Callable[[str], bytes]) -> None:
        self.session_id = session_id
        self.definition = definition
        self._read_blob = read_blob
        self._recent: dict[str, bytes] = {}  # content decided and perhaps not committed yet
        self._executor_state: tuple[tuple[str, int], int, Any] | None = None
        self._asked: tuple[str, int, int, int] | None = None
        self._all_asked: tuple[str, int, int] | None = None  # what stands in the state once all that is opened does
        self._opened: list[Request] | None = None  # by outcomes, since it was asked; None: it is asked for all
        self._opens = False  # whether the executor says what they open
        self._reacted: tuple[SessionState, int] | None = None  # to what was asked for up to that seq

    def new_state(self) -> SessionState:
        self._executor_state = self._asked = self._all_asked = self._opened = self._reacted = None
        return SessionState(session_id=self.session_id)

    def decide(self, command: Command, state: SessionState) -> Decision:
        return decide(command, state, self.definition)

    def advance(self, state: SessionState, running: Collection[str]) -> Decision:
        if self._all_asked is not None and _requests(state.visit) == self._all_asked:
            self._opened = []  # what it said stands in the state by now
        executor_state = self._state_of_executor(state)
        asked = self._asked is not None and _calls(state.visit) == self._asked
        decision = advance(state, self.definition, Advance(running, asked, self._opened), executor_state)
        requested = len([fact for fact in decision.facts if fact.type in REQUESTED])
        if decision is ASKED or requested:  # it said all that it wants; what it asked for stands in the state next
            self._asked = _calls(state.visit, requested)
            self._all_asked = _requests(state.visit, requested) if self._opens else None
        elif decision is ENDING:  # its end is met later: what an outcome has opened does not say it again
            self._opened = None
        return decision

    evolve = staticmethod(evolve)

    def react(self, state: SessionState) -> list[Effect]:
        """What should begin; what was given once is given again when something has happened that may change it."""
        known = self._reacted
        after = known[1] if known is not None and known[0] is state and state.changed_seq <= known[1] else 0
        self._reacted = (state, state.seq)
        return react(state, after)

    cause = staticmethod(cause_of)

    def version(self, event_type: str) -> int:
        return EVENTS[event_type].version

    def summary(self, state: SessionState, events: Sequence[Event]) -> bytes | None:
        if not _SUMMARISED.isdisjoint([event.type for event in events]):
            return dumps(session_document(state))
        return None

    def check(self, decision: Decision) -> None:
        """Vocabulary, actor, payload and hashes, before anything is folded or stored (I-8).

        Raises:
            VocabularyError: A fact that may not stand in the log.
        """
        for digest, content in decision.blobs.items():
            if hashlib.sha256(content).hexdigest() != digest:
                raise VocabularyError("content does not hash to its digest", code="vocabulary.hash", digest=digest)
        for fact in decision.facts:
            if fact.actor not in ACTORS:
                raise VocabularyError(f"{fact.actor} is not an actor", code="vocabulary.actor")
            check_payload(fact.type, fact.payload)
            if fact.type in _HASHED:
                _HASHED[fact.type](fact, lambda digest: self._kept(digest, decision.blobs))
        self._recent.update(decision.blobs)
        while len(self._recent) > 256:
            self._recent.pop(next(iter(self._recent)))

    def blob(self, digest: str) -> bytes:
        """Content that was decided or stored. Any thread may ask, so what is remembered is only looked at here."""
        content = self._recent.get(digest)
        return self._read_blob(digest) if content is None else content

    def _kept(self, digest: str, first: Mapping[str, bytes]) -> bytes:
        """Content that a check needs, remembered for the next one; only the turn under way does this."""
        if digest in first:
            return first[digest]
        content = self._recent[digest] = self.blob(digest)
        return content

    def _state_of_executor(self, state: SessionState) -> Any:
        """``S`` of the open attempt; started and applied again whenever it is not at hand."""
        visit = state.visit
        if state.final or state.cancelling:  # nothing follows from it, and no plugin need be there for an end
            return None
        if visit is None or visit.pack_ref is None or visit.artifact_id is not None or visit.failure is not None:
            return None
        key, count = (visit.visit_id, visit.attempt), len(visit.outcomes)
        known = self._executor_state
        if known is None or known[0] != key or known[1] > count:
            known = (key, 0, self._start_executor(visit))
        value = self._apply_outcomes(visit, known[1], known[2])
        self._executor_state = (key, count, value)
        return value

    def _start_executor(self, visit: Visit) -> Any:
        assert visit.pack_ref is not None
        pack = read_canonical(self.blob(visit.pack_ref))
        executor = self.definition.executors.get(visit.executor)
        if executor is None:  # the configuration was migrated
            return PluginError(f"no stage uses the executor {visit.executor} any more", code="executor.not_available")
        self._opened, self._opens = None, isinstance(executor, Opens)
        what = f"executor {visit.executor}"
        started = guarded(lambda: executor.start(StageInput.model_validate(pack["input"])), what=what)
        return started.value if started.error is None else started.error

    def _apply_outcomes(self, visit: Visit, known: int, value: Any) -> Any:
        """Apply the outcomes that came after ``known``; an error stays one."""
        for outcome in visit.outcomes[known:]:
            self._all_asked = None
            if isinstance(value, HarnessError):
                return value
            executor = self.definition.executors[visit.executor]
            applied = guarded(executor.apply, value, self._outcome(outcome), what=f"executor {visit.executor}")
            value = applied.value if applied.error is None else applied.error
            if applied.error is not None:
                self._opened = None  # its error is met in the usual way, whatever would be said of that
            elif self._opened is not None:
                self._add_opened(executor, value)
        return value

    def _add_opened(self, executor: Any, value: Any) -> None:
        """What an outcome has opened; ask for all where that cannot be said, and its error is met in the usual way.

        Where the one before has opened something too, only ``next`` says in which order all of it is asked for: a
        replay, and who goes on after a crash, may meet both at once where here they came one by one.
        """
        opened = None if self._opened else guarded(lambda: tuple(executor.opened(value)), what="executor")
        self._opened = None if opened is None or opened.error is not None else [*opened.value]

    def _outcome(self, outcome: Mapping[str, Any]) -> Outcome:
        if "version" in outcome:
            value = compiled_value(outcome["version"], self.blob)
            return Outcome.model_validate({"request_id": outcome["request_id"], "ok": True, "value": value})
        if outcome["ok"] and "value_ref" not in outcome:  # of a timer
            return Outcome(request_id=outcome["request_id"], ok=True)
        if outcome["ok"]:
            value = read_canonical(self.blob(outcome["value_ref"]))
            return Outcome.model_validate({"request_id": outcome["request_id"], "ok": True, "value": value})
        return Outcome(request_id=outcome["request_id"], ok=False, error=outcome["error"])


def _calls(visit: Visit | None, more: int = 0) -> tuple[str, int, int, int] | None:
    """The attempt, how many of its calls have ended and how many were asked for."""
    if visit is None:
        return None
    return visit.visit_id, visit.attempt, len(visit.outcomes), len(visit.requested) + more


def _requests(visit: Visit | None, more: int = 0) -> tuple[str, int, int] | None:
    """The attempt and how many calls of it were asked for."""
    return None if visit is None else (visit.visit_id, visit.attempt, len(visit.requested) + more)


def _check_manifest(fact: Fact, blob: Callable[[str], bytes]) -> None:
    """The manifest stored under ``manifestHash`` must be there and hash to it (A-58)."""
    digest = fact.payload["manifestHash"]
    try:
        content = blob(digest)
    except HarnessError as error:
        raise VocabularyError("the manifest is not stored under its hash", code="vocabulary.hash") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise VocabularyError("the manifest does not hash to manifestHash", code="vocabulary.hash")


def _check_prompt(fact: Fact, blob: Callable[[str], bytes]) -> None:
    """promptHash is computed again from the recorded request (A-65)."""
    request = fact.payload["request"]
    hasher = _before_messages(dumps([request["model"], request.get("params"), request.get("tools")])).copy()
    hasher.add_digests(bytes.fromhex("".join(request["messages"])))
    if hasher.hexdigest() != fact.payload["promptHash"]:
        raise VocabularyError("promptHash does not match the request", code="vocabulary.hash")


@lru_cache(maxsize=64)
def _before_messages(said: bytes) -> PromptHasher:
    """A promptHash without its messages; what comes before them is the same for most questions of a stage."""
    model, params, tools = loads_trusted(said)
    hashes = {tool["name"]: tool["schemaHash"] for tool in tools or ()}
    return PromptHasher(provider=model["provider"], model_id=model["modelId"], params=params or {}, tools=hashes)


_HASHED: dict[str, Callable[[Fact, Callable[[str], bytes]], None]] = {
    "harness.session.started": _check_manifest,
    "harness.model.called": _check_prompt,
}
