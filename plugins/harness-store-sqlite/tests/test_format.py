"""A log of format 1: what is added to it, that nothing else is touched, and that it is one or the other throughout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from peewee import SqliteDatabase
from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.store import Head, Posted, Snapshot, Store
from harness_store_sqlite.schema import FORMAT, form, pragmas, steps
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import look_at_store, open_store

HERE = Path(__file__).parent
STEPS = steps(1, set(form(1)))
QUICK = Settings(synchronous="NORMAL")
HEADS = {  # as the version that made the log said
    STREAM: Head(4, bytes.fromhex("73e7ee96d581ed1a1be232e60574591fa850c18235c47393df499805de1d5bee")),
    OTHER: Head(1, bytes.fromhex("9b22ab42191fc7a7ed9332de1035817fd095a8ee3f3452a3e3f02cfa0f9da557")),
    "store:main": Head(1, bytes.fromhex("29210f1f672d944503a7c3f174e15b924f8a387bd5b4af948509578ef91f7b3f")),
}


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def old(host: FakeHost) -> Path:
    """A closed log of format 1."""
    file = Path(host.data_dir / "harness.db")
    with closing(sqlite.connect(str(file))) as connection:
        connection.executescript((HERE / "format_1.sql").read_text(encoding="utf-8"))
    return file


@pytest.fixture
def file(host: FakeHost) -> Path:
    return old(host)


def rows(file: Path) -> dict[str, Any]:
    """Every row of every table that format 1 has, and under ``""`` the statements that made the tables."""
    with closing(sqlite.connect(str(file))) as connection:
        tables = ("streams", "events", "blobs", "inbox", "summaries")
        found = {name: connection.execute(f"SELECT rowid, * FROM {name} ORDER BY rowid").fetchall() for name in tables}
        made = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {**found, "": {sql for (sql,) in made}}


def version_of(file: Path) -> int:
    with closing(sqlite.connect(str(file))) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def reading(uri: str) -> Any:
    """A database that cannot be written, whatever is asked for."""
    uri = uri.replace("mode=rw", "mode=ro")
    return SqliteDatabase(uri, uri=True, thread_safe=False, check_same_thread=False)


def is_as_it_was(store: Store) -> None:
    """Every event, content and command is there and fits together."""
    assert {stream: store.head(stream) for stream in store.streams()} == HEADS
    assert [event.position for stream in HEADS for event in proved(store, stream)] == [1, 2, 4, 5, 3, 6]
    for content in (b"content " * 400, b"small"):
        assert store.blob(sha256(content).hexdigest()) == content
    assert store.posted("c1") == Posted(STREAM, "c1", b'{"kind":"say"}', 4)
    assert [row.command_id for row in store.take(STREAM)] == ["c2"]
    assert list(store.summaries()) == [(STREAM, b'{"n":5}')]


def everything_in(folder: Path) -> dict[str, bytes]:
    """Who reads a log leaves a map of it in memory and an empty write-ahead log."""
    found = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    return {name: content for name, content in found.items() if content or not name.endswith("-wal")}


# ------------------------------------------------------------------------------------------------ brought forward


@pytest.mark.inv("I-11")
@pytest.mark.inv("I-7")
@pytest.mark.inv("I-8")
def test_opened_for_writing_it_gets_what_it_lacks_and_nothing_else_is_touched(host: FakeHost, file: Path) -> None:
    before = rows(file)
    store = open_store(QUICK, host)
    is_as_it_was(store)
    store.close()
    assert (version_of(file), FORMAT) == (2, 2)
    after = rows(file)
    (added,) = after.pop("") ^ before.pop("")
    assert added.startswith("CREATE TABLE snapshots (")
    assert after == before


@pytest.mark.inv("I-11")
def test_it_goes_on_as_if_it_had_been_made_today(host: FakeHost, file: Path) -> None:
    store = open_store(QUICK, host)
    assert store.snapshot(STREAM, "m1") is None
    store.put_snapshot(STREAM, 4, "m1", b"four")
    assert store.append(STREAM, [draft(7)], expected_seq=4)[0].position == 7
    store.close()
    again = open_store(QUICK, host)
    assert again.snapshot(STREAM, "m1") == Snapshot(4, b"four")
    assert len(proved(again, STREAM)) == 5
    again.close()
    assert rows(file)[""] == set(form(FORMAT))


@pytest.mark.inv("I-11")
@pytest.mark.req("B-15")
def test_caches_that_it_lacks_beside_are_made_in_the_same_step(host: FakeHost, file: Path) -> None:
    change("DROP TABLE summaries")(file)
    store = open_store(QUICK, host)
    assert list(store.summaries()) == []
    assert {stream: store.head(stream) for stream in store.streams()} == HEADS
    store.close()
    assert (version_of(file), rows(file)[""]) == (FORMAT, set(form(FORMAT)))


# ------------------------------------------------------------------------------------------------- only read


@pytest.mark.inv("I-11")
def test_a_look_says_that_it_opens_and_leaves_it_byte_for_byte(host: FakeHost, file: Path) -> None:
    before = everything_in(host.data_dir)
    assert look_at_store(QUICK, host) == f"{file} opens"
    assert everything_in(host.data_dir) == before


@pytest.mark.inv("I-11")
def test_where_it_may_only_be_read_it_is_read_without_snapshots_and_left_byte_for_byte(
    host: FakeHost, file: Path
) -> None:
    before = file.read_bytes()
    store = open_store(QUICK, host, database=reading)
    is_as_it_was(store)
    assert store.snapshot(STREAM, "m1") is None
    for write in (
        lambda: store.append(STREAM, [draft()], expected_seq=4),
        lambda: store.put_snapshot(STREAM, 4, "m1", b"four"),
        store.drop_snapshots,
    ):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.code == "store.readonly"
    store.close()
    assert everything_in(host.data_dir) == {"harness.db": before}


@pytest.mark.req("B-15")
def test_where_it_may_only_be_read_it_is_read_without_any_cache_and_left_byte_for_byte(
    host: FakeHost, file: Path
) -> None:
    change("DROP TABLE summaries")(file)
    before = file.read_bytes()
    store = open_store(QUICK, host, database=reading)
    assert {stream: store.head(stream) for stream in store.streams()} == HEADS
    assert list(store.summaries()) == []
    assert (store.stats().streams, store.stats().summaries, store.stats().snapshots) == (3, 0, 0)
    with pytest.raises(StoreError) as caught:
        store.put_summary(STREAM, 4, b"{}")
    assert caught.value.code == "store.readonly"
    store.close()
    assert everything_in(host.data_dir) == {"harness.db": before}


@pytest.mark.inv("I-11")
def test_on_a_full_disk_it_is_read_without_snapshots_and_left_byte_for_byte(
    host: FakeHost, file: Path, disk: Any
) -> None:
    before = rows(file)
    disk.fails_at, disk.lasting = 1, True
    store = open_store(QUICK, host, database=disk.database)
    is_as_it_was(store)
    assert store.snapshot(STREAM, "m1") is None
    with pytest.raises(StoreError) as caught:
        store.append(STREAM, [draft()], expected_seq=4)
    assert caught.value.code == "store.full"
    store.close()
    assert (version_of(file), rows(file)) == (1, before)


@pytest.mark.inv("I-11")
def test_where_another_holds_it_for_too_long_it_is_read_without_snapshots_until_it_is_opened_again(
    host: FakeHost, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_store_sqlite.store.pragmas", partial(pragmas, busy_milliseconds=1))
    with closing(sqlite.connect(str(file), isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        store = open_store(QUICK, host)
        is_as_it_was(store)
        assert (store.snapshot(STREAM, "m1"), version_of(file)) == (None, 1)
        holder.execute("ROLLBACK")
    assert store.append(STREAM, [draft(7)], expected_seq=4)[0].position == 7
    store.close()
    again = open_store(QUICK, host)
    again.put_snapshot(STREAM, 4, "m1", b"four")
    again.close()
    assert version_of(file) == FORMAT


# ---------------------------------------------------------------------------------------------------- refused


def change(*statements: str) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        with closing(sqlite.connect(str(file), isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return spoil


def emptied(file: Path) -> None:
    file.unlink()
    change("PRAGMA application_id = 1213353555", "VACUUM")(file)


REFUSED: dict[str, Callable[[Path], None]] = {
    "format 1 with the table of format 2": change(*STEPS[:-1]),
    "format 1 without a trigger": change("DROP TRIGGER inbox_once"),
    "format 1 with a table of somebody else": change("CREATE TABLE more (a)"),
    "format 1 without a table that is no cache": change("DROP TABLE inbox"),
    "format 2 without a trigger": change(*STEPS, "DROP TRIGGER inbox_once"),
    "no format and no table": emptied,
}


@pytest.mark.inv("I-14")
@pytest.mark.parametrize("what", REFUSED)
def test_one_that_is_not_of_the_form_of_its_number_is_refused_and_left_byte_for_byte(
    host: FakeHost, file: Path, what: str
) -> None:
    REFUSED[what](file)
    before = everything_in(host.data_dir)
    for way_in in (open_store, look_at_store):
        with pytest.raises(StoreCorrupt) as caught:
            way_in(QUICK, host)
        assert caught.value.code == "store.corrupt"
        assert everything_in(host.data_dir) == before


# ---------------------------------------------------------------------------------------------------- amid it


def start(folder: Path, statement: str, stream: str) -> subprocess.Popen[str]:
    """A process that opens the log of that folder; see there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(HERE / "amid.py"), str(folder), statement, stream]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.inv("I-2")
