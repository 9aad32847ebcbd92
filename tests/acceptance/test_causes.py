"""Causation: each event names the one that caused it, whoever wrote it and whatever was written beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_hookspecs.errors import HarnessError
from tests.reference import calls, says

TWO_CALLS = calls(("pure", {"note": "a"}), ("network", {"note": "b"}))

ANSWERED = """
    config.loaded < session.created
    session.started < session.created
    stage.entered < session.started
    validation.requested < stage.entered
    validation.passed < validation.requested
    context.requested < validation.passed
    context.assembled < context.requested
    role.requested < context.assembled
    role.resolved < role.requested
    harness.session.started < role.resolved
    harness.execute_step.started < harness.session.started
    budget.reserved < harness.execute_step.started
    harness.model.called < harness.execute_step.started
    harness.model.responded < harness.model.called
    budget.settled < harness.model.responded
    harness.tool_call.started < harness.model.responded
    approval.requested < harness.model.responded
    session.awaiting < approval.requested
    harness.tool_call.succeeded < harness.tool_call.started
    role.suspended < approval.requested
    command.received < approval.requested
    approval.granted < command.received
    steering.received < approval.granted
    session.resumed < approval.granted
    harness.tool_call.started < approval.granted
    harness.tool_call.succeeded < harness.tool_call.started
    budget.reserved < harness.tool_call.succeeded
    harness.model.called < harness.tool_call.succeeded
    harness.model.responded < harness.model.called
    budget.settled < harness.model.responded
    harness.execute_step.succeeded < harness.execute_step.started
    harness.session.completed < harness.session.started
    role.returned < role.requested
    artifact.proposed < role.returned
    validation.requested < artifact.proposed
    validation.passed < validation.requested
    validation.requested < validation.passed
    validation.passed < validation.requested
    validation.requested < validation.passed
    validation.passed < validation.requested
    artifact.accepted < validation.passed
    transition.taken < artifact.accepted
    stage.left < transition.taken
    session.completed < stage.left
"""


def _pairs(events: list[Any]) -> list[str]:
    """``type < type of its cause`` for each event but the first; a cause stands before what it causes."""
    types: dict[str, str] = {}
    pairs = []
    for event in events:
        if types:
            pairs.append(f"{event.type} < {types.get(json.loads(event.refs).get('causation_id'))}")
        types[event.id] = event.type
    return pairs


@pytest.mark.req("B-90")
def test_each_event_but_the_first_names_what_caused_it(play: Any) -> None:
    session = play(TWO_CALLS, says("done"))
    session.run()
    session.answer(session.pending()[0], say="go on")
    assert session.resume()["status"] == "completed"
    # side by side, the first call may end before or after the second one asks
    assert sorted(_pairs(session.events())) == sorted(line.strip() for line in ANSWERED.strip().splitlines())


@pytest.mark.req("B-90")
def test_the_end_of_a_call_follows_from_its_own_start(play: Any) -> None:
    session = play(calls(("pure", {"note": "a"}), ("pure", {"note": "b"}), ("pure", {"note": "c"})), says("done"))
    session.run()
    events = session.events()
    asked, started = {}, {}
    for event in events:
        payload, cause = json.loads(event.payload), json.loads(event.refs).get("causation_id")
        if event.type == "harness.model.responded":
            asked.update({call["callId"]: event.id for call in payload["response"]["toolCalls"]})
        if event.type == "harness.tool_call.started":
            started[payload["callId"]] = event.id
            assert cause == asked[payload["callId"]]
        if event.type == "harness.tool_call.succeeded":
            assert cause == started.pop(payload["callId"])
    assert len(asked) == 3 and not started


@pytest.mark.req("B-90")
def test_a_trace_of_a_result_goes_over_its_call_and_the_answer_that_asked_for_it(
    play: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session = play(calls(("pure", {"note": "a"})), says("done"))
    session.run()
    [seq] = [event.seq for event in session.events() if event.type == "harness.tool_call.succeeded"]
    session.host.close()
    assert main(["events", "trace", f"@last:{seq}"]) == 0
    told = [line.removeprefix("caused by ").split()[0] for line in capsys.readouterr().out.splitlines()]
    assert told[:4] == [
        "harness.tool_call.succeeded", "harness.tool_call.started", "harness.model.responded", "harness.model.called"
    ]  # fmt: skip
    assert told[-1] == "session.created"


@pytest.mark.req("B-90")
def test_what_a_person_does_follows_from_what_they_found(play: Any) -> None:
    session = play(TWO_CALLS, says("done"))
    session.run()
    session.reopen()
    session.host.cancel("@last")
    assert _pairs(session.events())[-2:] == [
        "command.received < session.awaiting", "session.cancelled < command.received"
    ]  # fmt: skip


@pytest.mark.req("B-90")
def test_a_failed_attempt_is_followed_by_what_its_failure_led_to(play: Any) -> None:
    session = play({"error": {"code": "provider.busy"}}, says("done"))
    session.run()
    pairs = _pairs(session.events())
    assert "harness.model.failed < harness.model.called" in pairs
    assert "harness.session.failed < harness.session.started" in pairs
    assert "role.failed < role.requested" in pairs
    assert "None" not in " ".join(pairs), pairs


@pytest.mark.req("B-90")
@pytest.mark.parametrize("probes", [False, True])
def test_a_call_whose_result_was_lost_is_settled_because_it_was_started(
    play: Any, monkeypatch: pytest.MonkeyPatch, probes: bool
) -> None:
    session = play(calls(("unkeyed", {"note": "a"})), says("done"), tools={"tools": {"effects": {"probes": probes}}})
    monkeypatch.setenv("HARNESS_FAILPOINT", "effect.done@2:raise")  # the tool's: the model's came before
    session.reopen()
    with pytest.raises(HarnessError):
        session.run()
    monkeypatch.delenv("HARNESS_FAILPOINT")
    session.reopen()
    document = session.resume()
    if not probes:
        session.host.settle(document["waiting"][0]["id"], "happened")
        document = session.resume()
    assert document["status"] == "completed"
    pairs = _pairs(session.events())
    expected = {"effect.settled < harness.tool_call.started", "harness.tool_call.succeeded < harness.tool_call.started"}
    if not probes:
        expected = {
            "effect.in_doubt < harness.tool_call.started",
            "role.suspended < effect.in_doubt",
            "command.received < effect.in_doubt",
            "effect.settled < command.received",
            "harness.tool_call.succeeded < effect.settled",
        }
    assert expected <= set(pairs), pairs
    assert "None" not in " ".join(pairs)
