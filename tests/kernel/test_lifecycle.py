"""Whatever is said to a session, in whatever order, its state moves only where it may and it never gets lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from harness_core.kernel.commands import (
    AskApproval,
    CancelNow,
    Command,
    Compiled,
    ContextReady,
    EffectFailed,
    Migrate,
    PauseNow,
    PluginsFailed,
    Received,
    Record,
    Resume,
    RoleFailed,
    RoleReturned,
    RoleSuspended,
    Start,
    TimersElapsed,
    Unanswered,
    Validated,
)
from harness_core.kernel.effects import Ask, CompilePlan, GatherContext, RunRole
from harness_core.kernel.facts import Fact
from harness_core.kernel.forking import border, inheritance
from harness_core.kernel.projections.artifacts import artifact_items
from harness_core.kernel.react import react
from harness_core.kernel.state import OpenRequest
from harness_hookspecs.events import EVENTS
from harness_hookspecs.executor import Compile, Fail, Finish, Request, RoleCall, Timer
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.kit.prompt import PromptHasher
from tests.playing import REF, SESSION, OneCall, Play, definition, event_of, retry, snapshot, stage

FINDING = {"code": "x", "severity": "error", "path": "", "message": "wrong"}
ERROR = {"name": "E", "message": "no"}
OUT = digest("out")


class Naps(OneCall):
    """One role call beside two timers, one of which it waits for; whoever ends waits for none."""

    def next(self, state: Any) -> tuple[Request, ...]:
        ended = {outcome["request_id"] for outcome in state["ended"]}
        called = [outcome for outcome in state["ended"] if outcome["request_id"].endswith("call0")]
        calls = super().next({**state, "ended": called})
        names = [f"a{state['attempt']}.{name}" for name in ("nap", "sleep")]
        timers: list[Request] = [Timer(request_id=name, delay_ms=1) for name in names if name not in ended]
        if (plan := f"a{state['attempt']}.plan") not in ended:
            timers.append(Compile(request_id=plan, document={}))
        if isinstance(calls[0], Fail) or (isinstance(calls[0], Finish) and names[0] in ended):
            return calls
        return (*(one for one in calls if isinstance(one, RoleCall)), *timers)


def several_stages(chance: Random) -> Play:
    """Two stages: one with two calls side by side and a gate, one that is tried again and may go back."""
    strategy = chance.choice(("corrective", "fail_safe", "fail_fast"))
    work = stage(
        "work",
        ('artifact.status == "success"', "check"),
        ('artifact.status == "skipped"', "completed"),
        ("retries >= 2", "failed"),
        executor="pair",
        gate=True,
        retry=retry(strategy, 2, backoff=True),
    )
    check = stage(
        "check",
        ('artifact.status == "partial"', "work"),
        ('artifact.status == "success" && visit.index == 0', "retry"),
        ('artifact.status == "success"', "completed"),
        ('artifact.status != "success"', ("missing", "cancelled")),
        retry=retry("retry", 3),
    )
    executors: dict[str, Any] = {"agent": OneCall(), "pair": chance.choice((OneCall(2), Naps()))}
    return Play(definition(work, check, executors=executors, max_visits=5, budget_tokens=1_000), start=False)


class World:
    """Everything that may be said to a session, drawn by chance; some of it makes no sense."""

    def __init__(self, play: Play, chance: Random) -> None:
        self.play, self._chance = play, chance
        self.ended = ["eff_none"]  # what has had its result

    def pick(self, choices: Sequence[Any]) -> Any:
        return self._chance.choice(choices)

    def step(self) -> None:
        effects = [*react(self.play.state), *self.play.state.timers.values()]
        if effects and self._chance.random() < 0.85:
            self.play.send(self.outcome(self.pick(effects)))
        elif self._chance.random() < 0.8:
            self.play.send(self.from_outside())
        else:  # something takes its time, and what is under way is waited for
            self.play.running = self.pick((set(), {"something"}))
            self.play.advance()

    # -- outcomes of what should be under way ---

    def outcome(self, effect: Any) -> Command:
        if isinstance(effect, Ask):
            return Unanswered(effect.approval_id, deny=self.pick((True, False, False)))
        request = self.play.state.open[effect.effect_id]
        if isinstance(effect, OpenRequest):
            return TimersElapsed((effect.effect_id,))
        if isinstance(effect, CompilePlan):
            return self.compiled(effect.effect_id)
        if isinstance(effect, RunRole):
            return self.role(request.payload["role_call_id"])
        self.ended.append(effect.effect_id)
        if not isinstance(effect, GatherContext):
            return self.verdict(effect.effect_id, request.payload["level"])
        if self.pick((True, True, True, False)):
            return self.play.context_ready(effect.effect_id)
        return EffectFailed(effect.effect_id, {**ERROR, "code": "context.source"})

    def compiled(self, effect_id: str) -> Command:
        self.ended.append(effect_id)
        if self._chance.random() < 0.2:
            return Compiled(effect_id, False, {"effect_id": effect_id, "findings": [FINDING]}, {})
        refs = {"plan_ref": REF, "lock_ref": REF}
        version = {"effect_id": effect_id, "workflow_version_id": "wfv_1", **refs}
        return Compiled(effect_id, True, version, {REF: canonical("content")})

    def verdict(self, effect_id: str, level: str) -> Command:
        outcome = self.pick((*["passed"] * 8, "failed", "errored"))
        payload: dict[str, Any] = {"effect_id": effect_id, "level": level}
        payload |= {"errors": [ERROR]} if outcome == "errored" else {"findings": [FINDING]}
        if outcome == "passed" and level == "payload":
            status = self.pick((*["success"] * 4, "partial", None))
            payload |= {"body_ref": REF, "status": status} if status else {}
        return Validated(effect_id, outcome, payload, {})

    def role(self, role_call_id: str) -> Command:
        mine = [a for a in self.play.state.approvals.values() if a.payload.get("role_call_id") == role_call_id]
        pending = [approval.approval_id for approval in mine if approval.status == "pending"]
        if pending and self.pick((True, True, False)):
            return RoleSuspended(role_call_id, "approval", pending[0])
        if pending:
            return self.question(role_call_id)
        if self.play.state.exhausted is not None:
            return RoleSuspended(role_call_id, "budget", "tokens")
        acts = (self.failed, self.in_doubt, self.model_call, self.question)
        return self.pick((*[self.returned] * 6, *acts))(role_call_id)  # type: ignore[no-any-return]

    def returned(self, role_call_id: str) -> Command:
        self.ended.append(role_call_id)
        return RoleReturned(role_call_id, OUT, (), {OUT: canonical("out")})

    def failed(self, role_call_id: str) -> Command:
        self.ended.append(role_call_id)
        codes = ("provider.unavailable", "script.exhausted", "approval.denied_unattended")
        return RoleFailed(role_call_id, {**ERROR, "code": self.pick(codes)})

    def in_doubt(self, role_call_id: str) -> Command:
        effect_id = f"eff-{len(self.play.facts)}"
        doubt = {"effect_id": effect_id, "role_call_id": role_call_id, "call_id": "c", "tool_name": "t"}
        fact = Fact("effect.in_doubt", {**doubt, "args_digest": REF}, {"role_call_id": role_call_id})
        return RoleSuspended(role_call_id, "in_doubt", effect_id, (fact,))

    def model_call(self, role_call_id: str) -> Command:
        refs = {"role_call_id": role_call_id}
        settled = Fact(
            "budget.settled", {"call_id": f"call-{len(self.play.facts)}", "tokens": 10, "known": False}, refs
        )
        request = {"model": {"provider": "p", "modelId": "m"}, "messages": []}
        prompt_hash = PromptHasher(provider="p", model_id="m", params={}, tools={}).hexdigest()
        called = {"turn": 1, "callId": f"call-{len(self.play.facts)}", "promptHash": prompt_hash, "request": request}
        results = self.pick(((settled,), ()))
        return Record(role_call_id, results, (Fact("harness.model.called", called, refs),), reserve_tokens=600)

    def question(self, role_call_id: str) -> Command:
        request = self.play.state.open_of(role_call_id)
        assert request is not None
        call_id, number = self.pick(("c1", "c2")), self.pick((1, 2))
        payload = {
            "subject": "tool",
            "name": "curl",
            "tier": "T3",
            "args": {"n": number},
            "rule": "tiers.T3",
            "visit_id": request.payload["visit_id"],
            "persona": "worker",
            "role_call_id": role_call_id,
            "call_id": call_id,
        }
        return AskApproval(payload, *self.pick((("ask", "policy"), ("ask", "policy"), ("bypassed", "yolo"))))

    # -- what anyone may say at any time ---

    def from_outside(self) -> Command:
        name = self.pick(self.ended)
        choices: Sequence[Callable[[], Command]] = (
            self.posted,
            self.posted,
            self.posted,
            lambda: Start(SESSION, self.play.created(), {}),
            lambda: Resume("resume"),
            lambda: Resume("resume"),
            lambda: PauseNow("interrupted"),
            lambda: CancelNow("cancelled") if self._chance.random() < 0.2 else Resume("resume"),
            lambda: PluginsFailed(({"plugin": "p", "error": ERROR},)),
            lambda: Migrate({"old_digest": REF, "new_digest": REF, "content_ref": REF, "changes": []}, {}),
            lambda: ContextReady(name, {"effect_id": name}, {}),
            lambda: EffectFailed(name, ERROR),
            lambda: Validated(name, "passed", {"effect_id": name, "level": "payload"}, {}),
            lambda: RoleReturned(name, REF, (), {}),
            lambda: RoleFailed(name, ERROR),
            lambda: RoleSuspended(name, "pause", ""),
            lambda: Compiled(name, False, {"effect_id": name, "findings": []}, {}),
            lambda: TimersElapsed((name, *self.timers())),
            lambda: Record(name, results=(Fact("budget.settled", {"call_id": "late", "tokens": 7}),)),
            lambda: AskApproval({"role_call_id": name, "call_id": "c1"}, "ask"),
            lambda: Unanswered(name, deny=True),
        )
        return self.pick(choices)()  # type: ignore[no-any-return]

    def timers(self) -> list[str]:
        """All there ever were; most have ended."""
        return [fact.payload["effect_id"] for fact in self.play.facts if fact.type == "timer.requested"]

    def posted(self) -> Command:
        """A command of the inbox; its sender may know nothing of the session."""
        state = self.play.state
        approval_id = self.pick([*state.approvals, "appr_none"])
        known = state.approvals.get(approval_id)
        answer = {
            "approval_id": approval_id,
            "digest": known.payload["digest"] if known and self.pick((True, True, False)) else REF,
            "decision": self.pick(("approve", "deny", "auto_session", "perhaps")),
            "by": "somebody",
            "kind": "person",
        }
        settle = {"effect_id": self.pick([*state.in_doubt, "eff-none"]), "by": "somebody", "kind": "person"}
        kind, body = self.pick(
            (
                ("answer", answer),
                ("answer", {**answer, "say": "carefully"}),
                ("answer", {"decision": "approve"}),
                ("pause", {"reason": "operator"}),
                ("cancel" if self._chance.random() < 0.2 else "pause", {"reason": "operator"}),
                ("steer", {"text": "left", "by": "somebody"}),
                ("steer", {}),
                ("raise_budget", {"limits": {"tokens": 2_000}}),
                ("raise_budget", {"limits": {"tokens": "all"}}),
                ("settle", {**settle, "outcome": "never_happened"}),
                ("settle", {**settle, "outcome": "maybe"}),
                ("dance", []),
            )
        )
        return Received(f"command-{self.pick((len(self.play.facts), 3))}", kind, body)


def reasons_to_be_alive(play: Play) -> list[str]:
    """What has to happen next in a session at rest that is not over."""
    state = play.state
    if state.final:
        return []
    if state.status in ("created", "paused"):
        return ["resumed"]
    if state.status == "awaiting_approval":
        return ["answered"] if any(a.status == "pending" and a.awaited for a in state.approvals.values()) else []
    if react(state):
        return ["performed"]
    if state.timers:
        return ["elapsed"]
    return ["settled"] if state.in_doubt else ["raised"] if state.exhausted else []


SEEDS = 5_000 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 150
STEPS = 100


def play_by_chance(seed: int) -> Play:
    """One session; every move, the purity of every decision and every payload are checked as it is played."""
    chance = Random(seed)
    return _played(several_stages(chance), chance)


def fork_by_chance(parent: Play, seed: int) -> Play:
    """A fork of a session at any of its events, played under the same rules or others."""
    chance = Random(-seed)
    play = several_stages(chance)
    events = [event_of(fact, number) for number, fact in enumerate(parent.facts, start=1)]
    asked = chance.randint(1, len(events))
    seq = border(events[:asked])
    state = parent.machine.new_state()
    for event in events[:seq]:
        parent.machine.evolve(state, event)
    artifacts = artifact_items(events[:seq])
    told = {"parent_id": "parent", "seq": seq, "asked_seq": asked, "hash": REF, **inheritance(state, artifacts)}
    play.blobs.update(parent.blobs)
    return _played(play, chance, told)


def _played(play: Play, chance: Random, forked: Any = None) -> Play:
    world = World(play, chance)
    play.send(Start(SESSION, play.created(), {}, forked))
    for _ in range(STEPS):
        if play.state.final:
            return play
        world.step()
        assert play.running or len(reasons_to_be_alive(play)) == (not play.state.final), play.state
    return play


@pytest.mark.req("B-137")
@pytest.mark.inv("I-20")
def test_whatever_is_said_a_session_moves_as_it_may_and_is_never_lost() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        try:
            play = play_by_chance(seed)
            fork = fork_by_chance(play, seed)
            for one in (play, fork):
                assert snapshot(one.state) == snapshot(one.folded_again())
        except BaseException:
            print(f"seed {seed}")
            raise
        seen.update(play.types() + fork.types())
    elsewhere = ("child.", "external.", "harness.", "role.", "store.")  # of what comes from outside: test_externals
    decided_elsewhere = {name for name in EVENTS if name.startswith(elsewhere)}
    reached = decided_elsewhere | {"approval.expired", "effect.settled"} | set(seen)
    assert EVENTS.keys() <= reached, sorted(EVENTS.keys() - reached)
