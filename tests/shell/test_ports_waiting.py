"""What every set of ports promises about waiting, told once and kept by threads, by simulations and inline."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness_core.shell.ports import PORT_SETS, HostPorts, make_ports
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import Cancelled, ConfigError, InternalError
from harness_hookspecs.host import Ports

WITH_THREADS = ["threads", *(f"simulated-{seed}" for seed in range(6))]
ALL = [*WITH_THREADS, "inline"]
PATIENCE_SECONDS = 60.0  # reached only when a promise is broken


def patience(ports: Ports) -> float | None:
    """In a simulation any time may pass at once, and a wait without end is an error."""
    return None if isinstance(ports, SimulatedPorts) else PATIENCE_SECONDS


def _made(name: str) -> Iterator[HostPorts]:
    kind, _, seed = name.partition("-")
    ports = make_ports(kind, seed=int(seed or 0))
    yield ports
    ports.close()


@pytest.fixture(params=WITH_THREADS)
def ports(request: pytest.FixtureRequest) -> Iterator[HostPorts]:
    yield from _made(request.param)


@pytest.fixture(params=ALL)
def any_ports(request: pytest.FixtureRequest) -> Iterator[HostPorts]:
    yield from _made(request.param)


def _ended(ports: Ports, tasks: list[Any]) -> None:
    for task in tasks:
        assert task.join(patience(ports))


# ------------------------------------------------------------------------------------------------------- locks


def test_a_lock_lets_one_in_at_a_time(ports: Ports) -> None:
    lock, count = ports.wait.lock(), [0]

    def work() -> None:
        for _ in range(10):
            with lock:
                seen = count[0]
                ports.clock.sleep(0)
                count[0] = seen + 1

    _ended(ports, [ports.spawn(work) for _ in range(4)])
    assert count == [40]


def test_a_lock_may_be_released_by_another_thread(ports: Ports) -> None:
    lock = ports.wait.lock()
    lock.acquire()
    task = ports.spawn(lock.release)
    assert lock.acquire(timeout=patience(ports) or -1)
    _ended(ports, [task])


def test_a_held_lock_is_not_taken(any_ports: Ports) -> None:
    lock = any_ports.wait.lock()
    assert lock.acquire()
    before = any_ports.clock.monotonic()
    assert not lock.acquire(blocking=False)
    assert not lock.acquire(timeout=0.01)
    assert any_ports.clock.monotonic() - before >= 0.01
    lock.release()
    assert lock.acquire(blocking=False)


def test_an_open_lock_cannot_be_released(any_ports: Ports) -> None:
    with pytest.raises(RuntimeError):
        any_ports.wait.lock().release()


# ------------------------------------------------------------------------------------------- events and queues


def test_a_flag_lets_every_waiter_go_on(ports: Ports) -> None:
    flag, ready, woken = ports.wait.event(), ports.wait.queue(), list[bool]()

    def wait() -> None:
        ready.put(None)
        woken.append(flag.wait())

    tasks = [ports.spawn(wait) for _ in range(5)]
    for _ in tasks:
        ready.get()
    assert not flag.is_set()
    flag.set()
    _ended(ports, tasks)
    assert woken == [True] * 5
    assert flag.is_set() and flag.wait()


def test_items_leave_a_queue_in_their_order_and_once(ports: Ports) -> None:
    queue, taken = ports.wait.queue(), [list[int]() for _ in range(3)]

    def consume(mine: list[int]) -> None:
        while (item := queue.get()) is not None:
            mine.append(item)

    tasks = [ports.spawn(consume, mine) for mine in taken]
    for item in range(30):
        queue.put(item)
    for _ in tasks:
        queue.put(None)
    _ended(ports, tasks)
    assert sorted(item for mine in taken for item in mine) == list(range(30))
    assert all(mine == sorted(mine) for mine in taken)


def test_no_item_is_lost_when_its_taker_is_cancelled_or_leaves(ports: Ports) -> None:
    """An item that wakes one who is leaving must wake another."""
    queue, token, got = ports.wait.queue(), ports.wait.token(), list[int]()

    def patient() -> None:
        while (item := queue.get()) is not None:
            got.append(item)

    def leaving(timeout_seconds: float | None) -> None:
        try:
            item = queue.get(timeout_seconds, token)
        except Cancelled:
            return
        if item is not None:
            got.append(item)

    tasks = [ports.spawn(leaving, 0.001), ports.spawn(leaving, None), ports.spawn(patient)]
    cancelling = ports.spawn(token.cancel, "enough")
    for item in range(10):
        queue.put(item)
    _ended(ports, [cancelling, *tasks[:2]])  # one that begins late would take the end for an item
    queue.put(None)
    _ended(ports, tasks)
    assert sorted(got) == list(range(10))


WAITS: dict[str, Callable[[Ports, float], Any]] = {
    "event": lambda ports, seconds: ports.wait.event().wait(seconds),
    "queue": lambda ports, seconds: ports.wait.queue().get(seconds),
    "sleep": lambda ports, seconds: ports.clock.sleep(seconds),
    "sleep with a token": lambda ports, seconds: ports.clock.sleep(seconds, ports.wait.token()),
    "event with a token": lambda ports, seconds: ports.wait.event().wait(seconds, ports.wait.token()),
    "queue with a token": lambda ports, seconds: ports.wait.queue().get(seconds, ports.wait.token()),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_ends_at_its_time_and_not_before(any_ports: Ports, wait: Callable[[Ports, float], Any]) -> None:
    before = any_ports.clock.monotonic()
    assert not wait(any_ports, 0.01)
    assert any_ports.clock.monotonic() - before >= 0.01
    assert not wait(any_ports, 0)
    assert not wait(any_ports, -1)  # a deadline that has passed


# ------------------------------------------------------------------------------------------------------ cancel


CANCELLABLE: dict[str, Callable[[Ports, Any], Callable[[Any], Any]]] = {
    "event": lambda ports, shared: lambda token: shared["event"].wait(None, token),
    "queue": lambda ports, shared: lambda token: shared["queue"].get(None, token),
    "sleep": lambda ports, shared: lambda token: ports.clock.sleep(math.inf, token),
}


@pytest.mark.parametrize("way", CANCELLABLE.values(), ids=CANCELLABLE)
def test_a_cancel_wakes_exactly_its_waiter(ports: Ports, way: Callable[[Ports, Any], Callable[[Any], Any]]) -> None:
    wait = way(ports, {"event": ports.wait.event(), "queue": ports.wait.queue()})
    tokens = [ports.wait.token() for _ in range(3)]
    tasks = [ports.spawn(wait, token) for token in tokens]
    tokens[1].cancel("you")
    with pytest.raises(Cancelled, match="you"):
        tasks[1].join(patience(ports))
    assert not tasks[0].done() and not tasks[2].done()
    for index in (0, 2):
        tokens[index].cancel("end")
        with pytest.raises(Cancelled, match="end"):
            tasks[index].join(patience(ports))


@pytest.mark.parametrize("way", CANCELLABLE.values(), ids=CANCELLABLE)
def test_a_token_set_before_ends_the_wait_at_once(
    any_ports: Ports, way: Callable[[Ports, Any], Callable[[Any], Any]]
) -> None:
    wait = way(any_ports, {"event": any_ports.wait.event(), "queue": any_ports.wait.queue()})
    token = any_ports.wait.token()
    token.cancel("before")
    before = any_ports.clock.monotonic()
    with pytest.raises(Cancelled, match="before"):
        wait(token)
    assert any_ports.clock.monotonic() - before < PATIENCE_SECONDS / 2


def test_what_is_there_is_given_in_spite_of_a_token(any_ports: Ports) -> None:
    flag, queue, token = any_ports.wait.event(), any_ports.wait.queue(), any_ports.wait.token()
    flag.set()
    queue.put("item")
    token.cancel("late")
    assert flag.wait(None, token)
    assert queue.get(None, token) == "item"


def test_a_token_calls_each_subscriber_once_and_keeps_its_first_reason(any_ports: Ports) -> None:
    token, calls = any_ports.wait.token(), list[str]()
    assert (token.cancelled(), token.reason) == (False, None)
    token.raise_if_cancelled()
    token.on_cancel(lambda: calls.append("a"))
    forget = token.on_cancel(lambda: calls.append("never"))
    again = calls.append
    for _ in range(2):  # the same callback twice is two subscriptions
        token.on_cancel(lambda: again("twice"))
    forget()
    forget()
    token.cancel("first")
    token.cancel("second")
    assert calls == ["a", "twice", "twice"]
    assert (token.cancelled(), token.reason) == (True, "first")
    token.on_cancel(lambda: calls.append("at once"))
    assert calls[-1] == "at once"
    with pytest.raises(Cancelled, match="first") as caught:
        token.raise_if_cancelled()
    assert caught.value.facts == {"reason": "first"}


# ------------------------------------------------------------------------------------------------------- spawn


def test_a_join_waits_for_the_end_and_raises_what_the_work_raised(any_ports: Ports) -> None:
    def fail(text: str, code: int) -> None:
        raise ValueError(f"{text} {code}")

    done = any_ports.spawn(list.append, [], 1)
    assert done.join(patience(any_ports)) and done.done()
    task = any_ports.spawn(fail, "seven", 7, name="failing")
    for _ in range(2):
        with pytest.raises(ValueError, match="seven 7"):
            task.join()


def test_a_join_gives_up_at_its_time_and_several_may_join(ports: Ports) -> None:
    flag = ports.wait.event()
    task = ports.spawn(flag.wait)
    assert not task.join(0.01)
    joiners = [ports.spawn(task.join) for _ in range(3)]
    assert not task.done()
    flag.set()
    _ended(ports, [task, *joiners])


def test_work_may_spawn_work(any_ports: Ports) -> None:
    done = list[int]()

    def chain(left: int) -> None:
        if left:
            inner = any_ports.spawn(chain, left - 1)
            inner.join(patience(any_ports))
        done.append(left)

    any_ports.spawn(chain, 20).join(patience(any_ports))
    assert done == list(range(21))


# ------------------------------------------------------------------------------------------------ descriptors


@pytest.mark.parametrize("kind", ["threads", "inline"])
def test_a_descriptor_is_waited_for(kind: str) -> None:
    ports = make_ports(kind)
    read, write = os.pipe()
    token = ports.wait.token()
    try:
        assert not ports.wait.readable(read, None, 0.01)
        assert not ports.wait.readable(read, token, -1)
        os.write(write, b"x")
        assert ports.wait.readable(read)
        assert ports.wait.readable(read, token)
        token.cancel("no more")
        assert not ports.wait.readable(read, token)
    finally:
        os.close(read)
        os.close(write)


def test_a_cancel_ends_the_wait_for_a_descriptor_and_leaves_none_open(ports: Ports) -> None:
    read, write = os.pipe()
    token, found = ports.wait.token(), list[bool]()
    try:
        before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
        task = ports.spawn(lambda: found.append(ports.wait.readable(read, token)))
        token.cancel("answered elsewhere")
        _ended(ports, [task])
        assert found == [False]
        assert not before or len(os.listdir("/proc/self/fd")) == len(before)
    finally:
        os.close(read)
        os.close(write)


# ------------------------------------------------------------------------------------------------- port by port


def test_inline_work_runs_before_spawn_returns_and_what_it_spawns_after_it() -> None:
    ports, order = make_ports("inline"), list[str]()

    def outer() -> None:
        ports.spawn(order.append, "inner")
        order.append("outer")

    ports.spawn(outer)
    assert order == ["outer", "inner"]


def test_inline_whoever_waits_lets_the_line_run() -> None:
    ports, order = make_ports("inline"), list[str]()

    def outer() -> None:
        flag = ports.wait.event()
        ports.spawn(flag.set)
        order.append("waits")
        assert flag.wait()
        order.append("goes on")

    ports.spawn(outer).join()
    assert order == ["waits", "goes on"]


def test_inline_chains_of_work_do_not_nest() -> None:
    ports, count = make_ports("inline"), [0]

    def step() -> None:
        count[0] += 1
        if count[0] < 5_000:
            ports.spawn(step)

    ports.spawn(step).join()
    assert count == [5_000]


NOBODY: dict[str, Callable[[Ports], object]] = {
    "a lock taken twice": lambda ports: [(lock := ports.wait.lock()).acquire(), lock.acquire()],
    "an event": lambda ports: ports.wait.event().wait(),
    "a queue": lambda ports: ports.wait.queue().get(),
}


@pytest.mark.parametrize("wait", NOBODY.values(), ids=NOBODY)
def test_inline_waiting_for_what_nobody_brings_is_an_error(wait: Callable[[Ports], object]) -> None:
    with pytest.raises(InternalError) as caught:
        wait(make_ports("inline"))
    assert caught.value.code == "inline.stuck"


def test_threads_are_used_again_and_end_with_their_ports() -> None:
    ports, names = make_ports("threads"), set[int]()
    for _ in range(50):
        ports.spawn(lambda: names.add(threading.get_ident())).join()
    assert len(names) <= 3  # one that is just ending may not be idle yet
    workers = [thread for thread in threading.enumerate() if thread.ident in names]
    ports.close()
    for worker in workers:
        worker.join(PATIENCE_SECONDS)
        assert not worker.is_alive()


def test_there_are_three_sets_of_ports() -> None:
    for kind in PORT_SETS:
        made = make_ports(kind)
        assert made.clock.now().tzinfo is not None
        assert made.concurrent == (kind != "inline")
        made.close()
    with pytest.raises(ConfigError, match="threads, inline, simulated"):
        make_ports("fibres")
