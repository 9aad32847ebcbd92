"""Many at once: processes and threads on one log, a process that is killed, and how commits are shared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import pytest
from peewee import SqliteDatabase

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import StoreConflict, StoreError
from harness_store_sqlite.log import SqliteStore
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

HERE = Path(__file__).parent
CASES = {
    case["id"]: case
    for line in (HERE.parents[2] / "tests" / "cases" / "store.jsonl").read_text(encoding="utf-8").splitlines()
    for case in [json.loads(line)]
}
NORMAL = Settings(synchronous="NORMAL")
PROCESSES, EVENTS = 8, 1000


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def store(host: FakeHost) -> Iterator[SqliteStore]:
    opened = open_store(NORMAL, host)
    yield opened
    opened.close()


def start(folder: Path, stream: str, count: int, mode: str) -> subprocess.Popen[str]:
    """A process of its own that appends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(HERE / "child.py"), str(folder), stream, str(count), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def lines_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


# --------------------------------------------------------------------------------------------- processes


@pytest.mark.gate("G6")
@pytest.mark.req("B-89")
@pytest.mark.inv("I-3")
@pytest.mark.inv("I-4")
@pytest.mark.parametrize("streams", [1, PROCESSES], ids=["to_one_stream", "each_to_its_own"])
def test_eight_processes_append_a_thousand_events_each(
    tmp_path: Path, store: SqliteStore, streams: int, record_property: Any
) -> None:
    assert "No command fails on lock contention" in CASES["BR-015"]["right"]
    names = [f"session:{number % streams}" for number in range(PROCESSES)]
    children = [start(tmp_path, name, EVENTS, "NORMAL") for name in names]
    while any(child.poll() is None for child in children):
        with suppress(subprocess.TimeoutExpired):
            children[-1].wait(0.02)
        assert store.head(names[0]).seq >= 0  # a reader beside them meets no lock either
        assert store.change_counter() >= 0
    ends = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES
    acknowledged = {name: sorted(int(seq) for n, end in zip(names, ends, strict=True) if n == name for seq in end[:-1])
                    for name in names}
    for name in set(names):
        events = proved(store, name)
        assert acknowledged[name] == [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.position for event in events] == sorted(event.position for event in events)
    assert sum(map(len, acknowledged.values())) == PROCESSES * EVENTS
    record_property("appends", PROCESSES * EVENTS)
    record_property("append_p99_seconds", max(json.loads(end[-1])["p99_seconds"] for end in ends))  # the aim is 0.05


@pytest.mark.inv("I-1")
@pytest.mark.inv("I-3")
def test_what_a_killed_process_acknowledged_is_there(tmp_path: Path, host: FakeHost) -> None:
    last = 0
    for kill_after in (1, 7, 40, 3):
        child = start(tmp_path, STREAM, 100_000, "FULL")
        seqs = [int(lines_of(child).readline()) for _ in range(kill_after)]
        child.kill()
        child.wait()
        told = child.communicate()[0].splitlines(keepends=True)
        seqs += [int(line) for line in told if line.endswith("\n")]
        store = open_store(NORMAL, host)
        stored = [event.seq for event in proved(store, STREAM)]
        assert seqs == list(range(last + 1, last + 1 + len(seqs)))
        assert stored == list(range(1, len(stored) + 1))
        assert 0 <= len(stored) - seqs[-1] <= 1  # at most the one that was committed and not yet told
        store.append(STREAM, [draft()], expected_seq=len(stored))
        store.close()
        last = len(stored) + 1


@pytest.mark.inv("I-5")
def test_a_key_is_known_to_the_next_process(host: FakeHost) -> None:
    store = open_store(NORMAL, host)
    first = store.append(STREAM, [draft(1, key="k"), draft(2)], expected_seq=0)
    store.close()
    store = open_store(NORMAL, host)
    assert store.append(STREAM, [draft(1, key="k"), draft(9)], expected_seq=0) == first
    with pytest.raises(StoreConflict) as caught:
        store.append(STREAM, [draft(3, key="k"), draft(2)], expected_seq=2)
    assert caught.value.code == "store.key_conflict"
    assert proved(store, STREAM) == list(first)
    store.close()


def test_a_head_that_another_process_moved_is_met_as_it_is_now(host: FakeHost, store: SqliteStore) -> None:
    other = open_store(NORMAL, host)
    content = {sha256(b"c").hexdigest(): b"c"}
    for seq in (0, 3):
        store.append(STREAM, [draft(seq), draft(seq + 1)], expected_seq=seq, blobs=content)
        other.append(STREAM, [draft(seq + 2)], expected_seq=seq + 2, blobs=content)
        with pytest.raises(StoreConflict) as caught:
            store.append(STREAM, [draft(9)], expected_seq=seq + 2, blobs=content)
        assert caught.value.facts == {"head": seq + 3, "expected": seq + 2}
    assert store.append(STREAM, [draft(6)], expected_seq=None, blobs=content)[0].seq == 7
    assert [event.seq for event in proved(store, STREAM)] == [1, 2, 3, 4, 5, 6, 7]
    other.close()


