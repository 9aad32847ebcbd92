"""The file: what is made, what is refused, and that a refusal changes not one byte."""

from __future__ import annotations

import json
import sqlite3 as python_sqlite
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from peewee import SqliteDatabase
from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_hookspecs.store import GENESIS_HASH, chain_hash, verify_chain
from harness_store_sqlite import harness_provide_stores
from harness_store_sqlite.schema import FORMAT, affected
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import look_at_store, open_store

CASES = {
    case["id"]: case
    for line in (Path(__file__).parents[3] / "tests" / "cases" / "store.jsonl").read_text(encoding="utf-8").splitlines()
    for case in [json.loads(line)]
}
QUICK = Settings(synchronous="NORMAL")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def filled(host: FakeHost) -> Path:
    """A closed log of ten events."""
    store = open_store(QUICK, host)
    store.append(STREAM, [draft(number) for number in range(1, 11)], expected_seq=0, summary=b"{}")
    store.close()
    return Path(host.data_dir / "harness.db")


def change(file: Path, *statements: str) -> None:
    """Change the file behind the store's back."""
    connection = sqlite.connect(str(file), isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def bytes_of(folder: Path) -> dict[str, bytes]:
    """What lies in the folder. Who reads a log leaves a map of it in memory and an empty write-ahead log."""
    found = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    return {name: content for name, content in found.items() if content or not name.endswith("-wal")}


# ------------------------------------------------------------------------------------------------- made


@pytest.mark.req("B-133")
def test_without_a_setting_one_wal_file_lies_in_the_data_directory(host: FakeHost) -> None:
    (offer,) = harness_provide_stores()
    assert offer.settings is not None
    assert offer.look is not None
    assert "is not there yet" in offer.look(offer.settings()(), host)
    store = offer.build(offer.settings()(), host)
    store.append(STREAM, [draft()], expected_seq=0)
    with closing(sqlite.connect(str(host.data_dir / "harness.db"))) as connection:
        mode = connection.execute("PRAGMA journal_mode").fetchone()
    store.close()
    assert mode == ("wal",)
    assert [file.name for file in host.data_dir.iterdir()] == ["harness.db"]


def test_only_its_owner_may_read_the_file_and_its_folder(host: FakeHost) -> None:
    store = open_store(Settings(path="below/log.db"), host)
    store.append(STREAM, [draft()], expected_seq=0)
    folder = host.data_dir / "below"
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {
        "log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store.close()


def test_a_path_may_be_absolute(host: FakeHost, tmp_path: Path) -> None:
    open_store(Settings(path=str(tmp_path / "own#?%20 place" / "a.db")), host).close()
    assert [file.name for file in (tmp_path / "own#?%20 place").iterdir()] == ["a.db"]


def test_a_file_that_cannot_be_made_leaves_nothing(host: FakeHost) -> None:
    def small(uri: str) -> Any:
        return SqliteDatabase(uri, uri=True, pragmas={"max_page_count": 2} if "new" in uri else {})

    with pytest.raises(StoreError) as caught:
        open_store(QUICK, host, database=small)
    assert caught.value.code == "store.full"
    assert not list(host.data_dir.iterdir())


@pytest.mark.inv("I-8")
def test_the_bytes_in_the_file_are_the_bytes_that_were_given_and_hashed(host: FakeHost) -> None:
    store = open_store(QUICK, host)
    given = draft()._replace(refs=b'{ "a": 1 }', payload=b'{"b": "\xc3\xa9\\u0000",\n "c":1.0}')
    (event,) = store.append(STREAM, [given], expected_seq=0)
    with closing(sqlite.connect(str(host.data_dir / "harness.db"))) as connection:
        payload, envelope, own_hash = connection.execute("SELECT payload, envelope, hash FROM events").fetchone()
    assert (payload, envelope.encode().split(b"\n")[-1]) == (given.payload, given.refs)
    assert own_hash == event.hash == chain_hash(GENESIS_HASH, STREAM, 1, given)
    store.close()


@pytest.mark.inv("I-1")
def test_full_is_the_default_and_reaches_the_connection(host: FakeHost) -> None:
    for settings, level in ((Settings(), 2), (QUICK, 1)):
        store = open_store(settings, host)
        assert store._writer._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        store.close()


# ---------------------------------------------------------------------------------------------- refused


def _cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def _overwrite(start: int, data: bytes) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[start : start + len(data)] = data
        file.write_bytes(content)

    return spoil


def _stranger(file: Path) -> None:
    file.unlink()
    change(file, "PRAGMA application_id = 7", "CREATE TABLE somebody_elses (a)")


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "of another program": (_stranger, "store.foreign"),
    "without an application id": (lambda file: change(file, "PRAGMA application_id = 0"), "store.foreign"),
    "of a later version": (lambda file: change(file, f"PRAGMA user_version = {FORMAT + 1}"), "store.newer"),
    "without a version": (lambda file: change(file, "PRAGMA user_version = 0"), "store.corrupt"),
    "empty": (lambda file: file.write_bytes(b""), "store.corrupt"),
    "a few bytes": (lambda file: file.write_bytes(b"SQLite format 3\0"), "store.corrupt"),
    "text": (lambda file: file.write_text("text " * 100), "store.corrupt"),
    "cut in half": (_cut, "store.corrupt"),
    "with a broken first page": (_overwrite(100, b"\xff" * 300), "store.corrupt"),
    "NUL bytes at its start": (_overwrite(0, b"\0" * 2048), "store.corrupt"),
    "without a trigger": (lambda file: change(file, "DROP TRIGGER events_no_delete"), "store.corrupt"),
}


@pytest.mark.inv("I-14")
@pytest.mark.inv("I-11")
@pytest.mark.parametrize("what", REFUSED)
def test_a_file_is_refused_and_left_byte_for_byte(host: FakeHost, what: str) -> None:
    spoil, code = REFUSED[what]
    spoil(filled(host))
    before = bytes_of(host.data_dir)
    for _ in range(2):
        with pytest.raises(StoreCorrupt) as caught:
            open_store(QUICK, host)
        assert caught.value.code == code
        assert bytes_of(host.data_dir) == before


def everything_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}


