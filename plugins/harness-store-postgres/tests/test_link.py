"""Connections that are lost, refused or never made: what is acknowledged stands, and nothing is claimed beyond that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import NotFound, StoreConflict, StoreCorrupt, StoreError
from harness_hookspecs.store import Store
from harness_store_postgres.settings import Settings
from harness_store_postgres.store import look_at_store, open_store

WAYS_IN: tuple[Callable[..., object], ...] = (open_store, look_at_store)


def kept(store: Store) -> object:
    """Keep a snapshot in place of an earlier one."""
    store.put_snapshot(STREAM, 1, "m1", b"made")
    return store.snapshot(STREAM, "m1")


WRITES: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append(STREAM, [draft(7), draft(8)], expected_seq=1),
    "append to any head": lambda store: store.append(STREAM, [draft(7), draft(8)], expected_seq=None),
    "first append": lambda store: store.append(OTHER, [draft(7)], expected_seq=0, summary=b"{}"),
    "post": lambda store: store.post("s", "c1", b"{}"),
    "content": lambda store: store.put_blob(b"content"),
    "snapshot": kept,
}


def written(store: Store) -> Any:
    """What the writes leave behind."""
    numbers = [event.payload for stream in (STREAM, OTHER) for event in proved(store, stream)]
    contents = [row.command_id for row in store.take("s")]
    with suppress(NotFound):
        contents.append(store.blob(sha256(b"content").hexdigest()).decode())
    snapshot = store.snapshot(STREAM, "m1")
    return numbers, contents, [] if snapshot is None else [snapshot]


# ------------------------------------------------------------------------------------------ lost connections


@pytest.mark.inv("I-1")
@pytest.mark.inv("I-2")
@pytest.mark.parametrize("cuts", ["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_a_connection_lost_amid_a_commit_writes_once(wire: Any, opened: Any, cuts: str, write: str) -> None:
    store = opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    wire.cuts = cuts
    result = WRITES[write](store)
    assert wire.count == 1
    counter, found = store.change_counter(), written(store)
    again = (write, cuts) == ("snapshot", "after")  # a cache is written once more rather than looked for
    assert counter == (3 if again else 2)
    assert sum(map(len, found)) > 1
    if isinstance(result, tuple) and hasattr(result[0], "seq"):
        assert list(result) == proved(store, result[0].stream)[-len(result) :]
    store.close()
    assert written(opened()) == found


@pytest.mark.inv("I-1")
@pytest.mark.parametrize("cuts", ["before", "after"])
def test_where_the_log_cannot_be_asked_nothing_is_claimed(wire: Any, opened: Any, cuts: str) -> None:
    store = opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    wire.cuts, wire.ends = cuts, True
    with pytest.raises(StoreError) as caught:
        store.append(STREAM, [draft(2)], expected_seq=1)
    assert caught.value.code == "store.in_doubt"
    assert "resume" in str(caught.value.hint)
    wire.mend()
    # The lock of the log says that the lost transaction has come to its end; whoever only reads may be earlier.
    assert store.append(STREAM, [draft(3)], expected_seq=None)[0].seq == {"before": 2, "after": 3}[cuts]
    assert len(proved(store, STREAM)) == {"before": 2, "after": 3}[cuts]


@pytest.mark.inv("I-4")
def test_whoever_was_overtaken_while_his_connection_was_lost_is_told(wire: Any, opened: Any) -> None:
    store, other = opened(), opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    wire.cuts = "before"

    def overtake() -> None:
        other.append(STREAM, [draft(9)], expected_seq=1)

    connect = store._writer._link.reconnect

    def late(**options: Any) -> Any:
        overtake()
        return connect(**options)

    store._writer._link.reconnect = late
    with pytest.raises(StoreConflict) as caught:
        store.append(STREAM, [draft(2)], expected_seq=1)
    assert caught.value.code == "store.conflict"
    assert len(proved(store, STREAM)) == 2


KILL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'harness'"


@pytest.mark.parametrize("use", [*WRITES, "read", "watch"])
def test_connections_that_the_server_ended_are_replaced(opened: Any, log: Any, use: str) -> None:
    reads: dict[str, Callable[[Store], object]] = {
        "read": lambda store: [event.seq for event in store.read(STREAM)],
        "watch": lambda store: store.change_counter(),
    }
    store = opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    assert list(store.read(STREAM))
    assert log(KILL)
    assert {**WRITES, **reads}[use](store)
    assert store.change_counter() == (1 if use in reads else 2)


@pytest.mark.inv("I-2")
def test_what_is_lost_amid_a_transaction_is_written_anew(host: FakeHost, opened: Any, log: Any) -> None:
    store = opened()

    def end() -> None:
        host.ports.at.clear()
        log(KILL)

    host.ports.at["append.inside"] = end
    assert [event.seq for event in store.append(STREAM, [draft(1), draft(2)], expected_seq=0)] == [1, 2]
    assert len(proved(store, STREAM)) == 2


def test_who_stops_amid_a_transaction_holds_nobody_up_for_long(host: FakeHost, opened: Any, log: Any) -> None:
    stopped, other = opened(), opened()
    ask = "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')"
    assert stopped._writer._connection.execute(ask).fetchone() == ("20s", "30s")  # who waits has the longer breath
    stopped._writer._connection.execute("SET idle_in_transaction_session_timeout = 50")

    def stop() -> None:
        host.ports.at.clear()
        assert other.append(STREAM, [draft(9)], expected_seq=0)[0].seq == 1

    host.ports.at["append.inside"] = stop
    with pytest.raises(StoreConflict):
        stopped.append(STREAM, [draft(1)], expected_seq=0)
    assert len(proved(other, STREAM)) == 1


@pytest.mark.inv("I-1")
def test_a_server_that_crashes_keeps_what_was_acknowledged_and_is_found_again(
    server: Any, schema: str, host: FakeHost
) -> None:
    store = open_store(Settings(schema_name=schema), host)
    events = store.append(STREAM, [draft(1), draft(2)], expected_seq=0)
    assert store.change_counter() == 1
    server.stop()
    try:
        for use in (store.change_counter, lambda: store.append(STREAM, [draft(3)], expected_seq=2)):
            with pytest.raises(StoreError) as caught:
                use()
            assert caught.value.code == "store.unreachable"
    finally:
        server.start()
    assert tuple(proved(store, STREAM)) == events
    assert store.append(STREAM, [draft(3)], expected_seq=2)[0].seq == 3
    store.close()


def test_a_server_that_starts_again_is_waited_for(server: Any, settings: Settings, host: FakeHost) -> None:
    store = open_store(settings, host)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            server.start()

    store._writer._link._sleep = sleep
    server.stop()
    assert store.append(STREAM, [draft(1)], expected_seq=0)[0].seq == 1
    assert slept == [0.25, 1.0]
    store.close()


# ------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_a_server_that_is_not_there_is_named(
    settings: Settings, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way_in: Callable[..., object]
) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(StoreError) as caught:
        way_in(settings, host)
    assert caught.value.code == "store.unreachable"
    assert str(tmp_path) in str(caught.value.where)
    assert "PGHOST" in str(caught.value.hint)


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_a_server_that_says_no_is_told_from_one_that_is_not_there_and_no_password_is_shown(
    settings: Settings, host: FakeHost, psql: Any, monkeypatch: pytest.MonkeyPatch, way_in: Callable[..., object]
) -> None:
    psql.execute("DROP ROLE IF EXISTS locked")
    psql.execute("CREATE ROLE locked LOGIN PASSWORD 'the right one'")
    monkeypatch.setenv("PGUSER", "locked")
    for password in ("hunter2", None):
        monkeypatch.setenv("PGPASSWORD", password) if password else monkeypatch.delenv("PGPASSWORD")
        with pytest.raises(StoreError) as caught:
            way_in(settings, host)
        assert caught.value.code == "store.denied"
        assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value.where} {caught.value.facts}"
    monkeypatch.setenv("PGUSER", "harness")
    monkeypatch.setenv("PGDATABASE", "none")
    with pytest.raises(StoreError, match='"none" does not exist') as caught:
        way_in(settings, host)
    assert caught.value.code == "store.denied"


def test_who_may_not_make_a_schema_is_told_so(
    settings: Settings, host: FakeHost, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    psql.execute("DROP ROLE IF EXISTS guest")
    psql.execute("CREATE ROLE guest LOGIN")
    monkeypatch.setenv("PGUSER", "guest")
    with pytest.raises(StoreError) as caught:
        open_store(settings, host)
    assert caught.value.code == "store.denied"


def test_a_service_says_where_the_server_is(
    server: Any, schema: str, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "services"
    file.write_text(f"[team]\nhost={server.folder}\nuser=harness\ndbname=postgres\npassword=hunter2\n")
    for name in server.env:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    said = look_at_store(Settings(schema_name=schema, service="team"), host)
    assert said == f"postgres service team, schema {schema} is not there yet, made when needed"
    with pytest.raises(StoreError) as caught:
        open_store(Settings(schema_name=schema, service="other"), host)
    assert caught.value.code == "store.unreachable"


# ------------------------------------------------------------------------------------------ errors of the server

FAILING = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END IF;
    RETURN NEW;
END $$
"""
STATES = {
    "53100": ("store.full", StoreError),
    "25006": ("store.readonly", StoreError),
    "55P03": ("store.busy", StoreError),
    "57014": ("store.busy", StoreError),
    "40001": ("store.busy", StoreError),
    "54000": ("store.too_large", StoreError),
    "42501": ("store.denied", StoreError),
    "58030": ("store.io", StoreError),
    "23505": ("store.corrupt", StoreCorrupt),
    "XX001": ("store.corrupt", StoreCorrupt),
}


