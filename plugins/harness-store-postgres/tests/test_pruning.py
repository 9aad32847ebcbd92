"""Streams that are removed: all or nothing, who knew them is refused, and the guards stand as before."""

from __future__ import annotations

from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved, seen
from harness_hookspecs.errors import StoreConflict, StoreError


@pytest.fixture
def stores(opened: Any) -> Any:
    """The same log, opened twice; it has two streams and a content."""
    both = opened(), opened()
    digest = both[0].put_blob(b"text " * 1000)
    both[0].append(STREAM, [draft(1, ref=digest), draft(2)], expected_seq=0, summary=b"{}")
    both[0].append(OTHER, [draft(1)], expected_seq=0)
    return both


def prune(store: Any) -> None:
    store.prune({STREAM: store.head(STREAM)}, [draft(7)._replace(type="store.pruned")])


@pytest.mark.inv("I-2")
@pytest.mark.inv("I-6")
def test_what_breaks_before_the_commit_leaves_all_of_it(stores: Any, opened: Any, host: FakeHost) -> None:
    before = [(seen(store), store.stats()) for store in stores]

    def fail() -> None:
        raise StoreError("amid it", code="test.amid")

    host.ports.at["append.inside"] = fail
    with pytest.raises(StoreError, match="amid it"):
        prune(stores[0])
    del host.ports.at["append.inside"]
    assert [(seen(store), store.stats()) for store in (*stores, opened())] == [*before, before[0]]
    stores[0].append(STREAM, [draft(3)], expected_seq=2)


@pytest.mark.inv("I-4")
def test_who_knew_a_stream_is_refused(stores: Any) -> None:
    one, other = stores
    other.append(STREAM, [draft(3)], expected_seq=2)  # from now on it knows the place
    prune(one)
    with pytest.raises(StoreConflict) as caught:
        other.append(STREAM, [draft(4)], expected_seq=3)
    assert (caught.value.code, caught.value.facts["head"]) == ("store.conflict", 0)
    assert [event.seq for event in other.append(STREAM, [draft(6)], expected_seq=0)] == [1]
    assert len(proved(one, STREAM)) == 1


@pytest.mark.req("B-88")
def test_the_guards_stand_after_it_as_before(stores: Any, opened: Any, log: Any) -> None:
    prune(stores[0])
    tables = "ARRAY['events', 'blobs', 'inbox']::regclass[]"
    assert log(f"SELECT count(*) FROM pg_trigger WHERE tgrelid = ANY({tables}) AND tgenabled <> 'O'") == [(0,)]
    for table in ("events", "blobs", "inbox", "streams", "log"):
        with pytest.raises(Exception, match="append-only"):
            log(f"DELETE FROM {table}")
    assert len(proved(opened(), OTHER)) == 1
