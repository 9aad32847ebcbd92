"""The tables: what they refuse by themselves, and whose the store refuses to touch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import StoreCorrupt, StoreError
from harness_store_postgres.settings import Settings
from harness_store_postgres.store import look_at_store, open_store


@pytest.mark.req("B-88")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = ''",
        "UPDATE events SET payload = '' WHERE false",
        "DELETE FROM events",
        "TRUNCATE events",
        "DELETE FROM streams",
        "TRUNCATE streams",
        "UPDATE blobs SET content = ''",
        "DELETE FROM blobs",
        "TRUNCATE blobs",
        "DELETE FROM inbox",
        "TRUNCATE inbox",
        "UPDATE inbox SET body = ''",
        "UPDATE inbox SET taken_seq = NULL",
        "UPDATE inbox SET taken_seq = 9 WHERE taken_seq = 1",
        "DELETE FROM log",
        "TRUNCATE log",
    ],
)
def test_the_database_itself_changes_and_removes_nothing(opened: Any, log: Any, statement: str) -> None:
    store = opened()
    store.put_blob(b"a")
    store.post("s", "c1", b"{}")
    store.append(STREAM, [draft()], expected_seq=0, taken={"c1": 0})
    with pytest.raises(psycopg.IntegrityError, match="the log is append-only"):
        log(statement)
    assert len(proved(store, STREAM)) == 1


@pytest.mark.inv("I-3")
def test_the_database_itself_refuses_a_gap(opened: Any, log: Any) -> None:
    opened().append(STREAM, [draft()], expected_seq=0)
    for values in ("2, 1, 3, 1", "2, 1, 1, 1", "1, 1, 2, 1"):
        with pytest.raises(psycopg.IntegrityError):
            log(f"INSERT INTO events VALUES ({values}, NULL, '', '', '')")


# ------------------------------------------------------------------------------------------ what is refused


FOREIGN = {
    "a table of another program": ("CREATE TABLE log (line text)", "store.foreign"),
    "another table": ("CREATE TABLE members (name text)", "store.foreign"),
    "a view": ("CREATE VIEW log AS SELECT 'harness' AS application, 1 AS format", "store.corrupt"),
    "another application": ("CREATE TABLE log AS SELECT 'diary' AS application, 1 AS format", "store.foreign"),
    "a later version": ("CREATE TABLE log AS SELECT 'harness' AS application, 2 AS format", "store.newer"),
    "no row": ("CREATE TABLE log (application text, format integer)", "store.foreign"),
}


@pytest.mark.inv("I-11")
@pytest.mark.inv("I-14")
@pytest.mark.parametrize("what", FOREIGN)
def test_a_schema_of_others_is_refused_and_left_as_it_is(
    settings: Settings, host: FakeHost, log: Any, what: str
) -> None:
    statement, code = FOREIGN[what]
    log(f"CREATE SCHEMA {settings.schema_name}")
    log(statement)
    before = tables(log)
    for way_in in (open_store, look_at_store):
        with pytest.raises(StoreCorrupt) as caught:
            way_in(settings, host)
        assert caught.value.code == code
        assert settings.schema_name in str(caught.value.where)
    assert tables(log) == before


CHANGES = (
    "ALTER TABLE events DISABLE TRIGGER events_kept",
    "DROP TRIGGER events_head ON events",
    "DROP INDEX events_key",
    "ALTER TABLE events ADD COLUMN more text",
    "ALTER TABLE events ALTER COLUMN hash DROP NOT NULL",
    "CREATE TABLE more (name text)",
    "DROP TABLE summaries",
    "DROP TABLE snapshots",
    "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
)


@pytest.mark.inv("I-14")
@pytest.mark.parametrize("change", CHANGES)
def test_a_log_whose_form_was_changed_is_refused(settings: Settings, host: FakeHost, log: Any, change: str) -> None:
    open_store(settings, host).close()
    log(change)
    for way_in in (open_store, look_at_store):
        with pytest.raises(StoreCorrupt) as caught:
            way_in(settings, host)
        assert caught.value.code == "store.corrupt"


def tables(log: Any) -> Any:
    return log("SELECT oid, relname, relfilenode FROM pg_class WHERE relnamespace = current_schema()::regnamespace")


# ------------------------------------------------------------------------------------------- looking, opening


def test_a_look_makes_nothing_and_tells_whether_it_opens(settings: Settings, host: FakeHost, log: Any) -> None:
    count = f"SELECT count(*) FROM pg_namespace WHERE nspname = '{settings.schema_name}'"
    assert look_at_store(settings, host).endswith("is not there yet, made when needed")
    assert log(count) == [(0,)]
    open_store(settings, host).close()
    assert look_at_store(settings, host).endswith(f"schema {settings.schema_name} opens")


def test_an_empty_schema_is_used_as_it_is(settings: Settings, host: FakeHost, log: Any) -> None:
    log(f"CREATE SCHEMA {settings.schema_name}")  # what whoever keeps the server makes, and gives rights to
    store = open_store(settings, host)
    assert store.append(STREAM, [draft()], expected_seq=0)[0].position == 1
    store.close()


@pytest.mark.parametrize(("mode", "said"), [("FULL", "on"), ("NORMAL", "off")])
def test_a_commit_waits_for_the_disk_unless_told_otherwise(schema: str, host: FakeHost, mode: str, said: str) -> None:
    store = open_store(Settings.model_validate({"schema_name": schema, "synchronous": mode}), host)
    connection = store._writer._connection
    assert connection is not None
    assert connection.execute("SELECT current_setting('synchronous_commit')").fetchone() == (said,)
    store.close()


def test_what_is_written_beside_the_store_is_seen_in_every_text(opened: Any) -> None:
    odd, store = "a\u0000b\U0001f378" * 2000, opened()
    store.post("s\u0000", odd, b"\x00")
    (event,) = store.append(STREAM, [draft(key=odd)._replace(actor=odd)], expected_seq=0, taken={odd: 0})
    assert proved(store, STREAM) == [event]
    assert store.append(STREAM, [draft(key=odd)._replace(actor=odd)], expected_seq=0) == (event,)
    assert store.posted(odd) == ("s\u0000", odd, b"\x00", 1)


def test_a_page_of_large_events_is_cut_and_the_read_goes_on(opened: Any) -> None:
    store = opened()
    store.append(STREAM, [draft(number, text="x" * 400_000) for number in range(1, 9)], expected_seq=0)
    for number in range(3):
        store.append(f"session:{number}", [draft()], expected_seq=0, summary=b"s" * 600_000)
    pages: list[int] = []
    ask = store._readers._ask

    def noted(*arguments: Any) -> Any:
        rows = ask(*arguments)
        pages.append(len(rows))
        return rows

    store._readers._ask = noted
    assert [event.seq for event in store.read(STREAM)] == list(range(1, 9))
    assert [name for name, _ in store.summaries()] == ["session:2", "session:1", "session:0"]
    assert pages == [3, 3, 2, 1, 2, 1]  # after a whole stream comes the row of its head


def test_snapshots_of_another_maker_take_no_room(opened: Any, log: Any) -> None:
    store = opened()
    for stream in (STREAM, OTHER):
        store.append(stream, [draft(1), draft(2)], expected_seq=0)
        store.put_snapshot(stream, 1, "m1", b"one")
    store.put_snapshot(STREAM, 2, "m2", b"two")
    assert log("SELECT seq, content FROM snapshots ORDER BY seq") == [(1, b"one"), (2, b"two")]
    assert store.snapshot(OTHER, "m1") == (1, b"one")
    store.drop_snapshots()
    assert log("SELECT count(*) FROM snapshots") == [(0,)]


@pytest.mark.parametrize("name", ["", "Harness", "a b", 'a"b', "a;b", "x" * 64])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="schema_name"):
        Settings(schema_name=name)


def test_the_driver_is_not_imported_with_the_manifest() -> None:
    program = "import harness_store_postgres as one, sys; one.harness_provide_stores(); print(*sys.modules)"
    names = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    ).stdout.split()
    assert "harness_store_postgres" in names
    assert not [name for name in names if name.startswith(("psycopg", "pydantic"))]


def test_an_old_server_is_refused(settings: Settings, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", 130_021)
    with pytest.raises(StoreError) as caught:
        open_store(settings, host)
    assert caught.value.code == "store.server_version"


@pytest.mark.inv("I-14")
def test_content_that_is_not_what_its_digest_says_is_given_to_nobody(opened: Any, log: Any) -> None:
    store, digest = opened(), "ab" * 32
    log(rf"INSERT INTO blobs (digest, content) VALUES ('\x{digest}', 'other')")
    with pytest.raises(StoreCorrupt) as caught:
        store.blob(digest)
    assert (caught.value.code, caught.value.where) == ("store.changed", digest)


@pytest.mark.inv("I-3", "I-14")
@pytest.mark.parametrize(
    ("lost", "code", "seq"),
    [("seq = 1", "store.gap", 1), ("seq IN (4, 5)", "store.gap", 4), ("seq > 7", "store.tail_missing", 8)],
)
def test_events_that_are_lost_are_missed_by_who_reads(opened: Any, log: Any, lost: str, code: str, seq: int) -> None:
    store = opened()
    store.append(STREAM, [draft(number) for number in range(1, 11)], expected_seq=0)
    log(f"SET session_replication_role = replica; DELETE FROM events WHERE {lost}")
    read = store.read(STREAM)
    assert [next(read).seq for _ in range(seq - 1)] == list(range(1, seq))
    with pytest.raises(StoreCorrupt) as caught:
        next(read)
    assert (caught.value.code, caught.value.facts["seq"]) == (code, seq)
