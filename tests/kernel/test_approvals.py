"""A call, the policy, the session's grants and yolo in, what happens before anyone is asked out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.kernel.approvals import Call, PolicyRule, ToolPolicy, approval_digest, judge
from harness_core.kernel.commands import AskApproval, Command, Record, Unanswered
from harness_core.kernel.facts import Fact
from harness_core.kernel.projections.session import session_document, state_hash
from harness_core.kernel.react import react
from harness_hookspecs.events import check_payload
from harness_hookspecs.tool import TIERS
from tests.playing import REF, SESSION, Play, definition

MODES = ("auto", "prompt", "deny")
YOLO = ("off", "on", "destructive")
GRANT = {"name": "shell_run", "tier": "T3", "approval_id": "appr"}


def policy(*rules: PolicyRule, mode: Any = "prompt", required: str = "") -> ToolPolicy:
    tiers: Mapping[str, PolicyRule] = {tier: PolicyRule(mode, f"tiers.{tier}") for tier in TIERS}
    return ToolPolicy(rules, tiers, frozenset({required} if required else ()))


def expected(tier: str, mode: str, yolo: str) -> str:
    if mode == "deny":
        return "bypassed" if (tier, yolo) == ("T4", "destructive") else "denied"
    if mode == "auto":
        return "run" if tier in ("T0", "T1") else "granted"
    return "bypassed" if yolo == "destructive" or (yolo == "on" and tier != "T4") else "ask"


@pytest.mark.req("B-76")
@pytest.mark.parametrize(("tier", "mode", "yolo"), list(product(TIERS, MODES, YOLO)))
def test_each_tier_and_mode_under_each_degree_of_yolo(tier: Any, mode: str, yolo: str) -> None:
    verdict = judge(policy(mode=mode), Call("shell_run", tier, "work"), grants=(), yolo=yolo)
    assert verdict.kind == expected(tier, mode, yolo)
    assert verdict.rule == f"tiers.{tier}"
    assert verdict.by == ("yolo" if verdict.kind == "bypassed" else "policy")


@pytest.mark.req("B-83")
@given(
    tier=st.sampled_from(TIERS),
    mode=st.sampled_from(MODES),
    yolo=st.sampled_from(YOLO),
    granted=st.booleans(),
    required=st.booleans(),
)
def test_nothing_above_reading_ever_runs_without_an_approval_in_the_log(
    tier: Any, mode: str, yolo: str, granted: bool, required: bool
) -> None:
    grants = [{**GRANT, "tier": tier}] if granted else []
    rules = policy(mode=mode, required=tier if required else "")
    verdict = judge(rules, Call("shell_run", tier, "work"), grants=grants, yolo=yolo)
    if verdict.kind == "run":
        assert tier in ("T0", "T1")
    if verdict.kind == "granted" and verdict.by == "policy":
        assert mode == "auto"
        assert not required
    if verdict.kind == "granted" and verdict.by == "grant":
        assert granted


@pytest.mark.req("B-79")
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (Call("shell_run", "T3", "work"), "granted"),
        (Call("shell_run", "T3", "another"), "granted"),
        (Call("shell_run", "T4", "work"), "ask"),
        (Call("shell_runs", "T3", "work"), "ask"),
        (Call("SHELL_RUN", "T3", "work"), "ask"),
    ],
)
def test_a_grant_covers_its_tool_at_its_tier_and_nothing_else(call: Call, kind: str) -> None:
    assert call.tier in TIERS
    verdict = judge(policy(), call, grants=[GRANT], yolo="off")
    assert (verdict.kind, verdict.by) == (kind, "grant" if kind == "granted" else "policy")


def test_a_grant_lifts_no_denial() -> None:
    assert judge(policy(mode="deny"), Call("shell_run", "T3", "work"), grants=[GRANT], yolo="on").kind == "denied"


RULES = (
    PolicyRule("deny", "rules.0", tool="git_push*"),
    PolicyRule("auto", "rules.1", tool="git", tier="T2"),
    PolicyRule("deny", "rules.2", stage="review", tier="T3"),
    PolicyRule("prompt", "rules.3", tool="*_read", stage="w?rk"),
)

DECIDED: dict[Call, tuple[str, str]] = {
    Call("git_push_all", "T2", "work", "git"): ("denied", "rules.0"),
    Call("git_commit", "T2", "work", "git"): ("granted", "rules.1"),
    Call("git_fetch", "T3", "work", "git"): ("ask", "tiers.T3"),
    Call("git_fetch", "T3", "review", "git"): ("denied", "rules.2"),
    Call("files_read", "T1", "work", "files"): ("ask", "rules.3"),
    Call("files_read", "T1", "walk", "files"): ("run", "tiers.T1"),
    Call("gitty", "T2", "work", "gitty"): ("ask", "tiers.T2"),
}


@pytest.mark.parametrize(("call", "verdict"), DECIDED.items(), ids=lambda value: "-".join(map(str, value)))
def test_the_first_rule_that_names_the_tool_or_its_set_decides(call: Call, verdict: tuple[str, str]) -> None:
    tiers: dict[str, PolicyRule] = {
        tier: PolicyRule("auto" if tier == "T1" else "prompt", f"tiers.{tier}") for tier in TIERS
    }
    found = judge(ToolPolicy(RULES, tiers), call, grants=(), yolo="off")
    assert (found.kind, found.rule) == verdict


@pytest.mark.parametrize(("mode", "kind"), [("auto", "ask"), ("prompt", "ask"), ("deny", "denied")])
def test_what_a_stage_requires_is_asked_for_and_never_relaxes(mode: str, kind: str) -> None:
    verdict = judge(policy(mode=mode, required="T2"), Call("edit", "T2", "work"), grants=(), yolo="off")
    assert verdict.kind == kind
    assert ("work.approvals" in verdict.rule) == (kind == "ask")


def test_a_tier_that_no_policy_names_is_denied() -> None:
    assert judge(ToolPolicy((), {}), Call("edit", "T2", "work"), grants=(), yolo="destructive").kind == "denied"


def test_a_written_denial_holds_under_every_degree_of_yolo() -> None:
    rules = policy(PolicyRule("deny", "rules.0", tool="rm"), mode="deny")
    assert judge(rules, Call("rm", TIERS[4], "work"), grants=(), yolo="destructive").kind == "denied"


# ---------------------------------------------------------------------------------- what was decided costs nothing


class Unwalked(dict[str, Any]):
    """What may be looked up by name, and by nobody walked over."""

    def _walked(self) -> Any:
        raise AssertionError("somebody walks over every approval there ever was")

    __iter__ = keys = values = items = _walked


class Bare(Play):
    """A session whose every command is met as a turn of the loop meets it, and by no more."""

    def send(self, command: Command) -> list[str]:
        before = len(self.facts)
        decision = self.machine.decide(command, self.state)
        self._fold(decision)
        self.reply = decision.reply
        self.advance()
        react(self.state)
        session_document(self.state)
        return [fact.type for fact in self.facts[before:]]

    def advance(self) -> None:
        while (decision := self.machine.advance(self.state, frozenset())).facts:
            self._fold(decision)


def used(play: Play, call_id: str) -> str:
    """A call that is asked about, approved and started; gives its approval."""
    request = play.open_one("role").payload
    where = {name: request[name] for name in ("visit_id", "persona", "role_call_id")}
    asked = {"subject": "tool", "name": "curl", "tier": TIERS[3], "args": ARGS, "rule": "r", "call_id": call_id}
    play.send(AskApproval({**asked, **where}, "ask"))
    approval_id: str = play.reply
    play.send(Unanswered(approval_id, deny=False))
    answer = {"approval_id": approval_id, "decision": "approve", "digest": play.last("approval.requested")["digest"]}
    play.receive("answer", **answer, by="ann", kind="person")
    cause = play.state.approvals[approval_id].grant_event_id
    refs = {"role_call_id": where["role_call_id"], "causation_id": cause}
    started = {"callId": call_id, "caller": "model", "toolName": "curl", "args": ARGS, "turn": 1}
    started |= {"effectClass": "unkeyed", "argsDigest": REF, "tier": TIERS[3]}
    play.send(Record(where["role_call_id"], intent=(Fact("harness.tool_call.started", started, refs),)))
    return approval_id


@pytest.mark.inv("I-23")
def test_no_event_costs_more_for_what_was_decided_before_and_who_was_first_is_known_all_the_same() -> None:
    play = Bare(definition()).to_role()
    first = used(play, "call_0")
    play.state.approvals = Unwalked(play.state.approvals)
    for number in range(1, 4):
        used(play, f"call_{number}")
    ids = [fact.payload["approval_id"] for fact in play.facts if fact.type == "approval.requested"]
    approvals = [play.state.approvals[approval_id] for approval_id in ids]
    assert [(one.status, one.consumed, (one.ended or {})["by"]) for one in approvals] == [("granted", True, "ann")] * 4
    assert (play.state.pending, play.state.unused) == ({}, {})
    assert play.state.decided == {approvals[0].decision(): 4}
    late = {"approval_id": first, "digest": approvals[0].payload["digest"], "by": "ben", "kind": "person"}
    assert play.receive("answer", **late, decision="deny") == ["command.received"]
    assert (play.reply, approvals[0].status) == ("already", "granted")
    play.role()
    assert play.state.questions == {}


@pytest.mark.inv("I-23")
def test_a_call_that_needs_no_approval_uses_up_nobody_s() -> None:
    """It may follow right after the grant of another call, and bear its id as a cause."""
    play = Play(definition()).to_role()
    used(play, "call_0")
    started = play.facts.pop()
    free = started._replace(payload={**started.payload, "callId": "call_1", "tier": TIERS[1]})
    play.facts.append(free)
    state = play.folded_again()
    assert [one.consumed for one in state.approvals.values()] == [False]
    assert len(state.unused) == 1
    play.facts.append(started)
    assert [one.consumed for one in play.folded_again().approvals.values()] == [True]


@pytest.mark.parametrize("used_up", [True, False])
def test_the_hash_tells_a_grant_that_was_used_from_one_that_was_not(used_up: bool) -> None:
    play = Play(definition()).to_role()
    used(play, "call_0")
    before = state_hash(play.folded_again())
    if used_up:
        play.facts.pop()
    else:
        used(play, "call_1")
    assert state_hash(play.folded_again()) != before


# ------------------------------------------------------------------------------- what an approval is bound to

ARGS = {"url": "x", "method": "GET"}
OTHERS: dict[str, dict[str, Any]] = {
    "tool": {"tool": "wget"},
    "arguments": {"args": {**ARGS, "url": "y"}},
    "run": {"session_id": "another"},
    "step": {"place": "role_1/call_1"},
    "generation": {"generation": 2},
}


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_an_approval_is_bound_to_all_of_the_call(other: dict[str, Any]) -> None:
    play = Play(definition()).to_role()
    request = play.open_one("role").payload
    asked = {"subject": "tool", "name": "curl", "tier": TIERS[3], "args": ARGS, "rule": "r", "call_id": "call_1"}
    where = {name: request[name] for name in ("visit_id", "persona", "role_call_id")}
    play.send(AskApproval({**asked, **where}, "ask"))
    check_payload("approval.requested", play.last("approval.requested"))
    this: dict[str, Any] = {"tool": "curl", "args": dict(reversed(ARGS.items())), "generation": 1}
    this |= {"session_id": SESSION, "place": f"{where['role_call_id']}/call_1"}
    answer = {"approval_id": play.reply, "decision": "approve", "by": "b", "kind": "person"}
    assert play.receive("answer", **answer, digest=approval_digest(**{**this, **other})) == ["command.received"]
    assert play.reply == "digest"
    assert "approval.granted" in play.receive("answer", **answer, digest=approval_digest(**this))