def fail(log: Any, state: str, times: int) -> None:
    """Let the next inserts fail."""
    log("CREATE SEQUENCE tries")
    log(FAILING.format(state=state, times=times))
    log("CREATE TRIGGER fail BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION fail()")


@pytest.mark.inv("I-2")
@pytest.mark.parametrize("state", STATES)
def test_what_the_server_cannot_do_is_named_and_nothing_is_written(opened: Any, log: Any, state: str) -> None:
    store = opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    fail(log, state, 1_000)
    with pytest.raises(StoreError, match="on purpose") as caught:
        store.append(STREAM, [draft(2)], expected_seq=1, blobs={sha256(b"b").hexdigest(): b"b"}, summary=b"{}")
    assert (caught.value.code, type(caught.value)) == STATES[state]
    assert str(caught.value.where).startswith("postgres ")
    assert (len(proved(store, STREAM)), list(store.summaries()), store.change_counter()) == (1, [], 1)
    log("DROP TRIGGER fail ON events")
    assert store.append(STREAM, [draft(2)], expected_seq=1)[0].position == 2


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_the_server_puts_off_is_tried_again(opened: Any, log: Any, state: str) -> None:
    store = opened()
    fail(log, state, 2)
    assert store.append(STREAM, [draft(1)], expected_seq=0)[0].position == 1
    assert (len(proved(store, STREAM)), store.change_counter()) == (1, 1)


