"""Child sessions that calls ask for in, which may begin, with how much, and what follows from their ends out."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from harness_core.kernel.children import child_effect_id, child_session_id, end_of_child, seconds_left
from harness_core.kernel.commands import ChildEnded, ChildShort, Record, RoleFailed, RoleReturned, RoleSuspended
from harness_core.kernel.effects import RunChild, RunRole
from harness_core.kernel.facts import Fact
from harness_core.kernel.limits import exhausted_by
from harness_core.kernel.projections.session import session_document
from harness_core.kernel.react import react
from harness_core.kernel.snapshot import snapshot_of, state_of
from harness_core.kernel.state import OpenRequest
from harness_hookspecs.kit.canonical import canonical, digest
from tests.playing import REF, SESSION, Play, definition

OUT = digest("out")


def begun(**limits: Any) -> Play:
    """A session whose one role call is open."""
    return Play(definition(**limits)).to_role()


def role_of(play: Play) -> str:
    return str(play.open_one("role").payload["role_call_id"])


def ask(play: Play, *names: str) -> list[str]:
    """The role asks for these children, each in a call of its own; what followed from the last."""
    role, types, visit = role_of(play), list[str](), play.state.visit
    assert visit is not None
    for name in names:
        payload = {
            "effect_id": child_effect_id(role, name), "effect_class": "keyed", "digest": REF,
            "child_id": child_session_id(SESSION, role, name), "visit_id": visit.visit_id, "attempt": visit.attempt,
            "role_call_id": role, "call_id": name, "goal": "start", "workflow_id": "tickets", "depth": 1,
            "spec_ref": REF,
        }  # fmt: skip
        refs = {"stage_visit_id": visit.visit_id, "role_call_id": role}
        types = play.send(Record(role, intent=(Fact("child.requested", payload, refs),)))
    return types


def suspend(play: Play, name: str) -> None:
    play.send(RoleSuspended(role_of(play), "child", child_effect_id(role_of(play), name)))


def child(play: Play, name: str) -> OpenRequest:
    return play.state.children[child_effect_id(role_of(play), name)]


def ended(
    play: Play, name: str, *, ok: bool = True, tokens: int = 0, calls: int = 0, elapsed_ms: int = 0
) -> list[str]:
    one = child(play, name)
    payload: dict[str, Any] = {"effect_id": one.effect_id, "child_id": one.payload["child_id"]}
    payload |= {"elapsed_ms": elapsed_ms} if elapsed_ms else {}
    usage = {"inputTokens": tokens, "outputTokens": 0, "cachedInputTokens": 0, "reasoningTokens": 0}
    payload |= {"usage": usage, "spent": {"tokens": tokens, "calls": calls}}
    if ok:
        payload |= {"output_ref": OUT, "summary": "out"}
        return play.send(ChildEnded(one.effect_id, True, payload, {OUT: canonical("out")}))
    error = {"name": "RoleError", "code": "workflow.not_planned", "message": "no"}
    return play.send(ChildEnded(one.effect_id, False, {**payload, "status": "failed", "error": error}))


def active(play: Play) -> list[str]:
    effects = {one.effect_id for one in react(play.state) if isinstance(one, RunChild)}
    return [one.payload["call_id"] for one in play.state.children.values() if one.effect_id in effects]


def role_runs(play: Play) -> bool:
    return any(isinstance(one, RunRole) for one in react(play.state))


def test_the_id_of_a_child_is_a_session_id_and_the_same_whoever_asks_again() -> None:
    ids = [child_session_id(SESSION, "role", f"call {n}") for n in range(50)]
    assert len(set(ids)) == 50
    assert ids == [child_session_id(SESSION, "role", f"call {n}") for n in range(50)]
    for one in map(UUID, ids):
        assert (one.version, one.variant) == (7, "specified in RFC 4122")
        assert str(one)[:13] == SESSION[:13]


@pytest.mark.req("A-92")
def test_no_more_than_so_many_are_active_and_the_others_follow_in_their_order() -> None:
    play = begun(max_children=3)
    names = [f"c{n}" for n in range(8)]
    ask(play, *names)
    order = []
    while play.state.children:
        now = active(play)
        assert len(now) == min(3, len(play.state.children))
        order.append(now[0])
        ended(play, now[0], ok=len(order) % 2 == 0)
    assert order == names


def test_a_role_call_goes_on_when_all_its_children_have_ended() -> None:
    play = begun()
    ask(play, "a", "b")
    assert not role_runs(play)  # one that was cut off here, too, could do nothing but wait
    suspend(play, "a")
    ended(play, "a")
    assert not role_runs(play)
    assert "child.failed" in ended(play, "b", ok=False)
    assert role_runs(play)
    role = role_of(play)
    assert (end_of_child(play.state, role, "a") or {})["output_ref"] == OUT
    assert (end_of_child(play.state, role, "b") or {})["error"]["code"] == "workflow.not_planned"
    play.send(RoleReturned(role, OUT, (), {OUT: canonical("out")}))
    assert play.state.child_ends == {}


def test_a_session_says_which_children_it_waits_for() -> None:
    play = begun()
    ask(play, "a", "b")
    waiting = session_document(play.state)["waiting"]
    assert waiting == [{"kind": "child", "id": child(play, name).payload["child_id"], "until": None} for name in "ab"]


def test_a_late_end_of_a_child_is_recorded_and_changes_nothing() -> None:
    play = begun()
    ask(play, "a")
    one = child(play, "a")
    ended(play, "a")
    payload = {"effect_id": one.effect_id}
    assert play.send(ChildEnded(one.effect_id, True, payload)) == ["effect.ignored"]


@pytest.mark.inv("I-21")
def test_children_of_a_role_call_that_has_ended_are_given_up_with_all_they_were_granted() -> None:
    play = begun(budget_tokens=900, max_children=1)
    ask(play, "a")
    granted = child(play, "a").grant["tokens"]
    types = play.send(RoleFailed(role_of(play), {"name": "E", "message": "no", "code": "config.migrated"}))
    assert types[:2] == ["child.failed", "role.failed"]
    assert play.last("child.failed")["error"]["code"] == "child.abandoned"
    assert play.state.children == {}
    assert play.state.child_spent["tokens"] == granted == 450


def test_what_a_child_did_not_use_is_given_back() -> None:
    play = begun(budget_tokens=1_000, budget_calls=100, max_children=1)
    ask(play, "a")
    assert child(play, "a").grant == {"tokens": 500, "calls": 50, "seconds": 3_600.0}
    assert exhausted_by(play.state, play.machine.definition.limits, wanted_tokens=501, elapsed_seconds=0) is not None
    ended(play, "a", tokens=100, calls=3)
    assert exhausted_by(play.state, play.machine.definition.limits, wanted_tokens=900, elapsed_seconds=0) is None
    assert exhausted_by(play.state, play.machine.definition.limits, wanted_tokens=901, elapsed_seconds=0) is not None
    assert play.state.usage.calls == 0  # its own use is its own


def short(play: Play, name: str, wanted: int) -> list[str]:
    one = child(play, name)
    limit = one.grant["tokens"]
    said = {"dimension": "tokens", "limit": limit, "used": limit, "wanted": wanted}
    return play.send(ChildShort(one.effect_id, said))


def test_a_child_that_has_used_up_its_share_is_granted_what_it_lacks() -> None:
    play = begun(budget_tokens=1_000, max_children=1)
    ask(play, "a")
    assert short(play, "a", 100) == ["child.exhausted", "child.granted"]
    assert child(play, "a").grant["tokens"] == 500 + 100 + 200
    assert active(play) == ["a"]
    assert "budget.exhausted" in short(play, "a", 400)
    assert active(play) == []
    assert {"kind": "budget", "id": "tokens", "until": None} in session_document(play.state)["waiting"]
    assert "child.granted" in play.receive("raise_budget", limits={"tokens": 2_000})
    assert active(play) == ["a"]


def test_a_child_that_lacks_something_waits_for_what_others_give_back() -> None:
    play = begun(budget_tokens=900, max_children=2)
    ask(play, "a", "b")
    assert [child(play, name).grant["tokens"] for name in "ab"] == [300, 300]
    assert short(play, "b", 400) == ["child.exhausted"]
    assert active(play) == ["a"]
    assert ended(play, "a", tokens=10) == ["child.completed", "child.granted"]
    assert active(play) == ["b"]


def test_with_nothing_left_no_child_begins_and_the_budget_is_used_up() -> None:
    play = begun(budget_calls=0)
    assert ask(play, "a") == ["child.requested", "budget.exhausted"]
    assert active(play) == []
    assert "child.granted" in play.receive("raise_budget", limits={"calls": 5})


@pytest.mark.req("B-05")
@pytest.mark.parametrize("seed", range(60))
def test_children_together_never_exceed_the_budget_and_a_log_alone_gives_the_same_state(seed: int) -> None:
    print(f"seed {seed}")
    chance = Random(seed)
    total, cap = chance.randint(1, 5_000), chance.randint(1, 6)
    play = begun(budget_tokens=total, budget_calls=chance.randint(1, 80), max_children=cap)
    names = [f"c{n}" for n in range(chance.randint(1, 12))]
    waiting = list(names)
    for _ in range(80):
        now = active(play)
        assert len(now) <= cap
        granted = sum(one.grant.get("tokens", 0) for one in play.state.children.values())
        assert granted + play.state.child_spent.get("tokens", 0) <= total
        what = chance.choice(["ask", "end", "end", "short"])
        if what == "ask" and waiting:
            ask(play, waiting.pop(0))
        elif what == "end" and now:
            name = chance.choice(now)
            grant = child(play, name).grant
            spent = {"tokens": chance.randint(0, int(grant["tokens"])), "calls": chance.randint(0, int(grant["calls"]))}
            ended(play, name, ok=chance.random() < 0.7, **spent)
        elif what == "short" and now:
            short(play, chance.choice(now), chance.randint(1, 200))
        again = play.folded_again()
        assert snapshot_of(again) == snapshot_of(play.state) == snapshot_of(state_of(snapshot_of(play.state)))


def test_a_child_is_granted_no_time_that_has_passed_while_others_ran() -> None:
    play = begun(budget_seconds=100, max_children=1)
    ask(play, "a", "b")
    assert child(play, "a").grant["seconds"] == 100
    ended(play, "a", elapsed_ms=70_000)
    assert child(play, "b").grant["seconds"] == 30
    assert seconds_left(play.state, play.machine.definition.limits) == 30


def test_a_child_whose_time_is_used_up_goes_on_when_there_is_more_and_gets_no_second_twice() -> None:
    play = begun(budget_seconds=100, max_children=2)
    ask(play, "a", "b")
    one = child(play, "a")
    said = {"dimension": "seconds", "limit": 100, "used": 101, "wanted": 0, "elapsed_ms": 101_000}
    assert play.send(ChildShort(one.effect_id, said)) == ["child.exhausted"]
    assert "budget.exhausted" in ended(play, "b", elapsed_ms=1_000)
    assert active(play) == []
    assert "child.granted" in play.receive("raise_budget", limits={"seconds": 150})
    assert child(play, "a").grant["seconds"] == 101 + 48


@pytest.mark.inv("I-21")
def test_a_child_that_was_granted_nothing_is_given_up_for_nothing() -> None:
    play = begun(budget_tokens=900, max_children=1)
    ask(play, "a", "b")
    granted = child(play, "a").grant
    play.send(RoleFailed(role_of(play), {"name": "E", "message": "no", "code": "config.migrated"}))
    assert play.state.child_spent == {"tokens": granted["tokens"], "calls": granted["calls"]}


def test_a_pause_lets_nothing_begin() -> None:
    play = begun(max_children=1)
    ask(play, "a", "b")
    play.running.add("a")
    play.receive("pause", reason="operator")
    assert active(play) == []
    assert "child.granted" not in ended(play, "a")
    play.running.clear()
    play.advance()
    assert play.state.status == "paused"