@pytest.mark.parametrize("what", REFUSED)
def test_a_look_refuses_what_would_not_open_and_changes_nothing(host: FakeHost, what: str) -> None:
    spoil, code = REFUSED[what]
    spoil(filled(host))
    before = everything_in(host.data_dir)
    with pytest.raises(StoreCorrupt) as caught:
        look_at_store(QUICK, host)
    assert caught.value.code == code
    assert caught.value.hint, "what to do next"
    assert everything_in(host.data_dir) == before


def test_a_look_at_a_whole_file_or_at_none_changes_nothing(host: FakeHost) -> None:
    assert look_at_store(Settings(path="below/log.db"), host) == (
        f"{host.data_dir / 'below/log.db'} is not there yet, made when needed"
    )
    assert not list(host.data_dir.iterdir())
    file = filled(host)
    before = everything_in(host.data_dir)
    assert look_at_store(QUICK, host) == f"{file} opens"
    assert everything_in(host.data_dir) == before


def test_a_look_sees_what_only_the_write_ahead_log_tells(host: FakeHost) -> None:
    later = sqlite.connect(str(filled(host)), isolation_level=None)
    later.execute(f"PRAGMA user_version = {FORMAT + 1}")
    before = bytes_of(host.data_dir)
    with pytest.raises(StoreCorrupt) as caught:
        look_at_store(QUICK, host)
    assert caught.value.code == "store.newer"
    assert bytes_of(host.data_dir) == before
    later.close()


def test_a_look_refuses_the_library_that_would_be_refused(host: FakeHost) -> None:
    with pytest.raises(StoreError) as caught:
        look_at_store(QUICK, host, database=_Affected)
    assert caught.value.code == "store.sqlite_version"