@pytest.mark.parametrize("last", [*STEPS, "COMMIT"], ids=["table", "number", "commit"])
def test_who_is_killed_amid_it_leaves_format_1_and_the_next_one_does_it(
    tmp_path: Path, host: FakeHost, file: Path, last: str
) -> None:
    before = rows(file)
    with start(tmp_path, last, "") as killed:
        assert killed.wait() == -signal.SIGKILL
    assert (version_of(file), rows(file)) == (1, before)
    store = open_store(QUICK, host)
    is_as_it_was(store)
    store.close()
    assert version_of(file) == FORMAT


def attempted(host: FakeHost, disk: Any) -> str | None:
    """Open the log and close it; gives the code of the error that was met."""
    try:
        open_store(QUICK, host, database=disk.database).close()
    except StoreError as problem:
        return problem.code
    return None


@pytest.mark.inv("I-2")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from_then_on"])
def test_a_disk_that_fails_at_any_write_leaves_one_format_or_the_other(
    tmp_path: Path, disk: Any, lasting: bool
) -> None:
    disk.lasting = lasting
    found: list[int] = []
    while disk.fails_at is None or disk.operations >= disk.fails_at:  # until it has come through without
        host = FakeHost(tmp_path / str(len(found)))
        file = old(host)
        disk.fails_at = disk.operations + len(found) + 1
        code = attempted(host, disk)
        assert look_at_store(QUICK, host)
        found.append(version_of(file))
        assert code is None
        store = open_store(QUICK, host)
        is_as_it_was(store)
        store.close()
        assert version_of(file) == FORMAT
    assert found == sorted(found)
    assert set(found) == {1, FORMAT}


