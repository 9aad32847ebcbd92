"""Sessions that any version has recorded fold to the very document they had, and nobody is asked anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness_tool_effects.tool import EffectsTools

from harness_core.kernel.checking import history as checked
from harness_core.kernel.checking.check import check
from harness_core.kernel.projections.event import decoded
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.machine import SessionMachine
from harness_core.shell.opening import open_project
from harness_core.shell.ports import make_ports
from harness_core.shell.replay import replay_full
from harness_core.shell.replaying import replay_session
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.kit.codec import loads
from harness_hookspecs.store import Draft, Head, Store, verify_chain
from harness_provider_scripted.provider import ScriptedProvider
from harness_store_memory.log import Log
from harness_store_memory.store import MemoryStore
from tests.histories.form import FOLDER, History, document_of, names, read_history
from tests.reference import one_stage, write_site

VERSIONS = [folder for folder in FOLDER.iterdir() if (folder / "blobs").is_dir()]
HISTORIES = [pytest.param(one, name, id=f"{one.name}-{name}") for one in VERSIONS for name in names(one)]
pytestmark = pytest.mark.gate("G12")
READS = {"read", "head", "snapshot", "blob"}


class ReadOnly:
    """A store that can only be read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        assert name in READS, f"a fold called {name}"
        return getattr(self._store, name)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Who was called, of those that a session may call."""
    called = Counter[str]()
    for kind, name in ((ScriptedProvider, "complete"), (EffectsTools, "execute"), (EffectsTools, "probe")):
        monkeypatch.setattr(kind, name, lambda *_, _name=name: called.update([_name]))
    return called


def stored(history: History, folder: Path) -> MemoryStore:
    """A store that was given the history, event for event."""
    store = MemoryStore(Log(), FakeHost(folder).ports)
    drafts = [Draft(e.id, e.type, e.version, e.actor, e.timestamp, e.refs, e.payload) for e in history.events]
    store.append(history.events[0].stream, drafts, expected_seq=0, blobs=history.blobs)
    return store


@pytest.mark.inv("I-7", "I-11", "I-18")
@pytest.mark.parametrize(("version", "name"), HISTORIES)
def test_a_recorded_session_folds_to_the_very_document_it_had_and_nobody_is_called(
    version: Path, name: str, tmp_path: Path, nobody: Counter[str]
) -> None:
    history = read_history(version, name)
    stream, last = history.events[0].stream, history.events[-1]
    session_id = stream.removeprefix("session:")
    store = stored(history, tmp_path)
    assert verify_chain(history.events, Head(last.seq, last.hash)) == store.head(stream)
    assert document_of(ReadOnly(store), session_id) == history.document
    reader: Any = SessionMachine(session_id, None, store.blob)  # type: ignore[arg-type]
    report = replay_full(iter(history.events), reader, loads(history.document))
    assert (report.equal, report.events, report.model_calls, report.tool_calls) == (True, last.seq, 0, 0)
    assert not nobody


@pytest.mark.req("B-92", "B-97")
@pytest.mark.inv("I-11")
@pytest.mark.parametrize(("version", "name"), HISTORIES)
def test_a_recorded_session_verifies_and_is_decided_and_simulated_to_the_very_events_it_has(
    version: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody: Counter[str],
    record_property: Any,
) -> None:
    record_property("histories", 1)
    history = read_history(version, name)
    stream, last = history.events[0].stream, history.events[-1]
    store: Any = stored(history, tmp_path)
    told: dict[str, Any] = {"content": store.blob, "state_hash": loads(history.document)["state_hash"]}
    whole = checked.History(stream, history.events, Head(last.seq, last.hash), **told)
    assert check(whole).broken == ()
    write_site(tmp_path, stages=one_stage(), replies=()).enter(monkeypatch)
    opened = open_project(".", make_ports("threads"))
    for mode in ("skip-inference", "simulate"):
        report = replay_session(opened, ReadOnly(store), stream.removeprefix("session:"), mode, kept=None)
        assert (report.equal, report.diverged, report.events) == (True, None, last.seq), mode
    assert not nobody


@pytest.mark.inv("I-7")
def test_a_history_of_which_a_byte_was_changed_is_found() -> None:
    history = read_history(VERSIONS[0], "completed")
    last = history.events[-1]
    for index, event in enumerate(history.events):
        changed = [*history.events]
        changed[index] = event._replace(payload=event.payload[:-1] + b" }")
        with pytest.raises(StoreCorrupt, match=f"event {event.seq} "):
            verify_chain(changed, Head(last.seq, last.hash))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_each_version_has_histories_of_every_way_a_session_goes(version: Path) -> None:
    known = [read_history(version, name) for name in names(version)]
    assert len(known) >= 30
    statuses = Counter(loads(history.document)["status"] for history in known)
    assert statuses.keys() == {"completed", "failed", "cancelled", "active", "awaiting_approval"}
    types = {event.type for history in known for event in history.events}
    assert types >= {
        "approval.granted", "approval.denied", "approval.bypassed", "steering.received", "effect.in_doubt",
        "effect.settled", "session.paused", "session.resumed", "config.migrated", "retry.scheduled",
        "budget.exhausted", "budget.raised", "harness.tool_call.failed", "artifact.rejected", "validation.failed",
        "session.forked",
    }  # fmt: skip


@pytest.mark.inv("I-11", "I-19")
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_the_configuration_of_a_recorded_session_still_has_its_digest(version: Path) -> None:
    for name in names(version):
        history = read_history(version, name)
        created = decoded(history.events[0]).payload
        config = EffectiveConfig.from_document(loads(history.blobs[created["config_ref"]]))
        assert config.digest == created["config_digest"], name


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_the_contents_that_events_name_lie_beside_them(version: Path) -> None:
    for name in names(version):
        history = read_history(version, name)
        for event in map(decoded, history.events):
            named = [value for field, value in event.payload.items() if field.endswith(("_ref", "manifestHash"))]
            assert history.blobs.keys() >= set(named) - {None}, (name, event.seq)