@pytest.mark.inv("I-11")
def test_a_later_version_is_named_beside_ours_even_if_only_the_write_ahead_log_tells(host: FakeHost) -> None:
    assert "names both versions" in CASES["BR-011"]["right"]
    file = filled(host)
    later = sqlite.connect(str(file), isolation_level=None)
    later.execute("PRAGMA wal_autocheckpoint = 0")
    later.execute("PRAGMA user_version = 1000")
    before = bytes_of(host.data_dir)
    with pytest.raises(StoreCorrupt, match=rf"format 1000, this version reads {FORMAT}") as caught:
        open_store(QUICK, host)
    assert caught.value.code == "store.newer"
    assert bytes_of(host.data_dir) == before
    assert len(before) == 2
    later.close()


def test_a_damaged_page_is_reported_when_it_is_read(host: FakeHost) -> None:
    file = filled(host)
    store = open_store(QUICK, host)
    store.append(OTHER, [draft(number, text="x" * 300) for number in range(1, 200)], expected_seq=0)
    store.close()
    _overwrite(2048 * 40, b"\xff" * 2048 * 8)(file)
    store = open_store(QUICK, host)
    with pytest.raises(StoreCorrupt) as caught:
        list(store.read(OTHER))
    assert caught.value.code in {"store.corrupt", "store.changed"}
    store.close()


# ------------------------------------------------------------------------------------------ the library


class _Affected(SqliteDatabase):
    """A database whose SQLite says that it is of another version."""

    version = "3.50.4"

    def __init__(self, uri: str) -> None:
        super().__init__(uri, uri=True, thread_safe=False, check_same_thread=False)

    def _connect(self) -> Any:
        connection = super()._connect()  # type: ignore[misc]
        connection.create_function("sqlite_version", 0, lambda: self.version)
        return connection


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [
        ("3.6.23", False), ("3.7.0", True), ("3.40.1", True), ("3.44.5", True), ("3.44.6", False), ("3.45.0", True),
        ("3.50.4", True), ("3.50.6", True), ("3.50.7", False), ("3.51.0", True), ("3.51.2", True), ("3.51.3", False),
        ("3.52", False), ("3.53.4", False), ("4.0.0", False),
    ],
)
def test_versions_that_can_lose_commits_are_known(version: str, is_affected: bool) -> None:
    assert affected(version) is is_affected


@pytest.mark.inv("I-1")
def test_an_sqlite_that_can_lose_commits_is_refused_for_a_file(host: FakeHost) -> None:
    assert "WAL" in CASES["BR-012"]["symptom"]
    filled(host)
    before = bytes_of(host.data_dir)
    with pytest.raises(StoreError, match=r"SQLite 3\.50\.4 can lose") as caught:
        open_store(QUICK, host, database=_Affected)
    assert caught.value.code == "store.sqlite_version"
    assert bytes_of(host.data_dir) == before


@pytest.mark.skipif(
    not affected(python_sqlite.sqlite_version),
    reason=f"Python's own SQLite {python_sqlite.sqlite_version} is not affected",
)
def test_a_really_affected_library_is_refused(host: FakeHost) -> None:
    class Python(SqliteDatabase):
        def _connect(self) -> Any:
            return python_sqlite.connect(self.database, uri=True, isolation_level=None)

    with pytest.raises(StoreError) as caught:
        open_store(QUICK, host, database=Python)
    assert caught.value.code == "store.sqlite_version"
    assert not list(host.data_dir.iterdir())


# --------------------------------------------------------------------------------- rows behind our back


