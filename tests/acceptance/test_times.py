"""When: the log tells it in UTC, wherever its host stands, and takes no time that does not say so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.errors import StoreError
from harness_hookspecs.store import Draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store
from tests.reference import calls, says


@pytest.fixture
def far_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Pacific/Chatham")  # a quarter of an hour past the hour
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.req("B-91")
def test_each_event_tells_its_moment_in_utc(play: Any, far_zone: None) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # what is stored has no more than milliseconds
    session = play(calls(("pure", {"note": "a"})), says("done"))
    assert session.run()["status"] == "completed"
    moments = [datetime.fromisoformat(event.timestamp) for event in session.events()]
    assert {moment.utcoffset() for moment in moments} == {timedelta(0)}
    assert all(before <= moment <= datetime.now(UTC) for moment in moments)


@pytest.mark.req("B-91")
@pytest.mark.parametrize("zone", [None, timezone(timedelta(hours=12, minutes=45))], ids=["no zone", "another zone"])
def test_a_moment_that_is_not_in_utc_is_refused(zone: timezone | None, tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=zone).isoformat(timespec="milliseconds")
    store = open_store(Settings(), FakeHost(tmp_path))
    try:
        draft = Draft("e1", "session.created", 1, "operator", moment, b"{}", b"{}", None)
        with pytest.raises(StoreError) as caught:
            store.append("session:s", [draft], expected_seq=0)
        assert (caught.value.code, store.head("session:s").seq) == ("store.timestamp", 0)
    finally:
        store.close()
