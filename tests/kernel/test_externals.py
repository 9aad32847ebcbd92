"""Waits for what comes from outside in, who gets what was delivered and when, and what becomes of the rest, out."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from harness_core.kernel.checking.requests import Requests
from harness_core.kernel.commands import PauseNow, Received, Resume, RoleFailed, RoleReturned, TimersElapsed
from harness_core.kernel.projections.session import left_amid_work, session_document, state_hash
from harness_core.kernel.react import react
from harness_core.kernel.snapshot import snapshot_of, state_of
from harness_hookspecs.executor import ExternalEvent, Fail, Finish, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical
from tests.playing import Play, definition, event_of, retry, snapshot, stage

OUT = digest("out")


class Waits:
    """Branches of waits and calls, written ``paid``, ``paid:5`` (a limit in ms), ``call``; the output is what each had.

    Of ``stops`` the second is given up when a call of the first fails.
    """

    stops = ("", "")

    def __init__(self, **branches: str) -> None:
        self._branches = {name: steps.split() for name, steps in branches.items()}

    def start(self, stage_input: StageInput) -> Any:
        return {name: [] for name in self._branches}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        name = outcome.request_id.partition(".")[0]
        return {**state, name: [*state[name], outcome.value if outcome.ok else outcome.error["code"]]}

    def next(self, state: Any) -> tuple[Request, ...]:
        failing, stopped = self.stops
        over = {stopped} if failing and "provider.down" in state[failing] else set()
        if "fatal" in [one for had in state.values() for one in had]:
            return (Fail(code="plan.failed", message="enough"),)
        left = {name: self._branches[name][len(had) :] for name, had in state.items() if name not in over}
        open_ones = [_request(f"{name}.{len(state[name])}", steps[0]) for name, steps in left.items() if steps]
        return tuple(open_ones) or (Finish(output=state),)


class GivenUp(Waits):
    stops = ("b", "a")


def _request(request_id: str, step: str) -> Request:
    if step == "call":
        return RoleCall(request_id=request_id, role="worker.ai-generate", task={})
    name, _, limit = step.partition(":")
    return ExternalEvent(request_id=request_id, name=name, limit_ms=int(limit) if limit else None)


def begun(executor: Any, **stage_options: Any) -> Play:
    plan = stage("work", ('artifact.status == "success"', "completed"), **stage_options)
    return Play(definition(plan, executors={"agent": executor})).to_role()


def delivers(play: Play, name: str, payload: Any, command_id: str = "") -> list[str]:
    return play.receive("event", command_id, name=name, payload=payload, by="somebody")


def fails(play: Play, request_id: str, code: str = "provider.down") -> list[str]:
    assert play.state.visit is not None
    error = {"name": "Error", "message": "no", "code": code}
    return play.send(RoleFailed(play.state.visit.requested[request_id], error))


def output(play: Play) -> Any:
    return read_canonical(play.blobs[play.last("artifact.proposed")["output_ref"]])


def effect_of(play: Play, request_id: str) -> str:
    assert play.state.visit is not None
    return play.state.visit.requested[request_id]


def test_what_is_delivered_is_what_its_wait_comes_to() -> None:
    play = begun(Waits(a="paid"))
    assert (play.last("external.requested")["name"], react(play.state)) == ("paid", [])
    assert not left_amid_work(play.state)
    assert delivers(play, "paid", {"amount": 1})[:3] == ["command.received", "external.delivered", "artifact.proposed"]
    assert output(play) == {"a": [{"amount": 1}]}
    assert play.state.kept == {}


def test_a_log_says_once_what_was_delivered() -> None:
    play = begun(Waits(a="paid"))
    delivers(play, "paid", "a payload of its own", "event:1")
    said = [fact.type for fact in play.facts if "a payload of its own" in str(fact.payload)]
    assert said == []  # it is content, by its digest
    assert play.last("external.delivered")["delivery_id"] == "event:1"
    assert play.last("command.received")["body"]["value_ref"] == digest("a payload of its own")


def test_what_comes_before_its_wait_is_kept_and_taken_once() -> None:
    play = begun(Waits(a="call paid paid"))
    assert delivers(play, "paid", "early") == ["command.received"]
    assert play.send(RoleReturned(effect_of(play, "a.0"), OUT, (), {OUT: canonical("out")})) == [
        "role.returned", "external.requested", "external.delivered", "external.requested",
    ]  # fmt: skip
    delivers(play, "paid", "late")
    assert output(play) == {"a": ["out", "early", "late"]}


def test_of_several_waits_for_one_name_the_first_gets_what_came_first() -> None:
    play = begun(Waits(a="paid", b="paid", c="shipped paid"))
    for payload in ("one", "two", "three"):
        delivers(play, "paid", payload)
    delivers(play, "shipped", None)
    assert output(play) == {"a": ["one"], "b": ["two"], "c": [None, "three"]}


def test_a_delivery_counts_once_under_its_id() -> None:
    play = begun(Waits(a="paid", b="paid"))
    delivers(play, "paid", 1, "event:7")
    assert delivers(play, "paid", 1, "event:7") == [] and play.reply == "already"
    assert len(play.state.externals) == 1


@pytest.mark.parametrize("body", [
    {}, {"name": "", "by": "x"}, {"name": "paid"}, {"name": 7, "by": "x"}, {"name": "", "by": "x", "value_ref": OUT},
])  # fmt: skip
def test_a_command_that_is_no_delivery_is_written_and_delivers_nothing(body: Any) -> None:
    play = begun(Waits(a="paid"))
    assert play.receive("event", **body) == ["command.received"]
    assert play.reply == "malformed" and play.state.kept == {}


def test_a_wait_ends_at_its_limit_and_what_comes_then_is_kept() -> None:
    play = begun(Waits(a="paid:5 paid"))
    first = effect_of(play, "a.0")
    assert session_document(play.state)["waiting"][0]["until"] is not None
    assert play.send(TimersElapsed((first, first))) == ["external.timed_out", "external.requested"]
    assert play.send(TimersElapsed((first,))) == []
    assert delivers(play, "paid", 1)[1] == "external.delivered"
    assert output(play) == {"a": ["wait.timed_out", 1]}


def test_a_wait_without_a_limit_never_ends_by_the_clock_of_another() -> None:
    play = begun(Waits(a="paid", b="paid:5"))
    play.send(TimersElapsed((effect_of(play, "b.0"),)))
    assert [one.payload["request_id"] for one in play.state.externals.values()] == ["a.0"]


def test_what_was_delivered_before_the_limit_is_had_although_both_are_met_at_once() -> None:
    play = begun(Waits(a="paid:5"))
    effect_id = effect_of(play, "a.0")
    play.take(Received("event:1", "event", {"name": "paid", "payload": "in time", "by": "x"}))
    play.take(TimersElapsed((effect_id,)))
    play.advance()
    assert output(play) == {"a": ["in time"]}


@pytest.mark.inv("I-21")
def test_no_end_waits_for_what_comes_from_outside() -> None:
    play = begun(Waits(a="paid", b="call", c="call"))
    assert fails(play, "b.0", "fatal") == ["role.failed"]
    types = play.send(RoleReturned(effect_of(play, "c.0"), OUT, (), {OUT: canonical("out")}))
    assert types[:3] == ["role.returned", "external.cancelled", "session.failed"]
    assert not play.state.externals


def test_a_wait_that_its_executor_has_given_up_takes_nothing_from_another() -> None:
    play = begun(GivenUp(a="paid", b="call paid"))
    fails(play, "b.0")
    assert len(play.state.externals) == 2
    assert delivers(play, "paid", "mine")[1:3] == ["external.cancelled", "external.delivered"]
    assert output(play) == {"a": [], "b": ["provider.down", "mine"]}


def test_an_attempt_that_is_tried_again_waits_anew_and_has_what_nobody_took() -> None:
    play = begun(Waits(a="paid", b="call"), retry=retry("retry", 2))
    delivers(play, "shipped", 1)
    assert fails(play, "b.0", "fatal")[1:3] == ["external.cancelled", "retry.scheduled"]
    delivers(play, "paid", 1)
    assert [*play.state.kept] == ["shipped", "paid"]
    play.context()
    assert play.types()[-3:].count("external.delivered") == 1
    assert [*play.state.kept] == ["shipped"]


@pytest.mark.inv("I-20")
def test_a_session_that_stops_takes_nothing_until_it_goes_on() -> None:
    play = begun(Waits(a="paid"))
    play.send(PauseNow("interrupted"))
    assert delivers(play, "paid", 1) == ["command.received"]
    before = state_hash(play.state)
    assert play.send(Resume("resume"))[:2] == ["session.resumed", "external.delivered"]
    assert state_hash(play.state) != before
    play = begun(Waits(a="paid"))
    assert play.receive("cancel", reason="operator")[-1] == "session.cancelled"
    assert delivers(play, "paid", 1) == ["command.received"] and play.reply == "final"
    assert play.state.kept == {}


def test_a_snapshot_has_the_very_waits_that_are_open_and_what_is_kept() -> None:
    play = begun(Waits(a="paid", b="call", c="paid:7"))
    delivers(play, "shipped", {"a": [1]})
    again = state_of(snapshot_of(play.state))
    assert [*again.externals] == [*play.state.externals] and again.kept == play.state.kept
    assert all(again.open[name] is request for name, request in again.externals.items())


@pytest.mark.inv("I-15")
@pytest.mark.parametrize("wrong", ["", "never", "other", "twice"])
def test_a_log_that_hands_over_what_nobody_delivered_does_not_verify(wrong: str) -> None:
    play = begun(Waits(a="paid", b="paid"))
    delivers(play, "paid", 1, "event:1")
    delivers(play, "paid", 2, "event:2")
    events = [event_of(fact, number) for number, fact in enumerate(play.facts, start=1)]
    if wrong == "never":
        events = [one for one in events if one.payload.get("command_id") != "event:2"]
    changes = {"other": {"value_ref": OUT}, "twice": {"delivery_id": "event:1"}}.get(wrong, {})
    found = [
        one._replace(payload={**one.payload, **changes}) if one.payload.get("delivery_id") == "event:2" else one
        for one in events
    ]
    rules = Requests()
    assert [broken.invariant for event in found for broken in rules.see(event)] == (["I-15"] if wrong else [])


# -- against a reference ---

SEEDS = 2_000 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 150
NAMES = ("paid", "shipped", "seen")


class Reference:
    """Two queues a name: what waits and what is kept; whoever is first has what is first."""

    def __init__(self) -> None:
        self.waits: dict[str, list[str]] = defaultdict(list)
        self.kept: dict[str, list[Any]] = defaultdict(list)
        self.had: dict[str, Any] = {}

    def asked(self, name: str, request_id: str) -> None:
        self.waits[name].append(request_id)
        self._meet(name)

    def came(self, name: str, payload: Any) -> None:
        self.kept[name].append(payload)
        self._meet(name)

    def ended(self, name: str, request_id: str) -> None:
        self.waits[name].remove(request_id)

    def _meet(self, name: str) -> None:
        while self.waits[name] and self.kept[name]:
            self.had[self.waits[name].pop(0)] = self.kept[name].pop(0)


def plan(chance: Random) -> dict[str, str]:
    steps = [*NAMES, "paid:5", "shipped:7", "call"]
    return {f"b{n}": " ".join(chance.choices(steps, k=chance.randint(1, 4))) for n in range(chance.randint(1, 4))}


@pytest.mark.inv("I-15", "I-16", "I-17")
def test_deliveries_limits_pauses_and_calls_in_any_order_come_to_what_two_queues_say() -> None:
    for seed in range(SEEDS):
        chance = Random(seed)
        branches = plan(chance)
        play, reference = begun(Waits(**branches)), Reference()
        try:
            _by_chance(play, reference, chance)
            assert snapshot(play.state) == snapshot(play.folded_again())
        except BaseException:
            print(f"seed {seed}: {branches}")
            raise


def _by_chance(play: Play, reference: Reference, chance: Random) -> None:
    seen = _told(play, reference, 0, {})
    names: dict[str, str] = {}
    for number in range(60):
        if "artifact.proposed" in play.types() or play.state.final:
            break
        _MOVES[chance.choice((*_MOVES, "deliver"))](play, chance, names, number)
        seen = _told(play, reference, seen, names)
    had = {one: read_canonical(play.blobs[ref]) for one, ref in _delivered(play).items()}
    assert had == reference.had
    found: dict[str, list[str]] = defaultdict(list)
    for one in play.state.externals.values():
        found[one.payload["name"]].append(one.payload["request_id"])
    assert found == {name: ids for name, ids in reference.waits.items() if ids}
    left = {name: len(kept) for name, kept in reference.kept.items() if kept}
    assert {name: len(kept) for name, kept in play.state.kept.items()} == left


def _deliver(play: Play, chance: Random, names: dict[str, str], number: int) -> None:
    names[f"event:{number}"] = chance.choice(NAMES)
    delivers(play, names[f"event:{number}"], number, f"event:{number}")


def _again(play: Play, chance: Random, names: dict[str, str], number: int) -> None:
    if names:
        again = chance.choice([*names])
        assert delivers(play, names[again], "never had", again) == []


def _limit(play: Play, chance: Random, names: dict[str, str], number: int) -> None:
    limits = [one.effect_id for one in play.state.externals.values() if "limit_ms" in one.payload]
    play.send(TimersElapsed(tuple(chance.sample(limits, k=min(len(limits), 1)))))


def _call(play: Play, chance: Random, names: dict[str, str], number: int) -> None:
    for call in chance.sample([*play.state.role_calls], k=min(len(play.state.role_calls), 1)):
        play.send(RoleReturned(call, OUT, (), {OUT: canonical("out")}))


def _pause(play: Play, chance: Random, names: dict[str, str], number: int) -> None:
    play.send(PauseNow("interrupted"))
    _deliver(play, chance, names, number)
    play.send(Resume("resume"))


_MOVES = {"deliver": _deliver, "again": _again, "limit": _limit, "call": _call, "pause": _pause}


def _told(play: Play, reference: Reference, seen: int, names: dict[str, str]) -> int:
    """Tell the reference what the log says was asked, what came and what ended by the clock, in its order."""
    asked = _asked(play)
    for fact in play.facts[seen:]:
        if fact.type == "external.requested":
            reference.asked(fact.payload["name"], fact.payload["request_id"])
        elif fact.type == "external.timed_out":
            request = asked[fact.payload["effect_id"]]
            reference.ended(request["name"], request["request_id"])
        elif fact.type == "command.received":
            number = int(fact.payload["command_id"].partition(":")[2])
            reference.came(names[fact.payload["command_id"]], number)
    return len(play.facts)


def _asked(play: Play) -> dict[str, Any]:
    return {fact.payload["effect_id"]: fact.payload for fact in play.facts if fact.type == "external.requested"}


def _delivered(play: Play) -> dict[str, str]:
    asked, facts = _asked(play), play.facts
    ends: Sequence[Any] = [fact.payload for fact in facts if fact.type == "external.delivered"]
    assert len({one["delivery_id"] for one in ends}) == len(ends)
    return {asked[one["effect_id"]]["request_id"]: one["value_ref"] for one in ends}