@pytest.mark.req("B-88")
@pytest.mark.inv("I-6")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = x'7b7d'",
        "UPDATE events SET seq = seq + 100",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 10",
        "DELETE FROM streams",
        "UPDATE blobs SET content = x''",
        "DELETE FROM blobs",
        "DELETE FROM inbox",
        "UPDATE inbox SET body = x'' WHERE taken_seq IS NULL",
        "UPDATE inbox SET taken_seq = NULL",
        "UPDATE inbox SET taken_seq = 9 WHERE taken_seq IS NOT NULL",
        "INSERT INTO events (sid, seq, batch, hash, envelope, payload) VALUES (1, 13, 1, x'', '', x'')",
        "INSERT INTO events (sid, seq, batch, hash, envelope, payload) VALUES (1, 10, NULL, x'', '', x'')",
    ],
)
def test_the_file_itself_refuses_changes(host: FakeHost, statement: str) -> None:
    file = filled(host)
    store = open_store(QUICK, host)
    for command in ("c1", "c2"):
        store.post("s", command, b"{}")
    store.put_blob(b"a")
    before = store.append(STREAM, [draft(11)], expected_seq=10, taken={"c1": 0})
    with pytest.raises(sqlite.IntegrityError):
        change(file, statement)
    assert proved(store, STREAM)[10:] == list(before)
    store.close()


ROW = "hash, envelope, payload"
TAMPERED = {
    "a changed payload": ("UPDATE events SET payload = x'7b7d' WHERE seq = 4", "store.changed"),
    "a changed envelope": ("UPDATE events SET envelope = envelope || ' ' WHERE seq = 4", "store.changed"),
    "an envelope that is none": ("UPDATE events SET envelope = 'x' WHERE seq = 4", "store.changed"),
    "a removed event": ("DELETE FROM events WHERE seq = 4", "store.gap"),
    "two events in each other's place": (
        f"UPDATE events SET ({ROW}) = (SELECT {ROW} FROM events AS o WHERE o.seq = 9 - events.seq) WHERE seq IN (4, 5)",
        "store.changed",
    ),
    "an inserted event": (
        f"INSERT INTO events (sid, seq, {ROW}) SELECT 1, 11, {ROW} FROM events WHERE seq = 10",
        "store.changed",
    ),
    "a cut tail": ("DELETE FROM events WHERE seq > 7", "store.tail_missing"),
    "no rows at all": ("DELETE FROM events", "store.tail_missing"),
}


@pytest.mark.inv("I-7")
@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_tampered_with_does_not_verify(host: FakeHost, what: str) -> None:
    assert "head anchor" in CASES["BR-007"]["right"]
    statement, code = TAMPERED[what]
    file = filled(host)
    store = open_store(QUICK, host)
    change(file, "DROP TRIGGER events_no_update", "DROP TRIGGER events_no_delete", statement)
    with pytest.raises(StoreCorrupt) as caught:
        verify_chain(store.read(STREAM), store.head(STREAM))
    assert caught.value.code == code
    store.close()


LOST = {
    "the first": ("seq = 1", "store.gap", 1),
    "some in the middle": ("seq IN (4, 5)", "store.gap", 4),
    "the last": ("seq > 7", "store.tail_missing", 8),
}


@pytest.mark.inv("I-3", "I-14")
@pytest.mark.parametrize("what", LOST)
def test_events_that_are_lost_are_missed_by_whoever_reads(host: FakeHost, what: str) -> None:
    where, code, seq = LOST[what]
    file = filled(host)
    store = open_store(QUICK, host)
    change(file, "DROP TRIGGER events_no_delete", f"DELETE FROM events WHERE {where}")
    read = store.read(STREAM)
    assert [next(read).seq for _ in range(seq - 1)] == list(range(1, seq))
    with pytest.raises(StoreCorrupt) as caught:
        next(read)
    assert (caught.value.code, caught.value.facts["seq"]) == (code, seq)
    store.close()


def test_a_text_that_is_none_is_a_damage_of_the_file(host: FakeHost) -> None:
    file = filled(host)
    store = open_store(QUICK, host)
    change(file, "DROP TRIGGER events_no_update", "UPDATE events SET envelope = CAST(X'FF0A' AS TEXT) WHERE seq = 4")
    with pytest.raises(StoreCorrupt) as caught:
        list(store.read(STREAM))
    assert caught.value.code == "store.corrupt"
    store.close()


