"""Who waits for a session is told how it stands when it rests, or that it is not run here; a closed host is gone."""

from __future__ import annotations

import sys
import threading
from typing import Any

import psutil
import pytest

from harness_core import Host
from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import IllegalMove, NotFound
from tests.commands import lives, until
from tests.reference import PATIENCE_SECONDS, calls, one_stage, says

SLOW = {"seconds": 30, "note": "slow"}


def test_who_waits_is_told_when_the_host_is_closed_and_gets_the_document_of_what_has_ended(play: Any) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    found = session.host.start("Go.")
    owned = session.host._owned[found]
    session.site.wait_for_effects()
    waiting = make_ports("threads").spawn(session.host.wait, found)
    until(lambda: owned.loop._watchers)  # there it waits
    session.host.close()
    with pytest.raises(IllegalMove) as early:
        waiting.join(PATIENCE_SECONDS)
    until(owned.loop.quiescent)  # what was cut off comes to its end in a thread of its own
    with pytest.raises(IllegalMove) as late:
        owned.wait()
    assert early.value.code == late.value.code == "session.not_run"
    with Host.open(session.site.project) as other:
        with pytest.raises(NotFound) as refused:
            other.wait(found)
        assert refused.value.code == "session.not_owned"
        other.cancel(found)
        assert other.wait(found)["status"] == other.wait(found[-8:])["status"] == "cancelled"


@pytest.mark.parametrize("opened", [True, False])
def test_who_comes_to_wait_after_the_host_was_closed_is_told_so_and_opens_nothing(play: Any, opened: bool) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    found = session.host.start("Go.")
    session.reopen()
    if opened:
        assert session.host.session(found)["status"] == "active"
    session.host.close()
    store = session.host._store
    for named in (found, "@last"):
        with pytest.raises(IllegalMove) as refused:
            session.host.wait(named)
        assert refused.value.code == "session.not_run"
    assert session.host._store is store


def test_who_comes_to_wait_amid_the_close_is_told_so(play: Any) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    found = session.host.start("Go.")
    told: list[str] = []

    class Closing:
        """The store, which is closed last."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def close(self) -> None:
            with pytest.raises(IllegalMove) as refused:
                session.host.wait(found)
            told.append(refused.value.code)
            store.close()

    store, session.host._store = session.host.store, Closing()
    session.host.close()
    assert told == ["session.not_run"]


@pytest.mark.parametrize("by", ["another who waits", "a close"])
def test_who_waits_for_what_rests_is_given_it_though_it_is_given_back_meanwhile(play: Any, by: str) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    found = session.host.start("Go.", on_ask="suspend")
    owned = session.host._owned[found]
    session.until("session.awaiting")
    until(owned.loop.quiescent)
    if by == "a close":
        session.host.close()
    else:
        assert session.host.wait(found)["status"] == "awaiting_approval"
    assert owned.loop.stopped
    assert owned.wait(PATIENCE_SECONDS)


def test_a_closed_host_leaves_no_process_behind(play: Any) -> None:
    search = {"name": "filesystem_search", "args": {"pattern": "a.b", "regex": True}}
    stages = one_stage(allowed_tools=["filesystem"])
    session = play({**calls(), "tool_calls": [search]}, says("done"), stages=stages)
    before = set(psutil.Process().children())
    assert session.run()["status"] == "completed"
    assert "harness.tool_call.succeeded" in session.types()
    begun = set(psutil.Process().children()) - before
    session.host.close()
    until(lambda: not any(lives(process.pid) for process in begun))
    assert begun or sys.platform != "linux"


def test_a_closed_host_leaves_no_thread_behind(play: Any) -> None:
    before = set(threading.enumerate())
    session = play(calls(("pure", {"note": "a"})), says("done"))
    assert session.run()["status"] == "completed"
    session.host.close()
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(10)
    assert [thread.name for thread in left if thread.is_alive()] == []
