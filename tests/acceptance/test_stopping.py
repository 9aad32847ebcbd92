"""Cancel, pause, signals and budgets: a session stops when it is told to, and what was done is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_core.cli.session_text import exit_of_session
from harness_core.shell import deadlines
from harness_core.shell.loop import SessionLoop
from harness_core.shell.session import OwnedSession, take_ownership
from harness_hookspecs.errors import HarnessError, IllegalMove, NotFound, StoreCorrupt, StoreError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft, Store
from tests.reference import HARNESS, calls, cases, one_stage, says, write_site

CASES = cases("runtime")
SLOW = {"seconds": 30, "note": "slow"}
QUICK_CANCEL = {"run": {"cancel_grace_sec": 0.1}}


# ------------------------------------------------------------------------------------------------------- cancel


@pytest.mark.req("A-31", "B-139")
def test_a_cancel_signals_the_tool_and_ends_the_session(play: Any) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.cancel(found)
    assert session.host.wait(found)["status"] == "cancelled"
    types = session.types()
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "cancelled"
    ends = ["harness.tool_call.failed", "harness.session.failed", "session.cancelled"]
    assert [kind for kind in types if kind in ends] == ends
    assert "harness.tool_call.succeeded" not in types


@pytest.mark.req("B-139")
def test_a_cancel_that_is_posted_while_the_session_begins_is_seen(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    begun = OwnedSession._ask_again

    def cancelled_meanwhile(owned: OwnedSession) -> None:
        """After the inbox was looked into, and before anybody looks again; nothing is appended from here on."""
        begun(owned)
        session.site.wait_for_effects()
        elsewhere.cancel(owned.session_id)

    monkeypatch.setattr(OwnedSession, "_ask_again", cancelled_meanwhile)
    with Host.open(session.site.project) as elsewhere:
        found = session.host.start("Go.")
        assert session.host.wait(found, timeout_seconds=10)["status"] == "cancelled"


@pytest.mark.req("A-31")
@pytest.mark.parametrize("limit", [{}, {"timeout_sec": 60}])
def test_a_model_call_in_flight_may_end_within_the_grace(play: Any, limit: dict[str, int]) -> None:
    session = play(says("late", delay_ms=300), stages=one_stage(**limit))
    found = session.host.start("Go.")
    session.until("harness.model.called")
    session.host.cancel(found)
    assert session.host.wait(found)["status"] == "cancelled"
    assert session.types().count("harness.model.responded") == 1  # what was paid for is kept
    assert "artifact.accepted" not in session.types()


@pytest.mark.req("A-31")
def test_a_model_call_that_outlasts_the_grace_is_ended(play: Any) -> None:
    session = play(says("late", delay_ms=60_000), harness=QUICK_CANCEL)
    found = session.host.start("Go.")
    session.until("harness.model.called")
    session.host.cancel(found)
    assert session.host.wait(found, timeout_seconds=10)["status"] == "cancelled"
    # The call itself has come to its end, long before its minute was over: after that of its session, or just before.
    session.until("effect.ignored", "harness.model.failed")
    assert "harness.model.responded" not in session.types()


@pytest.mark.inv("I-17", "I-20")
def test_a_late_result_is_recorded_as_ignored_and_changes_nothing(play: Any) -> None:
    assert "ignored" in CASES["BR-095"]["right"]
    deaf = {"seconds": 3, "note": "deaf", "deaf": True, "line": "both"}
    session = play(calls(("slow", deaf)), says("done"), harness=QUICK_CANCEL)
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.cancel(found)
    assert session.host.wait(found)["status"] == "cancelled"
    assert session.effects() == ["deaf"]  # nobody waited for it
    session.until("effect.ignored")
    types = session.types()
    assert types.index("session.cancelled") < types.index("effect.ignored")
    assert {"harness.tool_call.succeeded", "session.completed", "session.failed"}.isdisjoint(types)
    assert session.host.session(found)["status"] == "cancelled"
    assert session.effects() == ["deaf", "deaf"]


@pytest.mark.req("B-139")
@pytest.mark.parametrize(("move", "status"), [("cancel", "cancelled"), ("pause", "paused")])
def test_a_listener_may_stop_the_session_that_it_is_told_of(play: Any, move: str, status: str) -> None:
    session = play(calls(("slow", {"seconds": 1, "note": "slow"})), says("done"))
    moved: list[str] = []

    def listen(event: Any) -> None:
        if event.type == "harness.tool_call.started" and not moved:
            moved.append(event.stream.removeprefix("session:"))
            getattr(session.host, move)(moved[0])

    session.host.close()
    session.host = Host.open(session.site.project, on_event=listen)
    found = session.host.start("Go.")
    assert session.host.wait(found, timeout_seconds=20)["status"] == status
    assert moved == [found]


@pytest.mark.inv("I-20", "I-17")
def test_a_cancel_at_any_moment_up_to_completion_gives_one_end(play: Any) -> None:
    assert "one terminal state" in CASES["BR-095"]["right"]
    session = play(says("done"))
    session.run()
    moments = session.types()
    ends = []
    for number in range(2 * len(moments)):
        session.forget()
        found = session.host.start("Go.")
        session.until(moments[number // 2])
        with suppress(IllegalMove, NotFound):  # it has ended already
            session.host.cancel(found)
            session.host.wait(found)
        status = session.host.session(found)["status"]
        finals = [e.type for e in session.host.events(found) if e.type in ("session.completed", "session.cancelled")]
        assert finals == [f"session.{status}"]
        ends.append(status)
    assert set(ends) == {"completed", "cancelled"}


@pytest.mark.req("B-139", "B-136")
def test_what_nobody_runs_is_cancelled_where_the_command_was_given(play: Any) -> None:
    session = play(calls(("network", {"note": "a"})), says("done"))
    session.run()
    session.reopen()
    session.host.cancel("@last")
    assert session.host.session("@last")["status"] == "cancelled"
    assert session.pending() == []
    for move in (session.host.cancel, session.host.pause, session.resume):
        with pytest.raises(IllegalMove) as caught:
            move("@last") if move != session.resume else move()
        assert caught.value.code == "state.final"
    assert session.types().count("session.cancelled") == 1


@pytest.mark.req("B-139")
@pytest.mark.parametrize(("trusted", "code"), [(True, "plugin.missing"), (False, "config.untrusted")])
def test_a_cancel_of_what_nobody_runs_needs_neither_a_plugin_nor_trust(play: Any, trusted: bool, code: str) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    session.run()
    session.answer(session.pending()[0])
    gone = {"models": {"gone": {"provider": "gone", "context_size": 32768}}}
    if trusted:
        session.site.write("models", gone)
    else:
        (session.site.project / ".harness" / "models.yaml").write_text(dumps(gone).decode(), encoding="utf-8")
    session.reopen()
    with pytest.raises(HarnessError) as caught:
        session.run()
    assert caught.value.code == code
    session.host.cancel("@last")
    document = session.host.session("@last")
    assert (document["status"], session.effects()) == ("cancelled", [])
    assert not session.host.store.take(document["id"])  # the answer that waited too is taken, and does nothing
    assert [one["kind"] for one in session.payloads("command.received")] == ["cancel", "answer"]
    assert "approval.granted" not in session.types()
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_an_owner_that_goes_without_another_look_leaves_no_cancel_behind(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    found = session.run()["id"]
    owner = take_ownership(found, session.host._ports.files(session.host._opened.data_dir))
    posts = session.host._post

    def post_and_go(*given: Any) -> Any:
        posted = posts(*given)
        owner.release()
        return posted

    monkeypatch.setattr(session.host, "_post", post_and_go)
    session.host.cancel(found)
    assert session.host.session(found)["status"] == "cancelled"
    assert len(session.payloads("command.received")) == 1


# ---------------------------------------------------------------------------------------------- what breaks meanwhile


class Breaking:
    """A store of which one method raises, for the events and rows that are meant, until it is mended."""

    def __init__(self, store: Store, method: str, error: Exception, meant: Callable[..., bool]) -> None:
        self._store, self._method, self._error, self._meant = store, method, error, meant
        self.mended = False

    def __getattr__(self, name: str) -> Any:
        does = getattr(self._store, name)
        return self._breaks if name == self._method else does

    def _breaks(self, *given: Any, **named: Any) -> Any:
        if not self.mended and self._meant(*given):
            raise self._error
        return getattr(self._store, self._method)(*given, **named)


def ends(stream: str, drafts: Sequence[Draft]) -> bool:
    return any(draft.type in ("session.completed", "session.cancelled") for draft in drafts)


FULL = StoreError("no space left", code="store.full")
BREAKS: dict[str, tuple[str, Exception, Callable[..., bool], Callable[[Any], Any]]] = {
    "the post of a resume": ("post", FULL, lambda *_: True, lambda session: session.resume(budget={"calls": 50})),
    "the end of a run": ("append", RuntimeError("no thread"), ends, lambda session: session.resume()),
    "a cancel": ("append", RuntimeError("no thread"), ends, lambda session: session.host.cancel("@last")),
}


@pytest.mark.parametrize("what", BREAKS)
def test_whatever_breaks_gives_the_session_back(play: Any, what: str) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    session.run()
    session.answer(session.pending()[0])
    session.reopen()
    method, error, meant, does = BREAKS[what]
    session.host._store = broken = Breaking(session.host.store, method, error, meant)
    with pytest.raises(type(error), match=str(error)):
        does(session)
    broken.mended = True
    with Host.open(session.site.project) as other:
        assert other.resume("@last")["status"] in ("completed", "cancelled")


def test_a_cancel_that_is_recorded_and_cannot_be_carried_out_is_told_to_be(play: Any) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    session.run()
    session.reopen()
    full = StoreError("no space left", code="store.full", hint="make room")
    session.host._store = broken = Breaking(session.host.store, "append", full, ends)
    with pytest.raises(StoreError) as caught:
        session.host.cancel("@last")
    name = session.host.find("@last")[-8:]
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("the cancel is recorded: ")
    assert f"harness resume {name} ends the session" in caught.value.hint
    broken.mended = True
    assert session.resume()["status"] == "cancelled"


@pytest.mark.inv("I-20")
def test_what_breaks_while_a_session_is_given_back_does_not_keep_it(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    owned = session.host._owned[found]

    with breaking(monkeypatch, owned), pytest.raises(RuntimeError, match="no thread"):
        owned.close()
    take_ownership(found, owned._ports.files(owned._world.data_dir)).release()
    assert owned._cancel.cancelled()  # what it had begun ends
    owned.loop.stop()


@pytest.mark.inv("I-20")
def test_what_breaks_while_one_session_is_given_back_leaves_nothing_else_open(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    host, started = session.host, [session.host.start("Go.") for _ in range(3)]
    owned = [host._owned[one] for one in started]
    session.until("harness.tool_call.started", count=len(owned))
    with breaking(monkeypatch, owned[1]), pytest.raises(RuntimeError, match="no thread"):
        host.close()
    assert not host._owned
    for one in owned:
        take_ownership(one.session_id, one._ports.files(one._world.data_dir)).release()
    with pytest.raises(StoreError) as caught:
        host._store.head("session:any")
    assert caught.value.code == "store.closed"
    owned[1].loop.stop()


@contextmanager
def breaking(monkeypatch: pytest.MonkeyPatch, owned: OwnedSession) -> Iterator[None]:
    """The loop of that session cannot be stopped."""
    stop = SessionLoop.stop

    def breaks(loop: SessionLoop, error: BaseException | None = None) -> None:
        if loop is owned.loop:
            raise RuntimeError("no thread")
        stop(loop, error)

    with monkeypatch.context() as patch:
        patch.setattr(SessionLoop, "stop", breaks)
        yield


# -------------------------------------------------------------------------------------------------------- pause


@pytest.mark.req("B-139", "B-136", "B-137")
def test_a_pause_stops_after_what_is_in_flight_and_resume_goes_on(play: Any) -> None:
    replies = [calls(("slow", {"seconds": 0.5, "note": "one"})), calls(("unkeyed", {"note": "two"})), says("done")]
    undisturbed = play(*replies).run()
    session = play(*replies)
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.pause(found)
    assert session.host.wait(found)["status"] == "paused"
    assert session.effects() == ["one"]
    assert session.types().count("harness.tool_call.succeeded") == 1
    ended = session.resume()
    assert session.effects() == ["one", "two"]
    assert (ended["status"], ended["state_hash"]) == ("completed", undisturbed["state_hash"])
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_a_pause_that_nobody_was_there_for_does_not_stop_the_resume(play: Any) -> None:
    session = play(calls(("network", {"note": "a"})), says("done"))
    session.run()
    posted = dumps({"kind": "pause", "body": {"reason": "operator"}})  # its owner has died meanwhile
    session.host.store.post(session.host.find("@last"), "pause:1", posted)
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"


@pytest.mark.req("B-139")
@pytest.mark.parametrize("by", ["pause", "submit"])
def test_a_pause_of_a_session_that_nobody_runs_says_so_and_is_not_kept_for_the_next_run(play: Any, by: str) -> None:
    session = play(calls(("network", {"note": "a"})), says("done"))
    found = session.run()["id"]
    command = {"session": found, "id": "p", "kind": "pause", "body": {}}
    with pytest.raises(IllegalMove) as caught:
        session.host.pause(found) if by == "pause" else session.host.submit(command)
    assert (caught.value.code, found[-8:] in caught.value.message) == ("session.not_run", True)
    assert not session.host.store.take(found)
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert "session.paused" not in session.types()


# ------------------------------------------------------------------------------------------------------- budget


@pytest.mark.req("B-05")
@pytest.mark.parametrize(
    ("budget", "dimension", "raised"),
    [({"calls": 2}, "calls", {"calls": 10}), ({"tokens": 3_000}, "tokens", {"tokens": 100_000})],
)
def test_a_budget_that_is_reached_suspends_and_a_raised_one_goes_on(
    play: Any, budget: dict[str, float], dimension: str, raised: dict[str, float]
) -> None:
    usage = {"inputTokens": 1_500, "outputTokens": 5, "cachedInputTokens": 0, "reasoningTokens": 0}
    replies = [calls(("unkeyed", {"note": note}), usage=usage) for note in "abc"]
    session = play(*replies, says("done"))
    document = session.run(budget=budget)
    assert [one["id"] for one in document["waiting"] if one["kind"] == "budget"] == [dimension]
    assert (document["status"], exit_of_session(document)) == ("active", 12)
    before = session.effects()
    assert session.resume()["waiting"] == document["waiting"]  # nothing has changed, nothing is tried
    assert session.effects() == before
    ended = session.resume(budget=raised)
    assert (ended["status"], ended["waiting"]) == ("completed", [])
    assert session.effects() == ["a", "b", "c"]
    [exhausted] = session.payloads("budget.exhausted")
    assert exhausted["dimension"] == dimension


def test_the_time_between_two_model_calls_is_recorded_with_the_second(play: Any) -> None:
    session = play(calls(("slow", {"seconds": 0.4, "note": "a"})), says("done"))
    assert session.run()["status"] == "completed"
    assert session.payloads("budget.settled")[1]["elapsed_ms"] >= 400


# -------------------------------------------------------------------------------------------------- suspension


@pytest.mark.inv("I-20")
@pytest.mark.parametrize("role", ["swallowing", "returning-in-finally"])
def test_a_role_that_drops_the_suspension_changes_nothing(play: Any, role: str) -> None:
    session = play(says("unused"), harness={"bind": {"worker.ai-generate": role}})
    assert session.run()["status"] == "awaiting_approval"
    assert session.effects() == []
    types = session.types()
    assert types[-1] == "role.suspended"
    assert {"role.returned", "role.note", "harness.model.called", "harness.tool_call.started"}.isdisjoint(types)
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["asked"]


# ------------------------------------------------------------------------------------------------------ signals


def started(site: Any, *words: str) -> subprocess.Popen[str]:
    """The command, running."""
    return subprocess.Popen(
        [*HARNESS, *words], cwd=site.project, env=site.process_env(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def nothing_is_added(session: Any) -> None:
    """What was cut off may come back now, and too late."""
    before = session.types()
    for _ in range(20):
        time.sleep(0.01)
        assert session.types() == before


@pytest.mark.inv("I-16", "I-20")
@pytest.mark.parametrize("probes", [False, True])
def test_an_effect_that_outlasts_the_grace_of_a_signal_is_as_unknown_as_after_a_crash(play: Any, probes: bool) -> None:
    tools = {"tools": {"effects": {"probes": probes}}}
    session = play(calls(("slow", {**SLOW, "seconds": 60})), says("done"), tools=tools)
    found = session.host.start("Go.")
    session.site.wait_for_effects()
    session.host.interrupt("SIGINT", grace_seconds=0.1)
    nothing_is_added(session)
    assert session.host.wait(found, timeout_seconds=5)["status"] == "paused"
    session.reopen()
    assert "harness.tool_call.failed" not in session.types()
    document = session.resume()
    if not probes:
        [doubt] = document["waiting"]
        session.host.settle(doubt["id"], "happened")
        document = session.resume()
    assert document["status"] == "completed"
    assert session.effects() == ["slow"]


@pytest.mark.inv("I-16")
def test_a_host_that_is_closed_leaves_what_was_under_way_as_a_crash_would(play: Any) -> None:
    tools = {"tools": {"effects": {"probes": False}}}
    session = play(calls(("slow", {**SLOW, "seconds": 60})), says("done"), tools=tools)
    session.host.start("Go.")
    session.site.wait_for_effects()
    session.reopen()
    assert session.types()[-1] == "harness.tool_call.started"
    document = session.resume()
    assert [one["kind"] for one in document["waiting"]] == ["in_doubt"]
    assert session.effects() == ["slow"]


def test_a_model_call_that_outlasts_the_grace_of_a_signal_is_asked_again(play: Any) -> None:
    session = play(says("done", delay_ms=800))
    found = session.host.start("Go.")
    session.until("harness.model.called")
    session.host.interrupt("SIGINT", grace_seconds=0.1)
    nothing_is_added(session)
    assert session.host.wait(found, timeout_seconds=5)["status"] == "paused"
    session.reopen()
    assert session.resume()["status"] == "completed"
    assert {"harness.model.failed", "role.failed"}.isdisjoint(session.types())


@pytest.mark.parametrize("deaf", [True, False])
def test_a_tool_that_goes_on_beyond_its_time_is_named_once_and_one_that_heeds_it_is_not(
    play: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], deaf: bool
) -> None:
    monkeypatch.setattr(deadlines, "HEED_SECONDS", 0.1)
    slow = calls(("slow", {**SLOW, "seconds": 1, "deaf": deaf}))
    session = play(slow, says("done"), harness={"run": {"tool_timeout_sec": 0.2}})
    assert session.run()["status"] == "completed"
    said = capsys.readouterr().err
    assert said == ("harness: tool effects_slow was told to stop after 0.2 s and goes on\n" if deaf else "")


@pytest.mark.req("A-99")
@pytest.mark.parametrize("ends", ["resumed", "cancelled", "killed"])
def test_a_model_call_that_was_cut_off_used_what_nobody_knows(play: Any, ends: str) -> None:
    session = play(says("done", delay_ms=0 if ends == "killed" else 800))
    if ends == "killed":
        session.run_until_it_breaks("intent.committed")
    else:
        found = session.host.start("Go.")
        session.until("harness.model.called")
        session.host.interrupt("SIGINT", grace_seconds=0.1)
        session.host.wait(found, timeout_seconds=5)
    session.reopen()
    assert session.host.session("@last")["usage"]["known"] is False
    if ends == "cancelled":
        session.host.cancel("@last")
    else:
        assert session.resume()["status"] == "completed"
    document, report = session.host.session("@last"), session.host.report("@last")
    asked = 1 if ends == "cancelled" else 2
    assert session.types().count("harness.model.called") == asked
    assert (report["calls"], report["unknown_calls"], report["failed_calls"]) == (asked, 1, 0)
    assert [call["outcome"] for call in report["model_calls"]] == ["lost", "stop"][:asked]
    assert (report["usage"]["known"], document["usage"]["known"], document["unpriced_calls"]) == (False, False, asked)
    assert report["roll_ups"]["equal"]
    assert session.host.replay("@last", mode="skip-inference")["equal"]


@pytest.mark.req("A-99")
@pytest.mark.parametrize(
    ("answered", "known", "texts"),
    [
        (0, False, ("unknown", "unknown, no call reported them", "tokens       unknown")),
        (1, False, ("15+?", "at least 10 in, 5 out; some calls reported none", "tokens       at least 15 ")),
        (2, True, ("30", "20 in, 10 out", "tokens       30 ")),
    ],
)
def test_what_a_killed_session_used_is_the_same_wherever_it_is_shown(
    play: Any, capsys: pytest.CaptureFixture[str], answered: int, known: bool, texts: tuple[str, ...]
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    turns = [calls(("pure", {}), usage=usage), calls(("slow", {**SLOW, "seconds": 60}), usage=usage)]
    session = play(*turns[:answered], says("done", delay_ms=800))
    session.host.start("Go.")
    last = "harness.tool_call.started" if known else "harness.model.called"
    session.until(last, count=2 if known else answered + 1)
    session.reopen()
    assert session.types()[-1] == last
    [listed], shown, report = session.host.sessions(), session.host.session("@last"), session.host.report("@last")
    assert listed["usage"] == shown["usage"] == {name: report["usage"][name] for name in shown["usage"]}
    assert listed["unpriced_calls"] == shown["unpriced_calls"] == report["unpriced_calls"] == report["calls"]
    assert (shown["usage"]["known"], report["unknown_calls"]) == (known, 0 if known else 1)
    for words, said in zip(("sessions", "sessions show @last", "report @last"), texts, strict=True):
        assert main(words.split()) == 0
        assert said in capsys.readouterr().out


def test_a_killed_session_whose_log_cannot_be_read_is_listed_and_what_it_used_is_unknown(play: Any) -> None:
    session = play(says("done", delay_ms=800))
    session.host.start("Go.")
    session.until("harness.model.called")
    session.reopen()
    damaged = StoreCorrupt("it is damaged")
    session.host._store = Breaking(session.host.store, "read", damaged, lambda *_: True)
    [listed] = session.host.sessions()
    assert (listed["status"], listed["usage"]["known"], listed["usage"]["input_tokens"]) == ("active", False, 0)


@pytest.mark.req("A-99")
def test_a_model_call_that_failed_used_what_nobody_knows_in_every_document(play: Any) -> None:
    session = play({"error": {"code": "provider.unavailable"}})
    document = session.run()
    assert session.types().count("harness.model.failed") == 1
    assert (document["usage"]["known"], session.host.report("@last")["usage"]["known"]) == (False, False)


@pytest.mark.inv("I-38")
def test_a_signal_gives_all_sessions_one_grace(play: Any) -> None:
    session = play(calls(("slow", {**SLOW, "deaf": True})), says("done"))
    started = [session.host.start("Go.") for _ in range(4)]
    session.until("harness.tool_call.started", count=len(started))
    began = time.monotonic()
    session.host.interrupt("SIGINT", grace_seconds=1.0)
    assert time.monotonic() - began < 3.0
    assert {session.host.wait(one, timeout_seconds=5)["status"] for one in started} == {"paused"}


@pytest.mark.inv("I-38")
def test_a_session_that_cannot_be_stopped_keeps_no_other_from_it(play: Any) -> None:
    session = play(calls(("slow", SLOW)), says("done"))
    full: list[str] = []
    store = Breaking(session.host.store, "append", FULL, lambda stream, *_: stream.removeprefix("session:") in full)
    session.host._store = Breaking(store, "post", FULL, lambda session_id, *_: session_id in full)
    first, second = (session.host.start("Go.") for _ in range(2))
    session.until("harness.tool_call.started", count=2)
    full.append(first)
    with pytest.raises(StoreError, match="no space"):
        session.host.interrupt("SIGINT", grace_seconds=0.1)
    assert session.host.wait(second, timeout_seconds=5)["status"] == "paused"
    assert session.host._owned[first]._cancel.cancelled()  # what still works for it is told to stop
    with pytest.raises(StoreError, match="no space"):
        session.host.wait(first, timeout_seconds=5)


@pytest.mark.usefixtures("usual_signals")
def test_a_signal_leaves_what_awaits_an_approval_awaiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = calls(("network", {"note": "asked"}), ("slow", {**SLOW, "seconds": 2}))
    site = write_site(tmp_path, stages=one_stage(), replies=[turn, says("done")]).enter(monkeypatch)
    process = started(site, "run", "Go.", "--json", "--on-ask", "suspend")
    site.wait_for_effects(lambda: process.poll() is None)
    with Host.open(site.project) as host:
        while not [event for event in host.events("@last") if event.type == "session.awaiting"]:
            assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert process.returncode == 130, err
    assert json.loads(out)["status"] == "awaiting_approval"