def test_a_log_that_another_holds_is_waited_for_and_then_called_busy(opened: Any, log: Any, psql: Any) -> None:
    store = opened()
    store._writer._connection.execute("SET lock_timeout = 50")
    log("SELECT 1")
    with psql.transaction():
        psql.execute("SELECT 1 FROM log FOR UPDATE")
        with pytest.raises(StoreError) as caught:
            store.append(STREAM, [draft(1)], expected_seq=0)
    assert caught.value.code == "store.busy"
    assert store.append(STREAM, [draft(1)], expected_seq=0)[0].seq == 1


@pytest.fixture
def few(psql: Any, schema: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Whoever connects now gets so many connections and no more, or as many as there are for -1."""
    role = f"few_{schema}"
    psql.execute(f"CREATE ROLE {role} LOGIN")
    psql.execute(f"GRANT CREATE ON DATABASE postgres TO {role}")
    monkeypatch.setenv("PGUSER", role)
    return lambda count: psql.execute(f"ALTER ROLE {role} CONNECTION LIMIT {count}")


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_a_server_without_a_connection_to_spare_is_waited_for_and_then_called_busy(
    settings: Settings, host: FakeHost, few: Callable[[int], None], way_in: Callable[..., object]
) -> None:
    few(0)
    before = host.ports.clock.monotonic()
    with pytest.raises(StoreError, match="too many connections") as caught:
        way_in(settings, host)
    assert (caught.value.code, caught.value.hint) == ("store.busy", None)
    assert host.ports.clock.monotonic() - before == pytest.approx(30)


@pytest.mark.parametrize("use", ["read", "write"])
def test_whoever_has_a_connection_to_spare_again_goes_on(
    opened: Any, log: Any, few: Callable[[int], None], use: str
) -> None:
    store = opened()
    store.append(STREAM, [draft(1)], expected_seq=0)
    link = store._writer._link
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            few(-1)

    link._sleep = sleep
    assert log(KILL)
    few(0)
    if use == "read":
        assert [event.seq for event in store.read(STREAM)] == [1]
    else:
        assert store.append(STREAM, [draft(2)], expected_seq=1)[0].seq == 2
    assert len(pauses) == 5


def test_a_server_that_does_not_wait_for_the_disk_is_found_by_a_look(
    server: Any, settings: Settings, host: FakeHost, psql: Any
) -> None:
    psql.execute("ALTER SYSTEM SET fsync = off")
    try:
        psql.execute("SELECT pg_reload_conf()")
        while psql.execute("SHOW fsync").fetchone() == ("on",):
            pass  # the server reads its settings when it comes to it
        with pytest.raises(StoreError) as caught:
            look_at_store(settings, host)
        assert caught.value.code == "store.not_durable"
    finally:
        psql.execute("ALTER SYSTEM RESET fsync")
        psql.execute("SELECT pg_reload_conf()")
        while psql.execute("SHOW fsync").fetchone() == ("off",):
            pass
