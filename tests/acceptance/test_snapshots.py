"""Snapshots are caches: with them, without them and with wrong ones a session is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import pytest

import harness_core
from harness_core import Host
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.snapshot import snapshot_of, state_of
from harness_core.kernel.state import SessionState
from harness_core.shell.machine import SessionMachine
from harness_core.shell.snapshots import fold_on, from_nearest
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Snapshot, Store, StoredEvent
from tests.reference import REFERENCE, write_reference

APART = 20


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, str]]:
    """The reference session, over: tools of every class, an approval that was answered, a retry, two processes."""
    with pytest.MonkeyPatch.context() as patch:
        write_reference(tmp_path_factory.mktemp("reference")).enter(patch)
        with Host.open() as host:
            session = host.run(REFERENCE, on_ask="suspend")
            [item] = host.approvals()
            host.answer(item["id"], "approve", digest=item["digest"])
        with Host.open() as host:
            assert host.resume(session["id"])["status"] == "completed"
            yield host, session["id"]


@pytest.fixture
def session(recorded: tuple[Host, str]) -> Iterator[tuple[Host, str]]:
    """The same, without snapshots before and after."""
    recorded[0].store.drop_snapshots()
    yield recorded
    recorded[0].store.drop_snapshots()


def machine(host: Host, session_id: str) -> SessionMachine:
    """What folds, and decides nothing."""
    nothing: Any = None
    return SessionMachine(session_id, nothing, host.store.blob)


def in_order(state: SessionState) -> str:
    """All of it, whose order matters; that of a set does not."""
    return repr(attrs.evolve(state, commands=set()))


class Counted:
    """A store that says which events were read of it."""

    def __init__(self, store: Store) -> None:
        self._store, self.seqs = store, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, stream: str, **bounds: Any) -> Iterator[StoredEvent]:
        for event in self._store.read(stream, **bounds):
            self.seqs.append(event.seq)
            yield event


class Keeps(Counted):
    """A store that keeps its snapshots to itself, with who made them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.made: list[tuple[str, Snapshot]] = []

    def put_snapshot(self, stream: str, seq: int, maker: str, content: bytes) -> None:
        self.made.append((maker, Snapshot(seq, content)))


@pytest.mark.inv("I-12")
def test_from_the_snapshot_at_any_event_the_fold_goes_on_to_the_same_state(session: tuple[Host, str]) -> None:
    host, session_id = session
    folds = machine(host, session_id)
    events = [decoded(stored) for stored in host.events(session_id)]
    whole, carried = folds.new_state(), folds.new_state()
    for event in events:
        folds.evolve(whole, event)
        folds.evolve(carried, event)
        content = snapshot_of(whole)
        again = state_of(content)
        assert (again, snapshot_of(again), snapshot_of(carried)) == (whole, content, content)
        assert in_order(again) == in_order(whole)
        assert all(again.approvals[one] is pending for one, pending in again.pending.items())
        carried = again  # so that each event is also folded into a state that was read back


@pytest.mark.inv("I-12")
@pytest.mark.req("B-95")
def test_with_snapshots_less_is_read_and_everything_is_shown_alike(session: tuple[Host, str]) -> None:
    host, session_id = session
    last = host.session(session_id)["last_seq"]
    seqs = (1, APART - 1, APART, APART + 1, 3 * APART - 2, last)
    shown = [(host.session(session_id, at=seq), host.replay(session_id, first=seq)) for seq in seqs]
    counted: Any = Counted(host.store)
    state = fold_on(counted, machine(host, session_id), events_apart=APART)
    assert counted.seqs == list(range(1, last + 1))
    counted.seqs.clear()
    assert fold_on(counted, machine(host, session_id), events_apart=APART) == state
    assert 0 < len(counted.seqs) <= 2 * APART
    assert [(host.session(session_id, at=seq), host.replay(session_id, first=seq)) for seq in seqs] == shown
    begins = [from_nearest(counted, machine(host, session_id), until=seq).seq for seq in seqs]
    assert begins[:4] == [0, 0, APART, APART]
    assert APART < begins[4] < seqs[4] - 10 < begins[5] <= last
    host.store.drop_snapshots()
    assert from_nearest(counted, machine(host, session_id)).seq == 0
    assert [(host.session(session_id, at=seq), host.replay(session_id, first=seq)) for seq in seqs] == shown


