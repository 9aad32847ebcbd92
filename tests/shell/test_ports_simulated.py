"""The simulated ports: one seed is one interleaving, time is virtual, and whoever can never go on is named."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.ports.simulated import START, SimulatedPorts
from harness_hookspecs.errors import Cancelled, InternalError
from harness_hookspecs.host import Ports

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = "f88f75990b8bcbe143466cce0be3f0f2b0809b0b0920e0c508fd4db515b9a44f"  # of the first five seeds


def workload(ports: Ports, workers: int = 4, turns: int = 3) -> list[Any]:
    """Uses every kind of port call; its log shows times, ids, chance and order."""
    log, lock, queue = list[Any](), ports.wait.lock(), ports.wait.queue()

    def work(number: int) -> None:
        for turn in range(turns):
            ports.clock.sleep(ports.random.uniform(0, 1))
            with lock:
                log.append((number, turn, ports.ids.uuid7(), ports.ids.ulid("call"), ports.clock.timestamp()))
        queue.put(number)

    tasks = [ports.spawn(work, number) for number in range(workers)]
    log.append([queue.get() for _ in tasks])
    for task in tasks:
        task.join()
    log.append((ports.random.bytes(4).hex(), ports.clock.monotonic()))
    return log


def run(seed: int) -> tuple[list[Any], tuple[Any, ...]]:
    with SimulatedPorts(seed) as ports:
        return workload(ports), tuple(ports.trace)


def digest(seeds: range) -> str:
    return hashlib.sha256(repr([run(seed) for seed in seeds]).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------- determinism


def test_one_seed_is_one_interleaving_and_many_seeds_are_many() -> None:
    runs = [run(seed) for seed in range(50)]
    assert runs == [run(seed) for seed in range(50)]
    assert len({repr(trace) for _, trace in runs}) == 50
    orders = [tuple(entry[:2] for entry in log[1:-1] if isinstance(entry, tuple)) for log, _ in runs]
    assert len(set(orders)) >= 10


def test_a_log_does_not_depend_on_the_interpreter_or_its_hash_seed() -> None:
    """A change of the ports may change the figure; another Python, 3.11 to 3.13, may not."""
    assert digest(range(5)) == GOLDEN
    call = "from tests.shell.test_ports_simulated import digest; print(digest(range(5)))"
    path = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == GOLDEN


def test_threads_of_one_run_serve_the_next() -> None:
    run(0)
    before = threading.active_count()
    for seed in range(20):
        run(seed)
    assert threading.active_count() <= before + 1


def test_reach_never_switches() -> None:
    for seed in range(20):
        with SimulatedPorts(seed) as ports:
            others = list[int]()
            ports.spawn(others.append, 1)
            seen = len(others)
            for _ in range(50):
                ports.reach("decide.done")
            assert len(others) == seen
            assert ports.failpoints.reached == {"decide.done": 50}


# -------------------------------------------------------------------------------------------------------- time


def test_time_is_virtual_and_starts_at_a_fixed_moment() -> None:
    started = time.monotonic()
    with SimulatedPorts(1) as ports:
        assert (ports.clock.now(), ports.clock.timestamp()) == (START, "2026-01-01T00:00:00.000Z")
        ports.clock.sleep(3 * 86_400 + 0.57)
        assert ports.clock.timestamp() == "2026-01-04T00:00:00.570Z"
        assert ports.clock.monotonic() == 3 * 86_400 + 0.57
    assert time.monotonic() - started < 5


def _timer_against_work(seed: int) -> str:
    """Who is first: a timer of a minute, or work that never waits."""
    with SimulatedPorts(seed) as ports:
        ended = list[str]()

        def timer() -> None:
            ports.clock.sleep(60)
            ended.append("timer")

        def busy() -> None:
            for _ in range(15):
                ports.clock.monotonic()
            ended.append("work")

        for task in [ports.spawn(timer), ports.spawn(busy)]:
            task.join()
        return f"{ports.baton.flow}: {ended[0]}"


def test_how_often_time_flows_while_others_run_belongs_to_the_seed() -> None:
    first = {_timer_against_work(seed) for seed in range(60)}
    assert first >= {"0.0: work", "0.1: work", "0.1: timer", "0.3: timer"}
    assert "0.0: timer" not in first


def test_a_wait_without_end_is_ended_by_a_token_only() -> None:
    for seed in range(10):
        with SimulatedPorts(seed) as ports:
            token = ports.wait.token()
            task = ports.spawn(ports.clock.sleep, math.inf, token)
            ports.clock.sleep(1000)
            assert not task.done()
            token.cancel("enough")
            with pytest.raises(Cancelled):
                task.join()


def test_nobody_types_in_a_simulation() -> None:
    with SimulatedPorts(5) as ports:
        assert not ports.wait.readable(0)
        assert ports.clock.monotonic() == 0
        assert not ports.wait.readable(0, None, 5)
        assert ports.clock.monotonic() == 5
        token = ports.wait.token()
        ports.spawn(token.cancel, "answered elsewhere")
        assert not ports.wait.readable(0, token)


# -------------------------------------------------------------------------------- canaries: faults that are found


def _lost_update(ports: Ports) -> bool:
    count = [0]

    def work() -> None:
        seen = count[0]
        ports.clock.monotonic()
        count[0] = seen + 1

    for task in [ports.spawn(work), ports.spawn(work)]:
        task.join()
    return count != [2]


def _assigned_too_late(ports: Ports) -> bool:
    """What is spawned looks for something that its spawner sets right after."""
    box, missing = dict[str, Any](), list[bool]()
    task = ports.spawn(lambda: missing.append("task" not in box))
    box["task"] = task
    task.join()
    return missing == [True]


def _timeout_taken_for_never(ports: Ports) -> bool:
    """Expects that a short job beats a long timeout."""
    flag = ports.wait.event()

    def short() -> None:
        for _ in range(5):
            ports.clock.monotonic()
        flag.set()

    task = ports.spawn(short)
    lost = not flag.wait(600)
    task.join()
    return lost


def _first_come_first_served(ports: Ports) -> bool:
    """Expects that who waits first is served first."""
    queue, taken = ports.wait.queue(), list[Any]()

    def take() -> None:
        taken.append(queue.get(0.5))

    tasks = [ports.spawn(take) for _ in range(2)]
    ports.clock.sleep(0.4)
    queue.put(1)
    for task in tasks:
        task.join()
    return taken[0] is None


CANARIES = [_lost_update, _assigned_too_late, _timeout_taken_for_never, _first_come_first_served]


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.__name__.strip("_"))
def test_a_fault_in_the_order_of_steps_is_found_and_not_by_every_seed(canary: Callable[[Ports], bool]) -> None:
    found = []
    for seed in range(100):
        with SimulatedPorts(seed) as ports:
            found += [seed] if canary(ports) else []
    assert 0 < len(found) < 100, found


# ----------------------------------------------------------------------------------------- who can never go on


def _crossed_locks(ports: Ports) -> None:
    first, second = ports.wait.lock(), ports.wait.lock()

    def both(one: Any, other: Any) -> None:
        with one:
            ports.clock.sleep(1)
            with other:
                raise AssertionError("unreachable")

    tasks = [ports.spawn(both, first, second, name="left"), ports.spawn(both, second, first, name="right")]
    for task in tasks:
        task.join()


def _dead_helper(ports: Ports) -> None:
    flag = ports.wait.event()

    def help_out() -> None:
        raise KeyError("lost")

    ports.spawn(help_out, name="helper")
    flag.wait()


def _spin(ports: Ports) -> None:
    flag = ports.wait.event()

    def look() -> None:
        while not flag.is_set():
            pass

    ports.spawn(look, name="spinner").join()


def _go_round(ports: Ports) -> None:
    """A watch that looks now and then hides that nothing else can happen."""

    def watch() -> None:
        while True:
            ports.clock.sleep(0.25)

    ports.spawn(watch, name="watch")
    ports.wait.event().wait()


NEVER: dict[str, tuple[Callable[[Ports], None], str, list[str]]] = {
    "crossed locks": (_crossed_locks, "simulation.deadlock", ["left-", "held by right-", "test_ports_simulated.py:"]),
    "a helper that died": (_dead_helper, "simulation.deadlock", ["main waits for event-", "helper-", "KeyError"]),
    "a token nobody sets": (lambda ports: ports.clock.sleep(math.inf), "simulation.deadlock", ["main waits for sleep"]),
    "a loop without waiting": (_spin, "simulation.livelock", ["spinner-"]),
    "a watch that goes on for ever": (_go_round, "simulation.livelock", ["main waits for event-", "watch-"]),
}


@pytest.mark.parametrize(("never", "code", "names"), NEVER.values(), ids=NEVER)
def test_a_wait_that_never_ends_is_an_error_that_names_who_waits(
    never: Callable[[Ports], None], code: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_STEPS_AT_ONE_INSTANT", "_STEPS_WITHOUT_MAIN"):
        monkeypatch.setattr(f"harness_core.shell.ports.baton.{name}", 2_000)
    with SimulatedPorts(2) as ports, pytest.raises(InternalError) as caught:
        never(ports)
    assert caught.value.code == code
    assert [name for name in names if name not in str(caught.value)] == []
    assert caught.value.facts["last_steps"]


def test_after_a_deadlock_the_main_participant_can_still_clear_up() -> None:
    with SimulatedPorts(4) as ports:
        flag = ports.wait.event()
        task = ports.spawn(flag.wait)
        with pytest.raises(InternalError):
            ports.wait.event().wait()
        flag.set()
        assert task.join()


def test_a_block_on_what_is_no_port_is_dumped_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    real, over = threading.Lock(), threading.Event()
    crowd = [threading.Thread(target=over.wait) for _ in range(120)]  # who stands among many is told of too
    with SimulatedPorts(3, watchdog_seconds=0.05) as ports:

        def hold() -> None:
            with real:
                ports.clock.sleep(10)

        def want() -> None:
            ports.clock.sleep(5)
            with real:
                pass

        tasks = [ports.spawn(hold, name="holder"), ports.spawn(want, name="wanter")]
        for one in crowd:
            one.start()
        with pytest.raises(InternalError, match=r"wanter-\d+ blocks on what is no port") as caught:
            tasks[1].join()
        assert caught.value.code == "simulation.blocked"
    over.set()
    for one in crowd:
        one.join()
    dumped = capfd.readouterr().err
    assert "simulation: no port call for 0.05 s" in dumped
    assert " in want" in dumped


def test_a_thread_from_outside_takes_no_part() -> None:
    with SimulatedPorts(0) as ports:
        errors = list[InternalError]()

        def meddle() -> None:
            try:
                ports.clock.now()
            except InternalError as error:
                errors.append(error)

        thread = threading.Thread(target=meddle, name="meddler")
        thread.start()
        thread.join()
        assert [error.code for error in errors] == ["simulation.stranger"]
        assert ports.clock.now() == START


# ------------------------------------------------------------------------------------------------------- close


def test_close_unwinds_whoever_still_waits() -> None:
    ended, ports = list[str](), SimulatedPorts(6)
    lock = ports.wait.lock()

    def wait(name: str, way: Callable[[], object]) -> None:
        try:
            way()
        finally:
            ended.append(name)
            ports.clock.now()  # clearing up may still call what does not wait
            ended.append(f"{name} cleared up")

    lock.acquire()
    ways: dict[str, Callable[[], object]] = {
        "event": ports.wait.event().wait,
        "queue": ports.wait.queue().get,
        "lock": lock.acquire,
        "sleep": lambda: ports.clock.sleep(math.inf),
    }
    tasks = [ports.spawn(wait, name, way) for name, way in ways.items()]
    ports.clock.sleep(1)
    ports.close()
    ports.close()
    assert sorted(ended) == sorted([*ways, *(f"{name} cleared up" for name in ways)])
    assert all(task.done() for task in tasks)
    lock.release()  # the main participant may clear up too, but not wait any more
    with pytest.raises(InternalError):
        ports.wait.event().wait()


@pytest.mark.usefixtures("usual_signals")
def test_an_interrupted_main_participant_can_close() -> None:
    """Ctrl-C while another one runs."""
    ended, ports = list[str](), SimulatedPorts(7)

    def work() -> None:
        try:
            while True:
                ports.clock.monotonic()
                time.sleep(0.001)
        finally:
            ended.append("work")

    ports.spawn(work)
    timer = threading.Timer(0.1, _interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ports.wait.event().wait()
    timer.join()
    ports.close()
    assert ended == ["work"]


def _interrupt_main() -> None:
    import signal

    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


# ------------------------------------------------------------------------------------------ files and processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old").write_text("old")
    return tmp_path


def _with_files(seed: int, folder: Path) -> list[Any]:
    log = list[Any]()
    with SimulatedPorts(seed) as ports:
        files = ports.files(folder)

        def write(name: str) -> None:
            for turn in range(2):
                files.write_bytes(name, f"{name} {turn}".encode())
                facts = files.facts(name)
                assert facts is not None
                log.append((name, turn, facts.modified_ns, files.read_bytes(name)))

        for task in [ports.spawn(write, name) for name in ("a", "b")]:
            task.join()
        log += [(name, facts.modified_ns) for name, facts in files.walk()]
        log.append(ports.clock.monotonic())
    return log


def test_files_are_real_their_calls_switch_and_their_times_are_virtual(folder: Path) -> None:
    logs = [_with_files(seed, folder) for seed in range(8)]
    assert logs == [_with_files(seed, folder) for seed in range(8)]
    assert len({tuple(entry[:2] for entry in log[:4]) for log in logs}) > 1
    start_ns = int(START.timestamp() * 1e9)
    assert all(("old", start_ns) in log for log in logs)
    assert any(log[-1] > 0 for log in logs)  # some seeds let files take time
    assert (folder / "a").read_text() == "a 1"


def test_processes_are_real_and_take_virtual_time(folder: Path) -> None:
    durations = set()
    for seed in range(6):
        with SimulatedPorts(seed) as ports:
            done = ports.processes.run(["cat", "old"], cwd=str(folder))
            assert (done.returncode, done.stdout) == (0, b"old")
            durations.add(ports.clock.monotonic())
    assert len(durations) > 1
    with SimulatedPorts(0) as ports:
        assert ports.processes.run(["sleep", "10"], timeout_seconds=0.05).timed_out
        assert ports.clock.monotonic() >= 0.05
        token = ports.wait.token()
        token.cancel("no")
        with pytest.raises(Cancelled):
            ports.processes.run(["true"], cancel=token)
