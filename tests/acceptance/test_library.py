"""The library's front door as the README shows it, and as the contract has it."""

from __future__ import annotations

import errno
import inspect
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import harness_core
import harness_hookspecs.host
from harness_core import Host
from harness_core.cli.main import main
from harness_core.shell.host import NAMED_KEPT
from harness_core.shell.replay_modes import MODES
from harness_core.shell.replaying import replay_session
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.store import Head, Store, StoredEvent
from tests.docs.examples import Program, examples
from tests.reference import calls, one_stage, rechained, says, write_site

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LIBRARY = README[README.index("## The library") : README.index("## A plugin")]
PLUGIN = README[README.index("## A plugin") : README.index("## What it is")]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of a person without any configuration; they stand in it."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    desk = tmp_path / "desk"
    desk.mkdir()
    monkeypatch.chdir(desk)
    return desk


def test_the_ten_lines_of_the_readme_run(desk: Path) -> None:
    assert main(["demo", "harness-demo"]) == 0
    [program] = [example for example in examples(LIBRARY) if isinstance(example, Program)]
    assert len(program.text.splitlines()) <= 10
    call = [sys.executable, "-c", program.text]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert (said[0], said[-1]) == ("completed", "True")
    assert '"files":["tally.py","test_tally.py","README.md"]' in said[-2]


@pytest.mark.parametrize("stderr", ["lost", "none"])
def test_a_listener_that_breaks_stops_nothing_also_where_nobody_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str
) -> None:
    class Lost:
        def write(self, _: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    def breaks(_: object) -> None:
        raise ValueError("broken")

    site = write_site(tmp_path, stages=one_stage(), replies=[says("done")]).enter(monkeypatch)
    with Host.open(site.project, on_event=breaks) as host, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Lost() if stderr == "lost" else None)
        assert host.run("Go.")["status"] == "completed"