def test_a_commit_of_events_and_contents_looks_up_no_head_that_it_knows(host: FakeHost) -> None:
    said: list[str] = []

    class Traced(SqliteDatabase):
        def _initialize_connection(self, connection: Any) -> None:
            connection.set_trace_callback(said.append)

    store = open_store(NORMAL, host, database=lambda uri: Traced(uri, uri=True, thread_safe=False))
    for seq in range(3):
        said.clear()
        content = str(seq).encode()
        store.append(STREAM, [draft(seq)], expected_seq=seq, blobs={sha256(content).hexdigest(): content})
    assert said[0] == "BEGIN IMMEDIATE" and said[-1] == "COMMIT"
    assert not [text for text in said if text.startswith("SELECT")]
    store.close()


@pytest.mark.parametrize("opener", ["threads", "processes"])
def test_a_store_that_many_make_at_once_is_made_once_and_whole(tmp_path: Path, opener: str) -> None:
    many = 8
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        host = FakeHost(folder)
        streams = [f"session:{number}" for number in range(many)]
        if opener == "threads":
            together = threading.Barrier(many)

            def make(stream: str, host: FakeHost = host, together: threading.Barrier = together) -> None:
                together.wait()
                store = open_store(NORMAL, host)
                store.append(stream, [draft()], expected_seq=0)
                store.close()

            tasks = [host.ports.spawn(make, stream) for stream in streams]
            assert all(task.join(60) for task in tasks)
        else:
            children = [start(folder, stream, 1, "NORMAL") for stream in streams]
            assert [child.communicate()[0].splitlines()[0] for child in children] == ["1"] * many
        store = open_store(NORMAL, host)
        assert sorted(store.streams()) == streams
        store.close()
        assert [file.name for file in host.data_dir.iterdir()] == ["harness.db"]


# ----------------------------------------------------------------------------------------------- threads


@pytest.mark.inv("I-2")
@pytest.mark.inv("I-3")
def test_branches_that_append_at_the_same_moment_get_numbers_of_their_own(host: FakeHost, store: SqliteStore) -> None:
    assert "exactly 1..n" in CASES["BR-004"]["right"]
    branches, rounds, size = 16, 50, 3

    def branch(number: int) -> None:
        for step in range(rounds):
            events = store.append(STREAM, [draft(number, step=step)] * size, expected_seq=None)
            assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + size))

    tasks = [host.ports.spawn(branch, number) for number in range(branches)]
    assert all(task.join(60) for task in tasks)
    payloads = [event.payload for event in proved(store, STREAM)]
    assert len(payloads) == branches * rounds * size
    assert all(payloads[at] == payloads[at + 1] == payloads[at + 2] for at in range(0, len(payloads), size))


class Gathering:
    """Holds the first transaction open until others wait behind it."""

    def __init__(self, host: FakeHost, store: SqliteStore) -> None:
        self.host, self.store = host, store
        self.inside, self.go_on = host.ports.wait.event(), host.ports.wait.event()
        self.problems: list[tuple[int, str]] = []

    def run(self, count: int, append: Callable[[int], object]) -> None:
        """Let ``append(0)`` lead, and ``append(1..count)`` wait meanwhile."""

        def noted(number: int) -> None:
            try:
                append(number)
            except StoreError as problem:
                self.problems.append((number, problem.code))

        self.host.ports.at["append.inside"] = self._hold
        tasks = [self.host.ports.spawn(noted, 0)]
        assert self.inside.wait(10)
        self.host.ports.at.clear()
        for number in range(1, count + 1):
            tasks.append(self.host.ports.spawn(noted, number))
            while len(self.store._writer._waiting) < number:
                pass  # they queue up one by one, so that the order is known
        self.go_on.set()
        assert all(task.join(10) for task in tasks)

    def _hold(self) -> None:
        self.inside.set()
        assert self.go_on.wait(10)


def commits(host: FakeHost) -> int:
    return host.ports.reached.count("append.inside")


@pytest.mark.inv("I-9")
def test_all_who_wait_share_one_commit(host: FakeHost, store: SqliteStore) -> None:
    Gathering(host, store).run(20, lambda number: store.append(f"session:{number}", [draft(number)], expected_seq=0))
    assert commits(host) == 2
    assert len(store.streams()) == 21
    assert [proved(store, f"session:{number}")[0].position for number in range(21)] == list(range(1, 22))


