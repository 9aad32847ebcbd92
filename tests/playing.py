"""A definition and commands in, the facts that the kernel decides and the state they fold to out; there is no world.

Shared by the tests of the kernel. Every decision is taken twice and must be the same, must leave the state as it was,
and may name only facts of the vocabulary; every move of a session's state must be an allowed one.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness_core.kernel.commands import (
    Command,
    ContextReady,
    Received,
    RoleFailed,
    RoleReturned,
    Start,
    Validated,
)
from harness_core.kernel.definition import Definition, Limits, ModelPlan, RetryPolicy, RulePlan, StagePlan
from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.shell.machine import SessionMachine
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.rules import Program
from harness_rules_cel.rules import CelRules

__all__ = [
    "ALLOWED_MOVES",
    "CEL",
    "REF",
    "OneCall",
    "Play",
    "definition",
    "event_of",
    "retry",
    "stage",
]

SESSION = "01990000-0000-7000-8000-000000000001"
REF = digest("content")
"""The digest of something that is stored somewhere."""

CEL = CelRules()
ROOTS = ("artifact", "retries", "stage", "visit")

ALLOWED_MOVES: Mapping[str, frozenset[str]] = {
    "": frozenset({"created"}),
    "created": frozenset({"active", "failed", "cancelled"}),
    "active": frozenset({"paused", "awaiting_approval", "completed", "failed", "cancelled"}),
    "paused": frozenset({"active", "failed", "cancelled"}),
    "awaiting_approval": frozenset({"active", "failed", "cancelled"}),
}
"""B-137; a final state has no way out."""

MOVING = {
    "session.created": "created",
    "session.started": "active",
    "session.resumed": "active",
    "session.paused": "paused",
    "session.awaiting": "awaiting_approval",
    "session.completed": "completed",
    "session.failed": "failed",
    "session.cancelled": "cancelled",
}
_MAX_DECISIONS = 50


class OneCall:
    """An executor with one role call, or with as many side by side as it is told."""

    def __init__(self, calls: int = 1) -> None:
        self._calls = calls

    def start(self, stage_input: StageInput) -> Any:
        """Nothing has ended yet."""
        return {"attempt": stage_input.attempt, "ended": []}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """One more has ended."""
        return {**state, "ended": [*state["ended"], outcome.to_wire()]}

    def next(self, state: Any) -> tuple[Request, ...]:
        """The calls that are left, and the end after the last one or a failed one."""
        failed = [outcome for outcome in state["ended"] if not outcome["ok"]]
        if failed:
            return (Fail(code=failed[0]["error"]["code"], message=failed[0]["error"]["message"]),)
        if len(state["ended"]) == self._calls:
            return (Finish(output=state["ended"][0]["value"]),)
        ended = {outcome["request_id"] for outcome in state["ended"]}
        names = [f"a{state['attempt']}.call{index}" for index in range(self._calls)]
        task = {"kind": "execute_step"}
        calls = [RoleCall(request_id=name, role="worker.ai-generate", task=task) for name in names]
        return tuple(call for call in calls if call.request_id not in ended)


def retry(
    strategy: Any = "retry", max_attempts: int = 1, *, inject: bool = False, backoff: bool = False
) -> RetryPolicy:
    return RetryPolicy(strategy, max_attempts, inject, backoff)


def stage(name: str = "work", *rules: tuple[str, str | tuple[str, ...]], **more: Any) -> StagePlan:
    """A stage with these rules, each an expression and its targets; ``more`` are fields of the plan or the model."""
    model: dict[str, Any] = {
        "name": "small",
        "provider": "scripted",
        "capabilities": frozenset({"coding"}),
        "context_tokens": 8_192,
        "params": {},
    }
    model |= {key: more.pop(key) for key in [*model] if key in more and key not in ("name", "context_tokens")}
    model["denied_by"] = more.pop("denied_by", None)
    fields: dict[str, Any] = {
        "persona": "worker",
        "executor": "agent",
        "requirements": frozenset(),
        "artifact": "text",
        "allowed_tools": (),
        "gate": False,
        "retry": retry(),
        "system": None,
        "prompt": "Do it.",
        "max_turns": 8,
        "context_tokens": 4_096,
    }
    chosen = rules or (('artifact.status == "success"', "completed"), ('artifact.status != "success"', "failed"))
    return StagePlan(
        name=name,
        model=ModelPlan(**model),
        transitions=tuple(_rule(name, index, *rule) for index, rule in enumerate(chosen)),
        **{**fields, **more},
    )


def _rule(name: str, index: int, when: str, goto: str | tuple[str, ...]) -> RulePlan:
    program: Program = CEL.compile(when, roots=ROOTS)
    targets = (goto,) if isinstance(goto, str) else goto
    return RulePlan(when, program, targets, f"stages.yaml:{name}:{index}")


def definition(*stages: StagePlan, **more: Any) -> Definition:
    """A definition that begins with the first stage."""
    chosen = stages or (stage(),)
    limits: dict[str, Any] = {
        "max_visits": 20,
        "budget_tokens": 100_000,
        "budget_calls": 100,
        "budget_seconds": 3_600.0,
        "requests_per_attempt": 100,
        "max_children": 10,
        "max_depth": 3,
    }
    fields: dict[str, Any] = {
        "executors": {"agent": OneCall()},
        "rules": CEL,
        "validators": {"routing": (), "payload": ("schema",), "semantic": ("files",), "approval": ()},
    }
    limits |= {key: more.pop(key) for key in [*limits] if key in more}
    return Definition(
        initial=chosen[0].name, stages={one.name: one for one in chosen}, limits=Limits(**limits), **{**fields, **more}
    )


class Play:
    """A session, played: the commands that the world would send are sent by the test.

    Args:
        definition: What it runs under.
        start: Whether it is begun at once.
    """

    def __init__(self, definition: Definition, *, start: bool = True) -> None:
        self.blobs: dict[str, bytes] = {}
        self.machine = SessionMachine(SESSION, definition, self._blob)
        self.state: SessionState = self.machine.new_state()
        self.facts: list[Fact] = []
        self.running: set[str] = set()
        self.reply: Any = None
        if start:
            self.start()

    def _blob(self, ref: str) -> bytes:
        return self.blobs[ref]

    # -- commands ---

    def send(self, command: Command) -> list[str]:
        """Decide, fold, and go on as far as it goes by itself; returns the types of the new facts."""
        before = len(self.facts)
        self.take(command)
        self.advance()
        return [fact.type for fact in self.facts[before:]]

    def take(self, command: Command) -> None:
        """Decide and fold, and nothing else."""
        was = pickle.dumps(self.state)
        decision = self.machine.decide(command, self.state)
        assert pickle.dumps(self.state) == was, f"deciding {type(command).__name__} changed the state"
        assert self.machine.decide(command, self.state) == decision
        self._fold(decision)
        self.reply = decision.reply

    def found(self, *facts: Fact) -> None:
        """What another process has left behind is all there is."""
        self.facts = list(facts)
        self.state = self.folded_again()

    def advance(self) -> None:
        for _ in range(_MAX_DECISIONS):
            was = pickle.dumps(self.state)
            decision = self.machine.advance(self.state, frozenset(self.running))
            assert pickle.dumps(self.state) == was, "advancing changed the state"
            assert self.machine.advance(self.state, frozenset(self.running)) == decision
            if not decision.facts:
                return
            self._fold(decision)
        raise AssertionError(f"one turn goes on for ever: {[fact.type for fact in self.facts[-6:]]}")

    def _fold(self, decision: Decision) -> None:
        self.machine.check(decision)
        self.blobs.update(decision.blobs)
        for fact in decision.facts:
            moved = MOVING.get(fact.type)
            if moved is not None and moved != self.state.status:
                allowed = ALLOWED_MOVES.get(self.state.status, frozenset())
                assert moved in allowed, f"{fact.type} in state {self.state.status!r}"
            assert not (self.state.final and moved), f"{fact.type} after the end"
            self.facts.append(fact)
            self.machine.evolve(self.state, event_of(fact, len(self.facts)))

    # -- what the world says, in short ---

    def created(self, **more: Any) -> dict[str, Any]:
        """The payload of ``session.created``."""
        text, config = b"words", b"{}"
        refs = {name: digest_of(content) for name, content in (("text_ref", text), ("config_ref", config))}
        self.blobs.update({refs["text_ref"]: text, refs["config_ref"]: config})
        fixed = {"title": "words", "project": "project", "on_ask": "deny", "seed": 1}
        return {**fixed, **refs, "config_digest": refs["config_ref"], **more}

    def start(self, **created: Any) -> list[str]:
        return self.send(Start(SESSION, self.created(**created), {}))

    def open_one(self, kind: str) -> OpenRequest:
        return next(self.opened(kind))

    def opened(self, kind: str) -> Iterator[OpenRequest]:
        return (request for request in list(self.state.open.values()) if request.kind == kind)

    def context(self, **pack: Any) -> list[str]:
        """The context that is asked for is there."""
        request = self.open_one("context")
        return self.send(self.context_ready(request.effect_id, **pack))

    def context_ready(self, effect_id: str, **pack: Any) -> ContextReady:
        visit = self.state.visit
        assert visit is not None
        given = {
            "stage": visit.stage,
            "visit_index": visit.index,
            "attempt": visit.attempt,
            "persona": visit.persona,
            "prompt": "Do it.",
            "context": "",
            "model": visit.model,
            "max_turns": 8,
            **pack,
        }
        document = {"input": given}
        payload = {
            "effect_id": effect_id,
            "visit_id": visit.visit_id,
            "attempt": visit.attempt,
            "facts_ref": REF,
            "pack_ref": digest(document),
            "tokens": 1,
            "budget_tokens": 10,
            "counted_by": "test",
            "items": 0,
            "left_out": 0,
        }
        return ContextReady(effect_id, payload, {digest(document): canonical(document)})

    def role(self, output: Any = "done") -> list[str]:
        """The role call returns."""
        role_call_id = self.open_one("role").payload["role_call_id"]
        return self.send(RoleReturned(role_call_id, digest(output), (), {digest(output): canonical(output)}))

    def role_fails(self, code: str = "provider.unavailable", message: str = "no model") -> list[str]:
        role_call_id = self.open_one("role").payload["role_call_id"]
        return self.send(RoleFailed(role_call_id, {"name": "Error", "message": message, "code": code}))

    def judged(self, outcome: Any = "passed", *, findings: Sequence[Any] = (), **more: Any) -> list[str]:
        """The level that is open is judged."""
        return self.send(self.verdict(outcome, findings=findings, **more))

    def verdict(self, outcome: Any = "passed", *, findings: Sequence[Any] = (), **more: Any) -> Validated:
        request = self.open_one("validation")
        level = request.payload["level"]
        payload: dict[str, Any] = {"effect_id": request.effect_id, "level": level}
        if outcome == "errored":
            payload["errors"] = [{"validator": "schema", "name": "Error", "message": "broken"}]
        else:
            payload["findings"] = list(findings)
        if outcome == "passed" and level == "payload":
            payload |= {"body_ref": REF, "status": "success"}
        return Validated(request.effect_id, outcome, {**payload, **more}, {})

    def receive(self, kind: str, /, command_id: str = "", **body: Any) -> list[str]:
        """A command of the inbox."""
        return self.send(Received(command_id or f"{kind}:{len(self.facts)}", kind, body))

    def to_role(self) -> Play:
        """Up to the open role call."""
        self.context()
        return self

    def to_artifact(self, output: Any = "done") -> Play:
        """Up to the open validation of the payload."""
        self.context()
        self.role(output)
        return self

    def succeed(self, **more: Any) -> list[str]:
        """One whole attempt, from its context to what follows from its accepted artifact."""
        before = len(self.facts)
        self.to_artifact()
        self.judged(**more)
        self.judged()
        return [fact.type for fact in self.facts[before:]]

    # -- looking ---

    def types(self, start: int = 0) -> list[str]:
        return [fact.type for fact in self.facts[start:]]

    def last(self, event_type: str) -> dict[str, Any]:
        """The payload of the latest fact of that type."""
        return next(fact.payload for fact in reversed(self.facts) if fact.type == event_type)

    def folded_again(self) -> SessionState:
        """The state that the facts alone give, to another process."""
        state = self.machine.new_state()
        for number, fact in enumerate(self.facts, start=1):
            self.machine.evolve(state, event_of(fact, number))
        return state


def event_of(fact: Fact, seq: int) -> Event:
    """The fact as it would be read back: plain JSON, under a made-up id."""
    payload = json.loads(json.dumps(fact.payload))
    refs = {name: value for name, value in fact.refs.items() if value is not None}
    return Event(seq, f"event-{seq}", fact.type, payload, refs, f"2026-01-01T00:00:00.{seq:03}Z")


def digest_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def snapshot(state: SessionState) -> str:
    """All of a state as text; two states are equal when these are."""
    return json.dumps(attrs.asdict(state), sort_keys=True, default=sorted)
