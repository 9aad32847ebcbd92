"""Disks that fail, processes that are killed: nothing acknowledged is lost, nothing half written is seen."""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest
from peewee import SqliteDatabase

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved, seen
from harness_hookspecs.errors import StoreError
from harness_hookspecs.store import Store
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


def operations(folder: Path, disk: Any) -> int:
    """How many operations the work takes, the opening and closing apart."""
    host = FakeHost(folder / "counted")
    store = open_store(FULL, host, database=disk.database)
    before: int = disk.operations
    work(store, {})
    after: int = disk.operations
    store.close()
    return after - before


@pytest.mark.inv("I-1")
@pytest.mark.inv("I-2")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError], ids=["full", "io"])
def test_a_disk_that_fails_at_any_write_loses_nothing_acknowledged(
    tmp_path: Path, disk: Any, error: type[apsw.Error], lasting: bool
) -> None:
    disk.error, disk.lasting = error, lasting
    expected = {apsw.FullError: "store.full", apsw.IOError: "store.io"}[error]
    count = operations(tmp_path, disk)
    assert count > 30
    for number in range(1, count + 1):
        host = FakeHost(tmp_path / str(number))
        store = open_store(FULL, host, database=disk.database)
        disk.fails_at = disk.operations + number
        acknowledged: dict[str, int] = {}
        code = attempted(store, acknowledged)
        assert code in {None, expected}
        assert {name: stored(store).get(name, 0) for name in acknowledged} == acknowledged
        disk.fails_at = None
        assert stored(store) == acknowledged
        store.append("store:main", [draft()], expected_seq=None)  # the connection goes on
        store.close()
        again = open_store(FULL, host, database=disk.database)
        assert stored(again) == {**acknowledged, "store:main": 1}
        assert again._readers.first("PRAGMA integrity_check") == ("ok",)
        again.close()


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