def test_in_a_shared_commit_each_gets_its_own_answer(host: FakeHost, store: SqliteStore) -> None:
    store.post("s", "c1", b"{}")

    text: Any = "no bytes"
    appends: dict[int, Callable[[], object]] = {
        0: lambda: store.append(STREAM, [draft(0)], expected_seq=None, summary=b"{}"),
        1: lambda: store.append(STREAM, [draft(1)], expected_seq=7),
        2: lambda: store.append(STREAM, [draft(2)], expected_seq=1, taken={"none": 0}),
        3: lambda: store.put_blob(b"content"),
        4: lambda: store.append(STREAM, [draft(4)], expected_seq=1, taken={"c1": 0}),
        5: lambda: store.append(STREAM, [draft(5)], expected_seq=1),
        6: lambda: store.post("s", "c2", b"{}"),
        7: lambda: store.append(STREAM, [draft(7)], expected_seq=None, summary=b'{"n":7}'),
        8: lambda: store.append(OTHER, [draft(8)._replace(payload=text)], expected_seq=None),
        9: lambda: store.append(OTHER, [draft(9)], expected_seq=None, summary=text),
    }
    gathering = Gathering(host, store)
    gathering.run(9, lambda number: appends[number]())
    assert sorted(gathering.problems) == [
        (1, "store.conflict"),
        (2, "store.taken"),
        (5, "store.conflict"),
        (8, "store.malformed"),
        (9, "store.malformed"),
    ]
    assert [json.loads(event.payload)["number"] for event in proved(store, STREAM)] == [0, 4, 7]
    assert store.blob(sha256(b"content").hexdigest()) == b"content"
    assert [row.command_id for row in store.take("s")] == ["c2"]
    assert list(store.summaries()) == [(STREAM, b'{"n":7}')]
    assert list(store.read(OTHER)) == []


def test_a_shared_commit_that_fails_fails_for_all_and_for_none_after_it(host: FakeHost, store: SqliteStore) -> None:
    gathering = Gathering(host, store)

    class Ended(Exception):
        pass

    def end() -> None:
        raise Ended

    def append(number: int) -> None:
        if number == 3:
            host.ports.at["append.inside"] = end
        with suppress(Ended):
            store.append(f"session:{number}", [draft()], expected_seq=0)

    gathering.run(3, append)
    assert sorted(gathering.problems) == [(2, "store.io"), (3, "store.io")]  # the first of them led
    assert list(store.streams()) == ["session:0"]
    host.ports.at.clear()
    assert store.append("session:1", [draft()], expected_seq=0)[0].position == 2


def test_a_store_is_closed_after_what_waits_was_written(host: FakeHost, store: SqliteStore) -> None:
    def act(number: int) -> None:
        if number < 3:
            store.append(OTHER, [draft(number)], expected_seq=None)
        else:
            store.close()

    gathering = Gathering(host, store)
    gathering.run(3, act)
    assert gathering.problems == []
    with pytest.raises(StoreError):
        store.head(OTHER)
    again = open_store(NORMAL, host)
    assert len(proved(again, OTHER)) == 3
    again.close()


class Seen:
    """A lock that tells whenever it is let go."""

    def __init__(self, told: Callable[[], None]) -> None:
        self._lock, self._told = threading.Lock(), told

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._told()
        self._lock.release()


def test_whoever_is_to_lead_next_knows_it_before_anybody_can_leave(store: SqliteStore) -> None:
    writer = store._writer
    led: list[bool] = []

    def told() -> None:
        if over.is_set() and writer._waiting:  # the first leader hands over; a signal may make the next one leave now
            led.append(writer._waiting[0].leads)

    over, laid_down, begun, go = threading.Event(), threading.Event(), threading.Event(), threading.Event()

    class Slow:
        def alone(self, connection: Any, places: Any) -> bool:
            begun.set()
            go.wait(10)
            over.set()
            return True

        def within(self, transaction: Any) -> bool:
            return True

    writer._mutex = Seen(told)  # type: ignore[assignment]
    first = threading.Thread(target=writer.run, args=(Slow(),))
    first.start()
    assert begun.wait(10)
    usual = writer._queue

    def queue(work: Any) -> Any:
        job = usual(work)
        laid_down.set()
        return job

    writer._queue = queue  # type: ignore[method-assign]
    second = threading.Thread(target=writer.run, args=(Slow(),))
    second.start()
    assert laid_down.wait(10)
    go.set()
    first.join(10)
    second.join(10)
    assert led and led[0]


# ------------------------------------------------------------------------------------------- interruptions


class Interrupted:
    """A turn whose wait is broken off by a signal, at once or in the moment in which the turn has come."""

    def __init__(self, store: Any, comes: bool) -> None:
        self._writer, self._comes, self._waits = store._writer, comes, False

    def acquire(self) -> None:
        if self._waits:
            if self._comes:
                self._writer._hand_over()
            raise KeyboardInterrupt
        self._waits = True

    def release(self) -> None:
        """Whoever waits has gone."""


@pytest.mark.inv("I-38")
@pytest.mark.parametrize("comes", [False, True], ids=["while it waits", "as its turn comes"])
def test_whoever_is_interrupted_while_others_write_holds_nobody_up_and_writes_nothing(
    store: SqliteStore, comes: bool
) -> None:
    writer = store._writer
    new_lock, writer._new_lock = writer._new_lock, lambda: Interrupted(store, comes)  # type: ignore[assignment,return-value]
    writer._leading = True  # somebody writes
    with pytest.raises(KeyboardInterrupt):
        store.append(STREAM, [draft(1)], expected_seq=0)
    writer._new_lock = new_lock
    if not comes:
        writer._hand_over()  # who wrote has ended
    assert store.append(STREAM, [draft(2)], expected_seq=0)[0].seq == 1
    assert [event.seq for event in proved(store, STREAM)] == [1]
