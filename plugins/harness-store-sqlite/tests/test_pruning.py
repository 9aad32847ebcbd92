"""Streams that are removed: all or nothing, who knew them is refused, and the guards stand as before."""

from __future__ import annotations

from typing import Any

import pytest
from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved, seen
from harness_hookspecs.errors import StoreConflict, StoreError
from harness_store_sqlite.log import SqliteStore
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import look_at_store, open_store

QUICK = Settings(synchronous="NORMAL")


@pytest.fixture
def host(tmp_path: Any) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def stores(host: FakeHost) -> Any:
    """The same log, opened twice; it has two streams and a content."""
    both = open_store(QUICK, host), open_store(QUICK, host)
    digest = both[0].put_blob(b"text " * 1000)
    both[0].append(STREAM, [draft(1, ref=digest), draft(2)], expected_seq=0, summary=b"{}")
    both[0].append(OTHER, [draft(1)], expected_seq=0)
    yield both
    for store in both:
        store.close()


def prune(store: SqliteStore) -> None:
    store.prune({STREAM: store.head(STREAM)}, [draft(7)._replace(type="store.pruned")])


@pytest.mark.inv("I-2")
@pytest.mark.inv("I-6")
def test_what_breaks_before_the_commit_leaves_all_of_it(stores: Any, host: FakeHost) -> None:
    before = [(seen(store), store.stats()._replace(wal_bytes=0)) for store in stores]

    def fail() -> None:
        raise StoreError("amid it", code="test.amid")

    host.ports.at["append.inside"] = fail
    with pytest.raises(StoreError, match="amid it"):
        prune(stores[0])
    del host.ports.at["append.inside"]
    assert [(seen(store), store.stats()._replace(wal_bytes=0)) for store in stores] == before
    assert look_at_store(QUICK, host).endswith("opens")
    stores[0].append(STREAM, [draft(3)], expected_seq=2)


@pytest.mark.inv("I-4")
def test_who_knew_a_stream_is_refused_and_leaves_no_event_astray(stores: Any, tmp_path: Any) -> None:
    one, other = stores
    other.append(STREAM, [draft(3)], expected_seq=2)  # from now on it knows the place
    prune(one)
    with pytest.raises(StoreConflict) as caught:
        other.append(STREAM, [draft(4)], expected_seq=3)
    assert (caught.value.code, caught.value.facts["head"]) == ("store.conflict", 0)
    one.append("session:new", [draft(5)], expected_seq=0)
    with pytest.raises(StoreConflict):
        other.append(STREAM, [draft(4)], expected_seq=3)
    made = one.backup(tmp_path / "copy.db")  # which is refused when an event belongs to no stream
    assert set(made.heads) == {OTHER, "session:new", "store:main"}
    assert [event.seq for event in other.append(STREAM, [draft(6)], expected_seq=0)] == [1]
    assert len(proved(one, STREAM)) == 1


@pytest.mark.req("B-88")
def test_the_guards_stand_after_it_as_before(stores: Any, host: FakeHost) -> None:
    prune(stores[0])
    with sqlite.connect(str(host.data_dir / "harness.db")) as connection:
        for table in ("events", "blobs", "inbox", "streams"):
            triggers = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (f"{table}_no_delete",))
            assert triggers.fetchone() == (1,)
    assert look_at_store(QUICK, host).endswith("opens")
