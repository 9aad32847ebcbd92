"""The time of a call: once it is over the call is told to stop, and a person is told of one that goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from harness_core.shell import deadlines
from harness_core.shell.deadlines import HEED_SECONDS, Deadlines
from harness_core.shell.ports import HostPorts, NoThread, make_ports
from harness_core.shell.ports.cancel import Token
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import Cancelled

LIMIT_SECONDS = 5.0


class OneThread:
    """Ports whose worker runs when the test says so; where it waits, its time is over at once."""

    def __init__(self) -> None:
        self.now, self.worker = 0.0, lambda: None
        self.clock = SimpleNamespace(monotonic=lambda: self.now)
        event = SimpleNamespace(wait=self._pass, set=lambda: None)
        self.wait = SimpleNamespace(lock=nullcontext, token=Token, event=lambda: event)

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def spawn(self, worker: Callable[[], None], name: str) -> None:
        self.worker = worker


def told_of(step: int) -> tuple[list[str], float | None]:
    """What is told of a call that ends as the worker comes to that line of its work, and when that was."""
    told, ended, lines = list[str](), list[float](), iter(range(sys.maxsize))
    ports: Any = OneThread()
    limit = Deadlines(ports, told.append).limit(Token(), LIMIT_SECONDS, "tool t")

    def at_line(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != deadlines.__file__:
            return None
        if event == "line" and next(lines) == step:
            ended.append(ports.now)
            limit.__exit__()
        return at_line

    before = sys.gettrace()
    sys.settrace(at_line)
    try:
        ports.worker()
    finally:
        sys.settrace(before)
    return told, ended[0] if ended else None


def test_a_call_that_has_ended_is_not_said_to_go_on_whenever_that_was() -> None:
    for step in range(1000):
        told, ended = told_of(step)
        if ended is None or ended >= LIMIT_SECONDS + HEED_SECONDS:
            break
        assert (step, told) == (step, [])
    assert step > 20  # it was looked at between many lines
    assert told_of(-1)[0] == ["tool t was told to stop after 5 s and goes on"]


def test_with_one_thread_no_call_is_cut_short_and_none_waits_for_the_time_of_another() -> None:
    ports, reasons = make_ports("inline"), list[str | None]()
    all_limits = Deadlines(ports)

    def call() -> None:
        with all_limits.limit(Token(), 0.01, "tool t") as token:
            ports.spawn(lambda: None).join()
            reasons.append(token.reason)

    ports.spawn(call)
    assert reasons == [None]


def refuse(*_: Any, **__: Any) -> None:
    raise NoThread("can't start new thread")


def test_where_no_thread_is_left_the_next_limit_asks_for_one_again() -> None:
    ports: Any = OneThread()
    all_limits, spawn = Deadlines(ports, lambda _: None), ports.spawn
    ports.spawn = refuse
    with pytest.raises(NoThread):
        all_limits.limit(Token(), LIMIT_SECONDS)
    ports.spawn = spawn
    with all_limits.limit(Token(), LIMIT_SECONDS) as token:
        ports.worker()
        assert token.reason == "timeout"


def test_a_call_that_no_thread_was_left_for_is_cancelled_by_nobody_and_not_said_to_go_on() -> None:
    ports: Any = OneThread()
    told, session, given = list[str](), Token(), [Token(), Token()]
    ports.wait.token = iter(given).__next__
    all_limits, spawn = Deadlines(ports, told.append), ports.spawn
    ports.spawn = refuse
    with pytest.raises(NoThread):
        all_limits.limit(session, LIMIT_SECONDS, "tool t")
    ports.spawn = spawn
    with all_limits.limit(Token(), LIMIT_SECONDS):
        ports.worker()
    session.cancel("enough")
    assert ([token.reason for token in given], told) == ([None, "timeout"], [])


class Scarce(SimulatedPorts):
    """Ports that have no thread at first, and see that only after a while."""

    refused = False

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> Any:
        if name == "deadlines" and not self.refused:
            self.refused = True
            self.clock.sleep(0.001)
            refuse()
        return super().spawn(function, *args, name=name)


@pytest.mark.parametrize("seed", range(20))
def test_the_time_of_a_call_that_begins_while_another_gets_no_thread_is_looked_at(seed: int) -> None:
    ends = list[str]()

    def call() -> None:
        try:
            with all_limits.limit(ports.wait.token(), LIMIT_SECONDS) as token:
                ports.wait.event().wait(None, token)  # for ever, where nobody looks at the time
        except (NoThread, Cancelled) as stop:
            ends.append(str(stop))

    with Scarce(seed) as ports:
        all_limits = Deadlines(ports)
        for task in [ports.spawn(call), ports.spawn(call)]:
            task.join()
        assert sorted(ends) == ["can't start new thread", "cancelled: timeout"]


def test_calls_that_end_in_time_have_one_worker_between_them(
    threads: HostPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = list[str]()
    spawn = threads.spawn

    def counted(function: Callable[..., object], *args: object, name: str = "worker") -> Any:
        called.append(name)
        return spawn(function, *args, name=name)

    monkeypatch.setattr(threads, "spawn", counted)
    all_limits = Deadlines(threads)
    for _ in range(2_000):  # each has ended before a worker looks at it, or soon after
        with all_limits.limit(threads.wait.token(), 60.0):
            pass
    all_limits.close()
    assert called == ["deadlines"]


def test_with_one_thread_nobody_waits_a_deadline_out() -> None:
    ports = make_ports("inline")
    with Deadlines(ports).limit(ports.wait.token(), 3600.0) as token:
        assert not token.cancelled()
