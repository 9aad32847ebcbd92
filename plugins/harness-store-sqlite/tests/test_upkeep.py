"""Looking after the file: caches that are gone, numbers, copies."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved, seen
from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_store_sqlite.log import SqliteStore
from harness_store_sqlite.schema import FORMAT
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import look_at_store, open_store

QUICK = Settings(synchronous="NORMAL")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def store(host: FakeHost) -> Iterator[SqliteStore]:
    """A log of two streams and a content."""
    opened = open_store(QUICK, host)
    opened.append(STREAM, [draft(number) for number in range(1, 11)], expected_seq=0, summary=b"{}")
    opened.append(OTHER, [draft(1)], expected_seq=0)
    opened.put_blob(b"text " * 1000)
    yield opened
    opened.close()


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A folder with nothing in it."""
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder


def change(file: Path, *statements: str) -> None:
    """Change the file as somebody would who knows its triggers."""
    with closing(sqlite.connect(str(file), isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement
        for _, text in triggers:
            connection.execute(text)


def opened(file: Path, host: FakeHost) -> SqliteStore:
    return open_store(Settings(path=str(file), synchronous="NORMAL"), host)


# ---------------------------------------------------------------------------------------------- caches


@pytest.mark.req("B-15")
@pytest.mark.parametrize("gone", [("summaries",), ("snapshots",), ("summaries", "snapshots")])
def test_a_file_without_its_caches_opens_and_has_them_again(host: FakeHost, gone: tuple[str, ...]) -> None:
    store = open_store(QUICK, host)
    event = store.append(STREAM, [draft(1)], expected_seq=0, summary=b"{}")[0]
    store.close()
    file = host.data_dir / "harness.db"
    with closing(sqlite.connect(str(file), isolation_level=None)) as connection:
        for table in gone:
            connection.execute(f"DROP TABLE {table}")
    assert look_at_store(QUICK, host).endswith("opens")
    for _ in range(2):
        with closing(open_store(QUICK, host)) as again:
            assert list(again.read(STREAM)) == [event]
            assert again.put_summary(STREAM, 1, b"[]") is True
            again.put_snapshot(STREAM, 1, "m", b"s")
            assert list(again.summaries()) == [(STREAM, b"[]")]


# ---------------------------------------------------------------------------------------------- numbers


def test_the_file_its_form_and_what_is_not_yet_folded_into_it_are_told(store: SqliteStore, host: FakeHost) -> None:
    file = host.data_dir / "harness.db"
    found = store.stats()
    assert (found.place, found.format, found.size_bytes) == (str(file), FORMAT, file.stat().st_size)
    assert found.wal_bytes == Path(f"{file}-wal").stat().st_size > 0
    assert found.blob_bytes < found.content_bytes == 5000


# ---------------------------------------------------------------------------------------------- copies


def test_a_copy_is_one_private_file_and_nothing_is_left_beside(
    store: SqliteStore, copies: Path, host: FakeHost
) -> None:
    made = store.backup(copies / "copy.db")
    assert [file.name for file in copies.iterdir()] == ["copy.db"]
    assert (copies / "copy.db").stat().st_mode & 0o777 == 0o600
    assert (made.size_bytes, made.contents) == ((copies / "copy.db").stat().st_size, 1)
    with closing(opened(copies / "copy.db", host)) as copy:
        assert seen(copy) == seen(store)
        assert [len(proved(copy, stream)) for stream in (STREAM, OTHER)] == [10, 1]


def test_a_copy_that_is_made_amid_appends_is_whole(store: SqliteStore, copies: Path, host: FakeHost) -> None:
    going = True

    def append() -> None:
        while going:
            store.append(OTHER, [draft(2, text="x" * 500)] * 20, expected_seq=None)

    writer = Thread(target=append)
    writer.start()
    try:
        for number in range(5):
            made = store.backup(copies / f"{number}.db")
            with closing(opened(copies / f"{number}.db", host)) as copy:
                assert copy.head(OTHER) == made.heads[OTHER] == proved_head(copy)
                assert made.heads[OTHER].seq % 20 == 1
    finally:
        going = False
        writer.join()


def proved_head(store: SqliteStore) -> Any:
    proved(store, OTHER)
    return store.head(OTHER)


SPOILT = {
    "a changed payload": ("UPDATE events SET payload = X'7b7d' WHERE seq = 4", "store.changed"),
    "an event that is gone": ("DELETE FROM events WHERE seq = 4", "store.gap"),
    "a cut tail": ("DELETE FROM events WHERE seq > 7", "store.tail_missing"),
    "a stream that is gone": ("DELETE FROM streams WHERE seq = 1", "store.corrupt"),
    "changed content": ("UPDATE blobs SET content = zeroblob(9)", "store.changed"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_of_a_log_that_does_not_verify_there_is_no_copy(
    store: SqliteStore, copies: Path, host: FakeHost, what: str
) -> None:
    statement, code = SPOILT[what]
    change(host.data_dir / "harness.db", statement)
    with pytest.raises(StoreCorrupt) as caught:
        store.backup(copies / "copy.db")
    assert caught.value.code == code
    assert list(copies.iterdir()) == []


def test_a_copy_needs_a_folder_that_can_be_written(store: SqliteStore, copies: Path) -> None:
    (copies / "file").write_text("", encoding="utf-8")
    for target in (copies / "none" / "copy.db", copies / "file" / "copy.db"):
        with pytest.raises(StoreError) as caught:
            store.backup(target)
        assert (caught.value.code, caught.value.where) == ("store.io", str(target))
        assert "nothing was copied" in (caught.value.hint or "")
    assert [file.name for file in copies.iterdir()] == ["file"]


def test_who_comes_second_replaces_nothing(
    store: SqliteStore, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is taken while the copy is made."""
    target, link = copies / "copy.db", os.link

    def taken(*names: Any) -> None:
        target.write_bytes(b"somebody's")
        link(*names)

    monkeypatch.setattr(os, "link", taken)
    with pytest.raises(StoreError) as caught:
        store.backup(target)
    assert caught.value.code == "store.exists"
    assert {file.name: file.read_bytes() for file in copies.iterdir()} == {"copy.db": b"somebody's"}


def test_a_disk_that_has_no_links_takes_a_copy_too(
    store: SqliteStore, copies: Path, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    store.backup(copies / "copy.db")
    assert [file.name for file in copies.iterdir()] == ["copy.db"]
    with pytest.raises(StoreError) as caught:
        store.backup(copies / "copy.db")
    assert caught.value.code == "store.exists"
