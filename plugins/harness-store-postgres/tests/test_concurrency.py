"""Many at once: processes and threads on one log, a process that is killed, and how commits are shared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import StoreError
from harness_store_postgres.log import PostgresStore
from harness_store_postgres.transaction import Transaction

HERE = Path(__file__).parent
PROCESSES, EVENTS = 8, 150


def start(schema: str, stream: str, count: int, mode: str) -> subprocess.Popen[str]:
    """A process of its own that appends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(HERE / "child.py"), schema, stream, str(count), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


# --------------------------------------------------------------------------------------------- processes


@pytest.mark.req("B-89")
@pytest.mark.inv("I-3")
@pytest.mark.inv("I-9")
def test_eight_processes_append_at_once_to_a_log_that_the_first_of_them_makes(opened: Any, schema: str) -> None:
    names = [f"session:{number % 3}" for number in range(PROCESSES)]
    children = [start(schema, name, EVENTS, "NORMAL") for name in names]
    ends = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES
    store, positions = opened(), []
    for name in set(names):
        acknowledged = sorted(int(seq) for own, end in zip(names, ends, strict=True) if own == name for seq in end)
        events = proved(store, name)
        assert acknowledged == [event.seq for event in events] == list(range(1, len(events) + 1))
        positions.append([event.position for event in events])
    assert all(own == sorted(own) for own in positions)
    assert sorted(position for own in positions for position in own) == list(range(1, PROCESSES * EVENTS + 1))


@pytest.mark.inv("I-1")
@pytest.mark.inv("I-3")
def test_what_a_killed_process_acknowledged_is_there(opened: Any, schema: str) -> None:
    last = 0
    for kill_after in (1, 40, 7):
        child = start(schema, STREAM, 100_000, "FULL")
        assert child.stdout is not None
        seqs = [int(child.stdout.readline()) for _ in range(kill_after)]
        child.kill()
        told = child.communicate()[0].splitlines(keepends=True)
        seqs += [int(line) for line in told if line.endswith("\n")]
        store = opened()
        # Its last statement may still be on its way in the server; the lock of the log is free when that has ended.
        store.append(STREAM, [draft()], expected_seq=None)
        stored = [event.seq for event in proved(store, STREAM)]
        assert seqs == list(range(last + 1, last + 1 + len(seqs)))
        assert stored == list(range(1, len(stored) + 1))
        assert 1 <= len(stored) - seqs[-1] <= 2  # ours, and at most the one that was committed and not yet told
        last = len(stored)


# ----------------------------------------------------------------------------------------------- threads


class Gathering:
    """Holds the first transaction open until others wait behind it."""

    def __init__(self, host: FakeHost, store: PostgresStore) -> None:
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


@pytest.fixture
def store(opened: Any) -> PostgresStore:
    made: PostgresStore = opened()
    return made


@pytest.mark.inv("I-9")
def test_all_who_wait_share_one_commit(host: FakeHost, store: PostgresStore) -> None:
    Gathering(host, store).run(20, lambda number: store.append(f"session:{number}", [draft(number)], expected_seq=0))
    assert store.change_counter() == 2
    assert len(store.streams()) == 21
    assert [proved(store, f"session:{number}")[0].position for number in range(21)] == list(range(1, 22))


def test_in_a_shared_commit_each_gets_its_own_answer(host: FakeHost, store: PostgresStore) -> None:
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
        8: lambda: store.put_snapshot(STREAM, 1, "m1", b"made"),
        9: lambda: store.put_snapshot(STREAM, 2**70, "m1", b"of no event"),
    }
    gathering = Gathering(host, store)
    gathering.run(9, lambda number: appends[number]())
    refused = {1: "store.conflict", 2: "store.taken", 5: "store.conflict", 9: "store.malformed"}
    assert dict(gathering.problems) == refused
    assert [json.loads(event.payload)["number"] for event in proved(store, STREAM)] == [0, 4, 7]
    assert store.blob(sha256(b"content").hexdigest()) == b"content"
    assert [row.command_id for row in store.take("s")] == ["c2"]
    assert list(store.summaries()) == [(STREAM, b'{"n":7}')]
    assert store.snapshot(STREAM, "m1") == (1, b"made")
    for wrong in ({"summary": text}, {"taken": {7: 0}}):
        with pytest.raises(StoreError) as caught:
            store.append(OTHER, [draft(9)], expected_seq=None, **wrong)
        assert caught.value.code == "store.malformed"
    with pytest.raises(StoreError) as caught:
        store.append(OTHER, [draft(8)._replace(payload=text)], expected_seq=None)
    assert (caught.value.code, list(store.read(OTHER))) == ("store.malformed", [])


def test_what_the_server_refuses_of_one_is_written_of_the_others(
    host: FakeHost, store: PostgresStore, log: Any
) -> None:
    store.append("session:2", [draft()], expected_seq=0)
    log("UPDATE streams SET seq = 5 WHERE name = 'session:2'")  # its next event would leave a gap
    log("INSERT INTO events VALUES (99, 1, 6, NULL, NULL, '', '', '')")
    gathering = Gathering(host, store)
    gathering.run(3, lambda number: store.append(f"session:{number}", [draft(number)], expected_seq=None))
    assert gathering.problems == [(2, "store.corrupt")]
    assert [len(proved(store, f"session:{number}")) for number in (0, 1, 3)] == [1, 1, 1]


def test_a_shared_commit_that_comes_to_no_end_is_acknowledged_to_none(host: FakeHost, store: PostgresStore) -> None:
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


@pytest.mark.inv("I-1")
def test_of_a_commit_that_a_signal_interrupts_nothing_is_claimed(
    host: FakeHost, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Transaction.end

    def interrupted(transaction: Transaction) -> None:
        end(transaction)
        if transaction.position == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "end", interrupted)

    def append(number: int) -> None:
        with suppress(KeyboardInterrupt):
            store.append(f"session:{number}", [draft()], expected_seq=0)

    gathering = Gathering(host, store)
    gathering.run(2, append)
    assert gathering.problems == [(2, "store.in_doubt")]
    assert store.append("session:2", [draft()], expected_seq=None)[0].seq == 2  # it had been written, as it happens


def test_a_store_is_closed_after_what_waits_was_written(host: FakeHost, store: PostgresStore, opened: Any) -> None:
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
    assert len(proved(opened(), OTHER)) == 3


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
def test_whoever_is_interrupted_while_others_write_holds_nobody_up_and_writes_nothing(opened: Any, comes: bool) -> None:
    store = opened()
    writer = store._writer
    new_lock, writer._new_lock = writer._new_lock, lambda: Interrupted(store, comes)
    writer._leading = True  # somebody writes
    with pytest.raises(KeyboardInterrupt):
        store.append(STREAM, [draft(1)], expected_seq=0)
    writer._new_lock = new_lock
    if not comes:
        writer._hand_over()  # who wrote has ended
    assert store.append(STREAM, [draft(2)], expected_seq=0)[0].seq == 1
    assert [event.seq for event in proved(store, STREAM)] == [1]
