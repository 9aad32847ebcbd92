"""A plan that waits for an event from outside: parked without a process, delivered to from anywhere, gone on with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_core import Host
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.executor import MAX_EVENT_BYTES
from tests.acceptance.test_workflows import MODELS, NAMES, generate, plan_of, planned
from tests.orchestra import PLAN, chief, lead, planner, start
from tests.reference import says


def wait(name: str = "w", event: str = "paid", *needs: str, **more: Any) -> dict[str, Any]:
    """A step that waits; ``limit_ms`` is how long, the rest fields of the step."""
    limit = {"limitMs": more.pop("limit_ms")} if "limit_ms" in more else {}
    step = {"id": name, "uses": "wait", "with": {"event": event, **limit}, **more}
    return {**step, "needs": list(needs)} if needs else step


def heard(session: Any) -> Any:
    """What the run made of it."""
    [artifact] = session.host.artifacts("@last")
    return session.host.artifact(artifact["ref"])


AMOUNT = {"mode": "object", "schema": {"type": "object", "required": ["amount"], "properties": {"amount": {}}}}
PAID = plan_of([wait(output=AMOUNT)], {"text": "paid {{ steps.w.output.amount }}"})
MODES = {"full": {}, "partial": {"until": 9}, "cursor": {"first": 7}, "skip-inference": {}, "simulate": {}}


def replayed(session: Any) -> None:
    """Every kind of replay comes to the same, and the log holds what a log must."""
    found = session.host.find("@last")
    assert session.host.verify(found)["broken"] == []
    for mode, options in MODES.items():
        report = session.host.replay(found, mode, **options)
        assert report["diverged"] is None and report["equal"] is not False, mode


def test_a_session_that_waits_for_nothing_else_is_parked_and_goes_on_with_what_was_delivered(play: Any) -> None:
    session = play(stages=planned(PAID), models=MODELS)
    parked = session.run()
    [waiting] = parked["waiting"]
    assert (parked["status"], waiting["kind"], waiting["name"], waiting["until"]) == ("active", "event", "paid", None)
    session.reopen()
    told = session.host.deliver_event("@last", "paid", {"amount": 12})
    assert (told["repeated"], told["waited_for"]) == (False, True)
    assert session.host.session("@last")["last_seq"] == parked["last_seq"]  # nobody runs it
    assert session.resume()["failure"] is None
    assert b"12" in heard(session)
    assert "role.requested" not in session.types()
    assert not [name for name in session.types() if "execute_step" in name]
    assert session.types().count("external.delivered") == 1
    replayed(session)


def test_what_comes_before_its_step_is_kept_for_it(play: Any) -> None:
    steps = [{"id": "a", "uses": "wait", "with": {"durationMs": 3_600_000}}, wait("w", "paid", "a")]
    session = play(stages=planned(plan_of(steps, {"text": "{{ steps.w.output }}"})), models=MODELS)
    session.run()
    told = session.host.deliver_event("@last", "paid", "early")
    assert told["waited_for"] is False
    parked = session.resume()
    assert [one["kind"] for one in parked["waiting"]] == ["timer"]
    assert session.types().count("external.delivered") == 0 and session.types().count("command.received") == 1
    replayed(session)


def test_a_delivery_that_waits_in_the_log_is_taken_when_its_step_comes(play: Any) -> None:
    steps = [generate("a", "one"), wait("w", "paid", "a")]
    session = play(says("x"), stages=planned(plan_of(steps, {"text": "{{ steps.w.output }}"})), models=MODELS)
    session.run_until_it_breaks("intent.committed")
    session.reopen()
    session.host.deliver_event("@last", "paid", "early")
    assert session.resume()["failure"] is None
    types = session.types()
    assert types.index("command.received") < types.index("external.requested") < types.index("external.delivered")
    assert b"early" in heard(session)
    replayed(session)


def test_of_two_waits_for_one_name_the_first_gets_what_comes_first(play: Any) -> None:
    steps = [wait("a"), wait("b")]
    plan = plan_of(steps, {"text": "{{ steps.a.output }} {{ steps.b.output }}"})
    session = play(stages=planned(plan), models=MODELS)
    session.run()
    session.host.deliver_event("@last", "paid", "one")
    assert [one["name"] for one in session.resume()["waiting"]] == ["paid"]
    session.host.deliver_event("@last", "paid", "two")
    assert session.resume()["failure"] is None
    assert b"one two" in heard(session)
    replayed(session)


def test_what_is_delivered_again_under_its_id_counts_once(play: Any) -> None:
    steps = [wait("a"), wait("b")]
    session = play(stages=planned(plan_of(steps, {"text": "it is {{ steps.b.output }}"})), models=MODELS)
    session.run()
    for repeated in (False, True):
        told = session.host.deliver_event("@last", "paid", 1, delivery_id="invoice-7")
        assert (told["repeated"], told["delivery_id"]) == (repeated, "invoice-7")
    assert len(session.resume()["waiting"]) == 1
    assert session.host.deliver_event("@last", "paid", 1, delivery_id="invoice-7")["repeated"]
    with pytest.raises(HarnessError) as caught:
        session.host.deliver_event("@last", "paid", 2, delivery_id="invoice-7")
    assert caught.value.code == "event.other_delivery"
    session.host.deliver_event("@last", "paid", 2, delivery_id="invoice-8")
    assert session.resume()["failure"] is None
    assert session.host.deliver_event("@last", "paid", 2, delivery_id="invoice-8")["repeated"]  # also when all is over


def test_each_branch_of_a_fan_out_has_one_of_what_is_delivered(play: Any) -> None:
    fan = {
        "items": "{{ input.names }}", "itemKey": "{{ item }}", "maxBranches": 5, "maxConcurrency": 5,
        "failureMode": "all_settled", "fanIn": {"outputStep": "w"},
    }  # fmt: skip
    steps = [{"id": "each", "uses": "parallel", "with": fan, "steps": [wait(output={"mode": "text"})]}]
    plan = plan_of(steps, {"text": "had {{ steps.each.output.map(b, b.output) }}"})
    session = play(stages=planned(plan), models=MODELS)
    parked = session.host.run(NAMES)
    assert [one["name"] for one in parked["waiting"]] == ["paid"] * 3
    for number in range(3):
        session.host.deliver_event("@last", "paid", f"no {number}")
    assert session.resume()["failure"] is None
    assert all(f"no {number}".encode() in heard(session) for number in range(3))
    replayed(session)


def test_any_event_is_kept_while_a_plan_is_not_written_yet(play: Any) -> None:
    workflow = {"description": "Waits.", "input": {"type": "object"}, "output": {"type": "object"}}
    late = {"role": "worker", "executor": "workflow", "workflow": "waits", "on_success": "completed"}
    first = {"role": "worker", "on_success": "late", "approvals": {"artifact": "required"}}
    stages = {"initial": "first", "stages": {"first": first, "late": late}, "workflows": {"waits": workflow}}
    session = play(says("x"), stages=stages, models=MODELS)
    assert session.run()["status"] == "awaiting_approval"
    assert not session.host.deliver_event("@last", "anything", 1)["waited_for"]


def test_what_stages_may_wait_for_is_nothing_to_a_plan_that_is_run_by_itself(play: Any) -> None:
    late = {"role": "worker", "executor": "workflow", "workflow": "waits", "on_success": "completed"}
    stages = {"initial": "late", "stages": {"late": late}, "workflows": {"waits": {"input": True}}}
    session = play(stages=stages, models=MODELS)
    found = session.host.start_plan(json.dumps(PAID).encode(), {})
    assert session.host.wait(found)["waiting"]
    with pytest.raises(HarnessError) as caught:
        session.host.deliver_event(found, "payed", {"amount": 1})
    assert caught.value.code == "event.not_awaited"
    assert session.host.deliver_event(found, "paid", {"amount": 1})["waited_for"]


@pytest.mark.parametrize(("name", "payload", "more", "code"), [
    ("payed", 1, {}, "event.not_awaited"),
    ("Not a name", 1, {}, "config.event"),
    ("paid", {"amount": float("nan")}, {}, "validation.event"),
    ("paid", {"amount": {1}}, {}, "validation.event"),
    ("paid", {"amount": "x" * MAX_EVENT_BYTES}, {}, "validation.event_size"),
    ("paid", {"sum": 1}, {}, "validation.event"),
    ("paid", 7, {}, "validation.event"),
    ("paid", {"amount": 1}, {"delivery_id": ""}, "config.delivery_id"),
    ("paid", {"amount": 1}, {"by": 7}, "config.by"),
])  # fmt: skip
def test_what_no_step_could_take_is_refused_and_leaves_nothing(
    play: Any, name: Any, payload: Any, more: Any, code: str
) -> None:
    session = play(stages=planned(PAID), models=MODELS)
    parked = session.run()
    with pytest.raises(HarnessError) as caught:
        session.host.deliver_event("@last", name, payload, **more)
    assert caught.value.code == code
    assert not session.host.store.take(parked["id"])
    if code == "event.not_awaited":
        assert caught.value.hint == 'did you mean "paid"?'


def test_nothing_is_delivered_to_a_session_that_is_not_there_or_has_ended(play: Any) -> None:
    session = play(stages=planned(PAID), models=MODELS)
    found = session.run()["id"]
    session.host.cancel(found)
    for named, code in ((found, "state.final"), ("ffffffff", "session.not_found")):
        with pytest.raises(HarnessError) as caught:
            session.host.deliver_event(named, "paid", {"amount": 1})
        assert caught.value.code == code


def test_it_reaches_a_session_that_another_process_runs(play: Any) -> None:
    steps = [wait("w", "paid", limit_ms=9_000)]  # so soon that whoever runs it stays
    session = play(stages=planned(plan_of(steps, {"text": "{{ steps.w.output }}"})), models=MODELS)
    found = session.host.start("Go.")
    session.until("external.requested")
    with Host.open(session.site.project) as other:
        assert other.deliver_event(found, "paid", "hello")["waited_for"]
    assert session.host.wait(found)["status"] == "completed"
    assert b"hello" in heard(session)
    replayed(session)


@pytest.mark.parametrize("ports", ["threads", "inline"])
def test_a_wait_that_takes_too_long_is_a_failure_of_its_step(play: Any, ports: str) -> None:
    steps = [wait("w", "paid", limit_ms=20, onFailure={"to": "late"})]
    steps += [generate("late", "{{ steps.w.error.code }}: {{ steps.w.error.message }}")]
    told = "wait.timed_out: nothing was delivered under the name paid within 0.02 s"
    reply = {"when": {"contains": told}, "text": "late"}
    session = play(reply, stages=planned(plan_of(steps, {"text": "x"})), models=MODELS)
    session.reopen(ports=ports)
    assert session.run()["failure"] is None
    assert len(session.payloads("harness.model.called")) == 1
    replayed(session)


def test_a_wait_that_nothing_catches_fails_the_run_with_its_reason(play: Any) -> None:
    session = play(stages=planned(plan_of([wait("w", "paid", limit_ms=20)], {"text": "x"})), models=MODELS)
    failure = session.run()["failure"]
    assert (failure["code"], "within 0.02 s" in failure["message"]) == ("wait.timed_out", True)


def test_a_surface_delivers_as_anybody_does_and_is_refused_alike(play: Any) -> None:
    session = play(stages=planned(PAID), models=MODELS)
    found = session.run()["id"]
    body = {"name": "paid", "payload": {"amount": 1}, "by": "page"}
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("event:1", body, "command.malformed"),
        (f"event:{found}:1", {**body, "name": "payed"}, "event.not_awaited"),
        (f"event:{found}:1", {**body, "by": None}, "command.malformed"),
        (f"event:{found}:1", {**body, "payload": "no amount"}, "validation.event"),
    ]
    for command_id, given, code in wrong:
        with pytest.raises(HarnessError) as caught:
            session.host.submit({"session": found, "id": command_id, "kind": "event", "body": given})
        assert caught.value.code == code
    row = session.host.submit({"session": found, "id": f"event:{found}:1", "kind": "event", "body": body})
    assert row["body"]["name"] == "paid"
    assert session.host.deliver_event(found, "paid", {"amount": 1}, delivery_id="1")["repeated"]
    steer = {"session": found, "id": f"event:{found}:2", "kind": "steer", "body": {"text": "x", "by": "y"}}
    with pytest.raises(HarnessError) as caught:  # the id of a delivery is no other command's
        session.host.submit(steer)
    assert caught.value.code == "command.malformed"
    assert session.resume()["failure"] is None


def test_who_asks_an_upper_session_for_what_one_below_waits_for_is_told_which(play: Any) -> None:
    plan = {**PLAN, "steps": [wait(), {**PLAN["steps"][0], "needs": ["w"]}]}
    session = play(planner(plan), chief(1, start("a")), stages=lead(), models=MODELS)
    parked = session.run()
    assert [one["kind"] for one in parked["waiting"]] == ["child"]
    [child] = [one["id"] for one in session.host.sessions() if one["parent_id"] == parked["id"]]
    with pytest.raises(HarnessError) as caught:
        session.host.deliver_event(parked["id"], "paid", 1)
    assert (caught.value.code, child[-8:] in str(caught.value.hint)) == ("event.not_awaited", True)
    assert session.host.deliver_event(child, "paid", 1)["waited_for"]


def test_a_delivery_beyond_what_waits_is_said_to_be_kept(play: Any) -> None:
    steps = [wait("a"), wait("b")]
    session = play(stages=planned(plan_of(steps, {"text": "{{ steps.b.output }}"})), models=MODELS)
    session.run()
    assert [session.host.deliver_event("@last", "paid", text)["waited_for"] for text in "xyz"] == [True, True, False]