# ------------------------------------------------------------------------------------------------ at once


class _Connection:
    def __init__(self, own: Any, beside: Callable[[str], None]) -> None:
        self.own, self.beside = own, beside

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def execute(self, sql: str, *parameters: Any) -> Any:
        self.beside(sql)
        return self.own.execute(sql, *parameters)


def beside(statement: str, act: Callable[[], None]) -> Callable[[str], Any]:
    """A database beside which somebody acts when that statement is said for the first time."""
    waiting = [act]

    def said(sql: str) -> None:
        if sql == statement and waiting:
            waiting.pop()()

    class Database(SqliteDatabase):
        def _connect(self) -> Any:
            return _Connection(super()._connect(), said)  # type: ignore[misc]

    def made(uri: str) -> Any:
        return Database(uri, uri=True, thread_safe=False, check_same_thread=False)

    return made


LOOKED_AT = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"


@pytest.mark.parametrize("statement", ["BEGIN", "PRAGMA user_version", LOOKED_AT, "BEGIN IMMEDIATE"])
def test_another_one_may_do_it_at_any_moment(host: FakeHost, file: Path, statement: str) -> None:
    other: list[Store] = []
    store = open_store(QUICK, host, database=beside(statement, lambda: other.append(open_store(QUICK, host))))
    assert store.append("session:1", [draft()], expected_seq=0)[0].position == 7
    assert other[0].append("session:2", [draft()], expected_seq=0)[0].position == 8
    for one in (store, *other):
        assert len(proved(one, STREAM)) == 4
        one.close()
    assert rows(file)[""] == set(form(FORMAT))


def test_what_is_changed_before_it_may_write_is_refused_then(host: FakeHost, file: Path) -> None:
    database = beside("BEGIN IMMEDIATE", lambda: change("DROP TRIGGER events_head")(file))
    with pytest.raises(StoreCorrupt):
        open_store(QUICK, host, database=database)
    assert version_of(file) == 1


def test_processes_that_are_about_to_do_it_at_once_all_go_on(host: FakeHost, tmp_path: Path, file: Path) -> None:
    with closing(sqlite.connect(str(file), isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        children = [start(tmp_path, "BEGIN IMMEDIATE", f"session:{number}") for number in range(3)]
        assert [child.stdout.readline() for child in children if child.stdout] == ["now\n"] * 3
        holder.execute("ROLLBACK")
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0, 0, 0]
    store = open_store(QUICK, host)
    assert {stream: store.head(stream) for stream in HEADS} == HEADS
    assert [len(proved(store, f"session:{number}")) for number in range(3)] == [1, 1, 1]
    store.close()
    assert rows(file)[""] == set(form(FORMAT))