class Populous:
    """A store in which every id is a session's; says whose log is read."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self.read_streams: list[str] = []

    def head(self, _: str) -> Head:
        return self._head

    def read(self, stream: str, **_: int) -> Iterator[StoredEvent]:
        self.read_streams.append(stream)
        return iter(())

    def close(self) -> None:
        pass


class Proved(Populous):
    """Of which every log has one event, and is whole."""

    def head(self, stream: str) -> Head:
        (event,) = _one(stream)
        return Head(1, event.hash)

    def read(self, stream: str, **_: int) -> Iterator[StoredEvent]:
        self.read_streams.append(stream)
        return _one(stream)


def _one(stream: str) -> Iterator[StoredEvent]:
    return rechained([StoredEvent(1, stream, 1, "e1", "role.note", 1, "system", "Z", b"{}", b"{}", b"")])


def test_a_host_remembers_the_sessions_that_were_asked_for_last_and_not_all_that_ever_were(desk: Path) -> None:
    store: Any = Proved(Head(1, b""))
    ids = [f"00000000-0000-7000-8000-{number:012}" for number in range(1_000)]
    host = Host.open()
    host._store = store
    assert [*map(host.find, ids)] == ids
    with pytest.raises(ValueError, match="nobody foresaw"), host:
        raise ValueError("nobody foresaw it")
    assert store.read_streams == [f"session:{one}" for one in ids[-NAMED_KEPT:]], "these are proved as it ends"


def test_what_the_caller_raises_is_raised_also_where_the_log_is_closed_by_then(play: Any) -> None:
    session = play(says("done"))
    session.host.find(session.run()["id"])
    session.host.close()
    with pytest.raises(ValueError, match="the caller's"), session.host:
        raise ValueError("the caller's")


def test_what_the_caller_raises_is_raised_also_where_the_log_cannot_be_read_by_then(play: Any) -> None:
    session = play(says("done"))
    session.host.find(session.run()["id"])
    (file,) = Path(session.site.env["XDG_DATA_HOME"]).rglob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE events")
        connection.commit()
    with pytest.raises(ValueError, match="the caller's"), session.host:
        raise ValueError("the caller's")


class ReadFirst:
    """A store of which each log is read to its end before something else happens, and before anything is looked at."""

    def __init__(self, store: Store, happens: Callable[[], None]) -> None:
        self._store, self._happens, self._looks = store, happens, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        events = list(self._store.read(stream, after=after, until=until))
        self._happens()
        return iter(events)

    def change_counter(self) -> int:
        self._looks += 1
        assert self._looks < 20, "nothing more will change"
        return self._store.change_counter()


@pytest.mark.req("B-119")
def test_who_follows_sees_the_end_also_where_it_falls_between_two_looks(play: Any) -> None:
    session = play(calls(("network", {"note": "asked"})), says("done"))
    found = session.run()["id"]
    session.answer(session.pending()[0])
    with Host.open(session.site.project) as follower:
        ended: list[Any] = []
        follower._store = ReadFirst(follower.store, lambda: None if ended else ended.append(session.resume()))
        seen = [event.type for event in follower.events(found, follow=True)]
    assert (seen, seen[-1]) == (session.types(), "session.completed")


@pytest.mark.req("B-158")
def test_the_readme_says_what_this_is_and_no_class_of_the_contract_is_an_agent() -> None:
    text = README.lower()
    for words in ("orchestration kernel", "event-sourced runtime", "bounded autonomy", "deterministic shell"):
        assert re.search(rf"- \*\*(an? )?{words}\.\*\*", text), words
    assert "not an agent framework" in text
    public = [name for name in harness_hookspecs.__all__ if inspect.isclass(getattr(harness_hookspecs, name))]
    assert public
    assert not [name for name in public if re.search("agent|chain", name, re.IGNORECASE)]


def test_the_door_and_the_store_are_imported_without_what_stands_behind_them() -> None:
    program = "import harness_store_sqlite.store, sys; from harness_core import Host; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.split()
    assert "harness_core.shell.host" in loaded
    behind = ("attr", "pydantic", "yaml", "jsonschema_rs", "harness_core.kernel", "harness_core.settings")
    assert not [name for name in loaded if name.startswith(behind)]


def test_the_error_that_all_are_is_imported_beside_the_host(desk: Path) -> None:
    assert harness_core.HarnessError is HarnessError
    assert {"Host", "HarnessError"} <= set(harness_core.__all__)
    with pytest.raises(harness_core.HarnessError), Host.open(desk) as host:
        host.session("nobody")


def test_the_host_has_what_the_contract_names_and_nothing_that_it_does_not() -> None:
    ours, theirs = public_of(Host), public_of(harness_hookspecs.Host)
    assert {name: ours[name] for name in ours if name != "open"} == theirs  # whoever has a host did not open it


def public_of(kind: type) -> dict[str, list[tuple[str, Any, Any, Any]]]:
    """Each public name with its parameters as they are written; what is no method is read only and has none."""
    found: dict[str, list[tuple[str, Any, Any, Any]]] = {}
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        assert callable(member) or isinstance(member, classmethod | property), name
        given = [] if isinstance(member, property) else inspect.signature(getattr(kind, name)).parameters.values()
        found[name] = [(one.name, one.kind, one.default, one.annotation) for one in given]
    return found


def test_a_host_is_all_that_the_contract_says_also_to_a_type_checker(desk: Path) -> None:
    assert main(["init"]) == 0
    with Host.open() as host:
        door: harness_hookspecs.Host = host
        assert list(door.approvals(history=True)) == []


def test_a_session_document_is_frozen_and_an_error_has_a_code(desk: Path) -> None:
    assert main(["demo", "here"]) == 0
    with Host.open("here") as host:
        [session] = host.sessions()
        assert (session["schema"], session["status"]) == ("harness.session/1", "completed")
        with pytest.raises(TypeError):
            session["status"] = "failed"  # that it fails is the test
        with pytest.raises(HarnessError) as caught:
            host.session("nothing-like-this")
    assert caught.value.code == "session.not_found"


def test_the_plugin_of_the_readme_is_the_one_that_is_tried_in_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    [program] = [example for example in examples(PLUGIN) if isinstance(example, Program)]
    assert program.text in page


@pytest.mark.parametrize("seq", [0, -1, 99, 2**70, -(2**70)])
def test_a_session_as_of_an_event_that_it_has_not_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seq: int
) -> None:
    site = write_site(tmp_path, stages=one_stage(), replies=[says("done")]).enter(monkeypatch)
    with Host.open(site.project) as host:
        done = host.run("Go.")
        assert host.session("@last", at=done["last_seq"]) == done
        with pytest.raises(HarnessError, match=f"has no event {seq}: it has {done['last_seq']}") as raised:
            host.session("@last", at=seq)
        assert raised.value.code == "event.not_found"
        assert len(list(host.events("@last", after=seq))) == (done["last_seq"] if seq < 1 else 0)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_a_replay_stands_where_it_is_asked_for(mode: str) -> None:
    for place in (harness_hookspecs.host.Host.replay, replay_session):
        assert f"``{mode}``" in str(place.__doc__)


def test_a_session_named_in_full_is_found_without_a_look_at_the_others(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(says("done"))
    found = session.run()["id"]

    def look(store: Any) -> Any:
        raise AssertionError("all sessions were looked at")

    monkeypatch.setattr(type(session.host.store), "summaries", look)
    assert session.host.find(found) == found
    for named in (found[:8], found.upper(), "\ud800" * 36):
        with pytest.raises(AssertionError):
            session.host.find(named)
