"""Every event type is folded or left alone on purpose, and a type from elsewhere stops no reader."""

from __future__ import annotations

import pytest

from harness_core.kernel.evolve import HANDLERS, evolve
from harness_core.kernel.facts import Event
from harness_core.kernel.projections.session import state_hash
from harness_core.kernel.state import SessionState
from harness_core.shell.machine import WAITING_TYPES
from harness_core.shell.replay import CONTROL_TYPES
from harness_hookspecs.events import EVENTS
from tests.playing import Play, definition, snapshot

LEFT_ALONE = {
    "config.loaded",  # its digest stands in session.created
    "role.resolved",
    "role.delegated",
    "role.note",
    "harness.session.completed",  # its usage is a roll-up of what the calls said
    "harness.session.failed",
    "effect.ignored",
    "store.pruned",  # in the store's own stream
}

OF_A_ROLE_CALL = {
    "harness.session.started",
    "harness.session.completed",
    "harness.session.failed",
    "harness.model.called",
    "harness.model.responded",
    "harness.model.failed",  # an extension, documented as one
    "harness.tool_call.started",
    "harness.tool_call.succeeded",
    "harness.tool_call.failed",
    "harness.execute_step.started",
    "harness.execute_step.succeeded",
}


def test_every_type_is_folded_or_left_alone_on_purpose() -> None:
    assert HANDLERS.keys() | LEFT_ALONE == EVENTS.keys()
    assert not HANDLERS.keys() & LEFT_ALONE


@pytest.mark.req("A-77")
def test_a_role_call_has_the_ten_names_and_the_failed_model_call_and_no_failed_step() -> None:
    found = {name for name in EVENTS if name.startswith("harness.")}
    assert found == OF_A_ROLE_CALL
    assert len(OF_A_ROLE_CALL - {"harness.model.failed"}) == 10


def test_what_is_said_of_types_elsewhere_is_about_types_there_are() -> None:
    assert EVENTS.keys() >= WAITING_TYPES | CONTROL_TYPES


def test_every_request_is_closed_by_one_ending_of_its_own() -> None:
    endings = {
        "context.requested": {"context.assembled", "context.failed"},
        "role.requested": {"role.returned", "role.failed"},
        "compile.requested": {"workflow.version_registered", "compile.failed"},
        "timer.requested": {"timer.elapsed", "timer.cancelled"},
        "external.requested": {"external.delivered", "external.timed_out", "external.cancelled"},
        "child.requested": {"child.completed", "child.failed"},
        "validation.requested": {"validation.passed", "validation.failed", "validation.errored"},
        "approval.requested": {f"approval.{end}" for end in ("granted", "denied", "expired", "bypassed", "superseded")},
    }
    assert {name for name in EVENTS if name.endswith(".requested")} == endings.keys()
    assert EVENTS.keys() >= set().union(*endings.values())


def test_a_fold_passes_over_what_it_does_not_know_and_marks_it() -> None:
    play = Play(definition()).to_artifact()
    before = state_hash(play.state)
    newer = EVENTS["session.cancelled"].version + 1
    for name, version in (("acme.thing", 1), ("acme.thing", 1), ("session.cancelled", newer)):
        evolve(play.state, Event(play.state.seq + 1, "foreign", name, {"any": "thing"}, {}, "", version))
    assert play.state.unknown_types == ["acme.thing", "session.cancelled"]
    assert state_hash(play.state) == before


def test_a_fold_keeps_nothing_between_two_logs() -> None:
    play = Play(definition())
    play.succeed()
    first, second = play.folded_again(), play.folded_again()
    assert snapshot(first) == snapshot(second) == snapshot(play.state)
    assert snapshot(SessionState()) == snapshot(SessionState())
