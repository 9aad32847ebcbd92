"""A signal may come at any moment, also while a session is being begun: it is saved, and nothing of it has failed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from harness_core.cli.interrupt import Beginning, interruptible
from harness_core.shell.session import OwnedSession
from harness_hookspecs.errors import HarnessError
from tests.commands import until
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import calls, says

SHORT = {"seconds": 0.2, "note": "short"}


def interrupted(
    session: Any, monkeypatch: pytest.MonkeyPatch, applies: Callable[[OwnedSession], bool] = lambda owned: True
) -> list[str]:
    """Have the host told to stop while it begins the next session of that kind: after it is owned, before it runs."""
    begin = OwnedSession._check_plans
    told: list[str] = []

    def meanwhile(owned: OwnedSession) -> None:
        begin(owned)
        if not told and applies(owned):
            told.append(owned.session_id)
            threading.Thread(target=session.host.interrupt, args=("SIGTERM",)).start()
            until(owned._leave.cancelled)

    monkeypatch.setattr(OwnedSession, "_check_plans", meanwhile)
    return told


@pytest.mark.inv("I-38")
def test_a_session_that_is_stopped_while_it_begins_is_saved_and_goes_on_later(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(calls(("slow", SHORT)), says("done"))
    told = interrupted(session, monkeypatch)
    found = session.host.start("Go.")
    assert told == [found]
    assert session.host.wait(found, timeout_seconds=20)["status"] == "paused"
    session.reopen()
    told.clear()
    session.host.resume(found, wait=False)
    assert told == [found]
    assert session.host.wait(found, timeout_seconds=20)["status"] == "paused"
    session.reopen()
    assert session.host.resume(found)["status"] == "completed"
    assert session.effects() == ["short"]
    assert session.payloads("role.failed") == []


@pytest.mark.inv("I-38")
def test_a_child_that_is_stopped_while_it_is_gone_on_with_has_not_failed_by_that(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = worker("one", ("slow", SHORT))
    session = play(planner(), chief(1, start("one")), chief(2, text="all"), one, worker("one", turn=2), stages=lead())
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.interrupt("SIGTERM")
    assert session.host.wait(found)["status"] == "paused"
    session.reopen()
    told = interrupted(session, monkeypatch, lambda owned: owned.session_id != found)
    session.host.resume(found, wait=False)
    assert session.host.wait(found, timeout_seconds=20)["status"] == "paused"
    assert told and session.host.session(told[0])["status"] == "paused"
    session.reopen()
    assert session.host.resume(found)["status"] == "completed"
    assert session.host.session(told[0])["status"] == "completed"
    assert session.effects() == ["short"]


@pytest.mark.inv("I-38")
def test_an_answer_to_a_session_that_is_stopped_is_taken_by_who_goes_on_with_it(play: Any) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    found = session.host.start("Go.", on_ask="suspend")
    session.until("session.awaiting")
    [asked] = session.host.approvals()
    session.host.interrupt("SIGTERM")
    session.host.answer(asked["id"], "approve", digest=asked["digest"])
    with suppress(HarnessError):
        session.host.wait(found, timeout_seconds=20)
    session.reopen()
    assert session.host.resume(found)["status"] == "completed"
    assert session.effects() == ["asked"]
    assert session.payloads("role.failed") == []


@pytest.mark.inv("I-38")
@pytest.mark.usefixtures("usual_signals")
def test_a_signal_that_comes_before_anything_is_begun_stops_what_is_begun_then(play: Any) -> None:
    session = play(calls(("slow", {**SHORT, "seconds": 30})), says("done"))
    beginning = Beginning(session.host)

    def begin() -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: beginning._told)
        return str(session.host.start("Go."))

    document, number = interruptible(
        beginning, lambda: session.host.wait(beginning.begun(begin), timeout_seconds=20), lambda number: None
    )
    assert (document["status"], number) == ("paused", signal.SIGTERM)