@pytest.mark.inv("I-12")
def test_a_snapshot_of_other_code_of_another_log_or_of_nonsense_is_ignored(session: tuple[Host, str]) -> None:
    host, session_id = session
    stream = f"session:{session_id}"
    keeps: Any = Keeps(host.store)
    state = fold_on(keeps, machine(host, session_id), events_apart=APART)
    (maker, first), (_, second) = keeps.made[:2]
    wrong: tuple[bytes, ...] = (second.content[:32], first.content, second.content[:-1], b"")
    names = ("failure", "approvals", "visit", "open", "role_calls", "causes", "commands", "usage")
    documents = (b"[]", b"{}", b"0", *(dumps({name: 0}) for name in names))
    damaged = [second.content.replace(b'"%b":' % name, b'"%b":0,"":' % name) for name in (b"usage", b"approvals")]
    wrong = (*wrong, *(second.content[:32] + one for one in documents), *damaged)
    assert second.content not in wrong
    for name, content in [("0" * 64, second.content), *((maker, one) for one in wrong)]:
        host.store.put_snapshot(stream, second.seq, name, content)
        assert from_nearest(host.store, machine(host, session_id)).seq == 0
        assert fold_on(host.store, machine(host, session_id)) == state
    host.store.put_snapshot(stream, second.seq, maker, second.content)
    assert from_nearest(host.store, machine(host, session_id)).seq == second.seq


@pytest.mark.inv("I-12")
def test_a_snapshot_past_the_end_of_the_log_is_ignored(session: tuple[Host, str]) -> None:
    host, session_id = session
    stream, folds = f"session:{session_id}", machine(host, session_id)
    fold_on(host.store, folds, events_apart=APART)
    ends_at = from_nearest(host.store, folds).seq - 1

    class Cut(Counted):
        """The store of which somebody cut the end off and left the snapshots."""

        def read(self, stream: str, **bounds: Any) -> Iterator[StoredEvent]:
            return (one for one in super().read(stream, **bounds) if one.seq <= ends_at)

    cut: Any = Cut(host.store)
    state = fold_on(cut, folds)
    host.store.drop_snapshots()
    assert (state.seq, state) == (ends_at, fold_on(host.store, folds, until=ends_at))
    assert host.store.head(stream).seq > ends_at


LOADS_THEN_UPGRADES = """
import sys
from harness_core.shell.machine import SessionMachine
from harness_core.shell.snapshots import from_nearest, evolve

class Store:
    def snapshot(self, stream, maker, *, until):
        print(maker)

if sys.argv[1:]:
    with open(evolve.__file__, "a") as file:
        file.write("# other code")
from_nearest(Store(), SessionMachine("s", None, None))
"""


@pytest.mark.inv("I-12")
def test_who_runs_on_after_an_upgrade_in_place_shares_no_snapshots_with_who_comes_after_it(tmp_path: Path) -> None:
    shutil.copytree(Path(harness_core.__file__).parent, tmp_path / "harness_core")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def maker_of(*upgrades: str) -> str:
        call = [sys.executable, "-c", LOADS_THEN_UPGRADES, *upgrades]
        return subprocess.run(call, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    before, amid, after = maker_of(), maker_of("upgrades"), maker_of()
    assert before == amid != after


@pytest.mark.inv("I-12")
@pytest.mark.parametrize("snapshots", [True, False], ids=["with", "without"])
def test_a_fold_begins_anew_in_the_machine_too(session: tuple[Host, str], snapshots: bool) -> None:
    host, session_id = session
    folds = machine(host, session_id)
    if snapshots:
        fold_on(host.store, folds, events_apart=APART)
    folds._executor_state = (("of another fold", 1), 0, None)
    assert bool(from_nearest(host.store, folds).seq) == snapshots
    assert folds._executor_state is None


@pytest.mark.inv("I-13")
def test_snapshots_take_no_more_room_than_the_log(session: tuple[Host, str]) -> None:
    host, session_id = session
    keeps: Any = Keeps(host.store)
    fold_on(keeps, machine(host, session_id), events_apart=1)
    kept_bytes = sum(len(one.content) for _, one in keeps.made)
    log = host.store.read(f"session:{session_id}")
    assert 0 < kept_bytes <= sum(len(event.payload) + len(event.refs) for event in log)


def test_a_session_goes_on_from_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_reference(tmp_path).enter(monkeypatch)
    with Host.open() as host:
        session_id = host.run(REFERENCE, on_ask="suspend")["id"]
        keeps: Any = Keeps(host.store)
        fold_on(keeps, machine(host, session_id), events_apart=5)
        maker, (seq, content) = keeps.made[-1]
        marked = content[32:].replace(b'"title":"', b'"title":"From the snapshot: ')
        [stands_at] = host.store.read(f"session:{session_id}", after=seq - 1, until=seq)
        marked = sha256(stands_at.hash + marked).digest() + marked
        host.store.put_snapshot(f"session:{session_id}", seq, maker, marked)
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"])
        document = host.resume(session_id)
        assert (document["status"], document["title"][:9]) == ("completed", "From the ")
        host.store.drop_snapshots()
        assert host.session(session_id)["title"] == document["title"].removeprefix("From the snapshot: ")
        assert host.replay(session_id, "skip-inference")["state_hash"] == document["state_hash"]
