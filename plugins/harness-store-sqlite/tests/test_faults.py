"""Disks that fail, processes that are killed: nothing acknowledged is lost, nothing half written is seen."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from peewee import SqliteDatabase

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved, seen
from harness_hookspecs.errors import StoreError
from harness_hookspecs.store import Store
from harness_store_sqlite.log import SqliteStore
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

FULL = Settings(synchronous="FULL")
CONTENT = b"content " * 400
DIGEST = sha256(CONTENT).hexdigest()


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def work(store: Store, acknowledged: dict[str, int]) -> None:
    """One of each kind of write; notes what was acknowledged."""
    for number in range(1, 4):
        store.append(STREAM, [draft(number), draft(number)], expected_seq=2 * number - 2)
        acknowledged[STREAM] = 2 * number
    store.append(OTHER, [draft(1)], expected_seq=0, blobs={DIGEST: CONTENT}, summary=b"{}")
    acknowledged[OTHER] = 1
    store.post("s", "c1", b"{}")
    acknowledged["posted"] = 1
    store.append(OTHER, [draft(number) for number in range(100)], expected_seq=1, taken={"c1": 0})
    acknowledged[OTHER] = 101


def attempted(store: Store, acknowledged: dict[str, int]) -> str | None:
    """Do the work; gives the code of the error that ended it."""
    try:
        work(store, acknowledged)
    except StoreError as problem:
        return problem.code
    return None


def stored(store: Store) -> dict[str, int]:
    """The same of what is there, after proving that it fits together."""
    found = {stream: len(proved(store, stream)) for stream in store.streams()}
    row = store.posted("c1")
    if row is not None:
        found["posted"] = 1
    assert (row.taken_seq if row else None) == (2 if found.get(OTHER) == 101 else None)
    if OTHER in found:
        assert store.blob(DIGEST) == CONTENT
        assert list(store.summaries()) == [(OTHER, b"{}")]
    return found


class Fault(NamedTuple):
    """How a disk fails, and the code of the error that says so."""

    error: type[apsw.Error]
    code: str
    on: tuple[str, ...] = ("write", "truncate", "sync")
    torn: bool = False


FAULTS = {
    "full": Fault(apsw.FullError, "store.full"),
    "io": Fault(apsw.IOError, "store.io"),
    "torn": Fault(apsw.IOError, "store.io", on=("write",), torn=True),
    "sync": Fault(apsw.IOError, "store.io", on=("sync",)),
    "readonly": Fault(apsw.ReadOnlyError, "store.readonly"),
}
CHECKPOINT_PAGES = [8, 1, 3, 20, 1000] if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else [8]
"""After how many pages the log is folded into the file, which gives each workload other operations."""


def operations(folder: Path, disk: Any) -> list[str]:
    """The kinds of the operations of one life of a store: it is made, worked with and closed."""
    store = open_store(FULL, FakeHost(folder), database=disk.database)
    work(store, {})
    store.close()
    return [step.kind for step in disk.trace if step.kind in ("write", "truncate", "sync")]


def opened(host: FakeHost, disk: Any, expected: str) -> SqliteStore | None:
    """The store; ``None`` where the disk failed while it was made, which leaves no half of one."""
    try:
        return open_store(FULL, host, database=disk.database)
    except StoreError as problem:
        code = problem.code
    assert code == expected
    assert [file.name for file in host.data_dir.iterdir()] in ([], ["harness.db"])
    return None


def lived(host: FakeHost, disk: Any, expected: str) -> dict[str, int]:
    """One life on a disk that fails somewhere in it; gives what is there afterwards."""
    store = opened(host, disk, expected)
    if store is None:
        return {}
    acknowledged: dict[str, int] = {}
    code = attempted(store, acknowledged)
    assert code in {None, expected}
    assert {name: stored(store).get(name, 0) for name in acknowledged} == acknowledged
    if disk.operations >= disk.fails_at:  # else it is the closing that fails
        disk.fails_at = None
        assert stored(store) == acknowledged
        store.append("store:main", [draft()], expected_seq=None)  # the connection goes on
        acknowledged["store:main"] = 1
    store.close()
    assert disk.fails_at is None or disk.operations >= disk.fails_at
    return acknowledged


@pytest.mark.gate("G3")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the checkpoint of a close
@pytest.mark.inv("I-1")
@pytest.mark.inv("I-2")
@pytest.mark.inv("I-14")
@pytest.mark.parametrize("pages", CHECKPOINT_PAGES)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_disk_that_fails_at_any_operation_is_named_loses_nothing_and_is_used_again_when_it_is_well(
    tmp_path: Path, disk: Any, kind: str, lasting: bool, pages: int, request: pytest.FixtureRequest
) -> None:
    fault = FAULTS[kind]
    disk.checkpoint_pages = pages
    kinds = operations(tmp_path / "counted", disk)
    points = [number for number, kind in enumerate(kinds, start=1) if kind in fault.on]
    disk.error, disk.fails_on, disk.torn, disk.lasting = fault.error, fault.on, fault.torn, lasting
    for number in points:
        host = FakeHost(tmp_path / str(number))
        disk.fails_at = disk.operations + number
        expected = lived(host, disk, fault.code)
        disk.fails_at = None
        again = open_store(FULL, host, database=disk.database)
        assert stored(again) == expected, number
        assert again._readers.first("PRAGMA integrity_check") == ("ok",)
        again.append(STREAM, [draft()], expected_seq=expected.get(STREAM, 0))
        again.close()
    request.node.user_properties.append(("points", len(points)))
    assert len(points) > 10


@pytest.mark.inv("I-1")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from_then_on"])
def test_a_log_whose_room_fails_loses_nothing_and_goes_on(tmp_path: Path, disk: Any, lasting: bool) -> None:
    disk.lasting = lasting
    acknowledged = 0
    for number in (*range(1, 30), 500, 1000, 1500):  # operations of the append that room is made after, and of the room
        host = FakeHost(tmp_path / str(number))
        store = open_store(FULL, host, database=disk.database)
        for seq in range(31):
            store.append(STREAM, [draft(seq)], expected_seq=seq)
        disk.fails_at = disk.operations + number
        acknowledged = 31
        with suppress(StoreError):
            acknowledged += len(store.append(STREAM, [draft(31)], expected_seq=31))
        disk.fails_at = None
        for seq in range(acknowledged, 40):
            store.append(STREAM, [draft(seq)], expected_seq=seq)
        store.close()
        again = open_store(FULL, host, database=disk.database)
        assert len(proved(again, STREAM)) == 40
        assert again._readers.first("PRAGMA integrity_check") == ("ok",)
        assert again._readers.first("SELECT count(*) FROM blobs") == (0,)
        again.close()
    assert acknowledged == 32  # what failed last was the room, and the append stands


def test_a_full_disk_is_named_and_room_makes_it_go_on(host: FakeHost) -> None:
    def small(uri: str) -> Any:
        return SqliteDatabase(
            uri, uri=True, thread_safe=False, check_same_thread=False, pragmas={"max_page_count": 60}
        )

    def fill() -> None:
        for number in range(1000):
            store.append(STREAM, [draft(number, text="x" * 900), draft(number)], expected_seq=2 * number)

    store = open_store(Settings(synchronous="NORMAL"), host, database=small)
    with pytest.raises(StoreError) as caught:
        fill()
    before, count = seen(store), len(proved(store, STREAM))
    assert caught.value.code == "store.full"
    assert "make room, then resume" in (caught.value.hint or "")
    assert count > 10
    assert count % 2 == 0
    large = host.ports.random.bytes(100_000)
    for options in ({"blobs": {sha256(large).hexdigest(): large}}, {"summary": large}):
        with pytest.raises(StoreError) as caught:
            store.append(STREAM, [draft(text="x" * 9000)], expected_seq=count, **options)
        assert caught.value.code == "store.full"
        assert seen(store) == before
    store._writer._connection.execute("PRAGMA max_page_count = 100000")
    assert store.append(STREAM, [draft()], expected_seq=count)[0].seq == count + 1
    store.close()


def test_a_log_that_may_only_be_read_says_so(host: FakeHost) -> None:
    store = open_store(FULL, host)
    store.append(STREAM, [draft()], expected_seq=0)
    store._writer._connection.execute("PRAGMA query_only = ON")
    for write in (
        lambda: store.append(STREAM, [draft()], expected_seq=1),
        lambda: store.append(OTHER, [draft()], expected_seq=0),
        lambda: store.put_blob(b"a"),
        lambda: store.post("s", "c", b"{}"),
    ):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.code == "store.readonly"
    assert len(proved(store, STREAM)) == 1
    store.close()


@pytest.mark.parametrize(
    "look", [lambda store: store.change_counter(), lambda store: list(store.read(STREAM))], ids=["watch", "read"]
)
def test_a_process_that_may_open_no_further_file_is_told_so_and_goes_on_when_it_may(
    host: FakeHost, look: Callable[[Store], Any]
) -> None:
    store = open_store(FULL, host)
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, allowed[1]))
    try:
        with pytest.raises(StoreError, match="the log cannot be opened: Too many open files") as caught:
            look(store)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert (caught.value.code, caught.value.hint) == ("store.io", None)
    look(store)
    store.close()