def test_a_definition_that_is_no_text_is_a_damage_of_the_file(host: FakeHost) -> None:
    file = filled(host)
    before = file.read_bytes()
    file.write_bytes(before.replace(b"a posted command is never changed", b"a posted command is never change\xff"))
    damaged = file.read_bytes()
    assert damaged != before
    with pytest.raises(StoreCorrupt) as caught:
        open_store(QUICK, host)
    assert caught.value.code == "store.corrupt"
    assert file.read_bytes() == damaged


def test_an_append_over_a_cut_tail_is_refused(host: FakeHost) -> None:
    file = filled(host)
    change(file, "UPDATE streams SET seq = 7")
    store = open_store(QUICK, host)
    with pytest.raises(StoreCorrupt):
        store.append(STREAM, [draft()], expected_seq=7)
    assert len(list(store.read(STREAM))) == 10
    store.close()


# ---------------------------------------------------------------------------------------------- growth


def size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@pytest.mark.inv("I-13")
def test_a_large_content_is_stored_once(host: FakeHost) -> None:
    assert "5 MiB" in CASES["BR-002"]["right"]
    store = open_store(QUICK, host)
    content = host.ports.random.bytes(1_048_576)
    for number in range(100):
        digest = store.put_blob(content)
        store.append(STREAM, [draft(number, context=digest)], expected_seq=number, blobs={digest: content})
    assert 1_048_576 < size_bytes(host.data_dir) < 5 * 1_048_576
    store.close()
    assert size_bytes(host.data_dir) < 1.2 * 1_048_576


@pytest.mark.inv("I-13")
def test_the_write_ahead_log_is_bounded_though_somebody_reads_slowly(host: FakeHost) -> None:
    store = open_store(QUICK, host)
    store.append(STREAM, [draft(number) for number in range(1, 601)], expected_seq=0)
    slow = store.read(STREAM)
    next(slow)
    for number in range(200):
        store.append(OTHER, [draft(number, text="x" * 100_000)], expected_seq=number)
    wal = host.data_dir / "harness.db-wal"
    assert wal.stat().st_size < 16 * 1_048_576
    assert len(list(slow)) == 599
    store.close()


@pytest.mark.inv("I-13")
def test_a_log_that_is_written_to_for_longer_grows_once(host: FakeHost) -> None:
    store = open_store(Settings(), host)
    wal = host.data_dir / "harness.db-wal"
    sizes = []
    for number in range(80):
        store.append(STREAM, [draft(number)], expected_seq=number)
        sizes.append(wal.stat().st_size)
    assert sizes[20] < 1_048_576  # a short session pays nothing for it
    assert 2_097_152 < sizes[40] < 3 * 1_048_576
    assert set(sizes[40:]) == {sizes[40]}
    assert len(proved(store, STREAM)) == 80
    assert store._readers.first("SELECT count(*) FROM blobs") == (0,)
    assert store._readers.first("PRAGMA integrity_check") == ("ok",)
    store.close()
    assert not wal.exists()
    assert (host.data_dir / "harness.db").stat().st_size < 262_144


def test_a_log_that_waits_for_no_disk_is_given_no_room(host: FakeHost) -> None:
    store = open_store(QUICK, host)
    for number in range(80):
        store.append(STREAM, [draft(number)], expected_seq=number)
    assert (host.data_dir / "harness.db-wal").stat().st_size < 2_097_152
    store.close()


@pytest.mark.inv("I-14")
def test_content_that_is_not_what_its_digest_says_is_given_to_nobody(host: FakeHost) -> None:
    file, digest = filled(host), "ab" * 32
    change(file, f"INSERT INTO blobs (digest, size, deflated, content) VALUES (x'{digest}', 5, 0, x'6f74686572')")
    store = open_store(QUICK, host)
    with pytest.raises(StoreCorrupt) as caught:
        store.blob(digest)
    assert (caught.value.code, caught.value.where) == ("store.changed", digest)
    store.close()
