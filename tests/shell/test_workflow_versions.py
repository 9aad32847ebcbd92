"""Logs in which versions were registered in, each event of them read once; and the versions out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness_core.shell.workflow_versions import RegisteredVersions
from harness_hookspecs.errors import NotFound, StoreCorrupt
from harness_hookspecs.events import EVENTS
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import StoredEvent

ASKED, REGISTERED, OTHER = "compile.requested", "workflow.version_registered", "stage.left"


class Logs:
    """Logs in memory, which count what is read of them."""

    def __init__(self) -> None:
        self.logs: dict[str, list[StoredEvent]] = {}
        self.read_events = 0
        self.damaged: set[str] = set()

    def write(self, session: str, *events: tuple[str, dict[str, Any]]) -> None:
        log = self.logs.setdefault(session, [])
        for event_type, said in events:
            version, seq = EVENTS[event_type].version, len(log) + 1
            log.append(StoredEvent(
                seq, f"session:{session}", seq, f"e{seq}", event_type, version, "system", "", b"{}", dumps(said), b""
            ))  # fmt: skip

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        session = stream.removeprefix("session:")
        for event in self.logs.get(session, [])[after:]:
            self.read_events += 1
            yield event
        if session in self.damaged:
            raise StoreCorrupt("a byte was changed", code="store.changed")

    def blob(self, ref: str) -> bytes:
        return dumps({"metadata": {"name": "jobs"}, "steps": []})


def registered(number: int) -> list[tuple[str, dict[str, Any]]]:
    """A plan that was compiled for a definition, and what follows in such a log."""
    effect, version_id = f"eff{number}", f"wfv_{number:032x}"
    version = {"effect_id": effect, "workflow_version_id": version_id, "plan_ref": "p", "lock_ref": "l"}
    return [(ASKED, {"effect_id": effect, "definition_ref": f"d{number}"}), (REGISTERED, version)]


def document(session: str, status: str = "completed") -> dict[str, Any]:
    return {"id": session, "status": status, "created_at": ""}


def test_a_log_is_read_once_and_of_one_that_goes_on_what_is_new() -> None:
    logs: Any = Logs()
    logs.write("ended", *registered(1), *[(OTHER, {})] * 50)
    logs.write("runs", registered(2)[0], *[(OTHER, {})] * 50)
    versions = RegisteredVersions(logs)
    now = [document("runs", "active"), document("ended")]
    assert [one["definition_ref"] for one in versions.all(now)] == ["d1"]
    assert logs.read_events == 103
    logs.write("runs", registered(2)[1], *registered(1))
    found = versions.all(now)
    assert logs.read_events == 103 + 3
    assert [(one["definition_ref"], [of["id"] for of in one["sessions"]]) for one in found] == [
        ("d2", ["runs"]), ("d1", ["runs", "ended"]),
    ]  # fmt: skip
    versions.all([document("runs"), document("ended")])
    logs.write("runs", (OTHER, {}))
    versions.all([document("runs"), document("ended")])
    assert logs.read_events == 106


def test_a_version_by_its_whole_id_is_found_in_the_newest_log_that_has_it_and_no_other_is_read() -> None:
    logs: Any = Logs()
    logs.write("old", *registered(1), *[(OTHER, {})] * 50)
    logs.write("new", *registered(1))
    sessions = [document("new"), document("old")]
    versions = RegisteredVersions(logs)
    assert versions.find(sessions, f"wfv_{1:032x}")["definition_ref"] == "d1"
    assert logs.read_events == 2
    assert versions.find(sessions, "wfv_0000")["plan_ref"] == "p"
    with pytest.raises(NotFound):
        versions.find(sessions, "wfv_ffff")


def test_of_a_damaged_log_there_is_what_stands_before_and_of_a_removed_one_nothing() -> None:
    logs: Any = Logs()
    logs.write("whole", *registered(1))
    logs.write("damaged", *registered(2))
    logs.damaged.add("damaged")
    versions = RegisteredVersions(logs)
    assert len(versions.all([document("whole"), document("damaged")])) == 2
    assert [one["definition_ref"] for one in versions.all([document("damaged")])] == ["d2"]
