"""The setting ``anchor``: heads outside the store, by which a store that was put back to an older copy is found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_core.shell.anchor import anchor_of
from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import StoreError
from harness_hookspecs.store import Head
from tests.reference import Site, calls, one_stage, says, write_site

Command = Callable[..., Any]
REPLIES = [
    {"when": {"contains": "W-ASKS", "turn": 1}, **calls(("network", {"note": "n"}))},
    says("Done."),
]


def _anchor(kind: str, root: Path) -> str:
    if kind == "file":
        (root / "elsewhere").mkdir()
        return f"file:{root / 'elsewhere' / 'heads.jsonl'}"
    subprocess.run(["git", "init", "-q", str(root / "elsewhere")], check=True)
    return f"git:{root / 'elsewhere'}" + ("#refs/heads/kept" if kind == "branch" else "")


@pytest.fixture(params=["file", "ref", "branch"])
def kind(request: pytest.FixtureRequest) -> str:
    """A file, the usual ref, or one that is named."""
    return str(request.param)


@pytest.fixture
def site(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project with an anchor."""
    settings = {"anchor": _anchor(kind, tmp_path)}
    return write_site(tmp_path, stages=one_stage(), replies=REPLIES, harness=settings).enter(monkeypatch)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project without one."""
    return write_site(tmp_path, stages=one_stage(), replies=REPLIES).enter(monkeypatch)


@pytest.fixture
def harness(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json; gives its document."""

    def run(*words: str, exits: int = 0) -> Any:
        capsys.readouterr()
        assert main([*words, "--json"]) == exits
        return json.loads(capsys.readouterr().out)

    return run


def _data(site: Site) -> Path:
    return Path(site.env["XDG_DATA_HOME"])


def _put_back(site: Site, copy: Path) -> None:
    shutil.rmtree(_data(site))
    shutil.copytree(copy, _data(site))


def test_the_head_of_each_session_that_ends_is_kept_and_agrees(
    site: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [harness("run", text)["id"] for text in ("one", "two")]
    every = [harness("events", "verify", one) for one in ids]
    assert all(one["equal"] and one["anchor"]["head"] == one["head"] for one in every)
    found = every[1]
    assert str(site.project.parent / "elsewhere") in found["anchor"]["place"]
    assert main(["events", "verify"]) == 0
    assert f"the anchor's head at seq {found['head']['seq']} agrees" in capsys.readouterr().out


@pytest.mark.inv("I-7")
def test_a_store_put_back_to_an_older_copy_is_found_by_every_session(
    site: Site, harness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = harness("run", "old")["id"]
    shutil.copytree(_data(site), tmp_path / "copy")
    lost = harness("run", "lost")["id"]
    _put_back(site, tmp_path / "copy")
    found = harness("events", "verify", old, exits=15)
    assert (found["equal"], found["bad"]["code"]) == (False, "store.put_back")
    assert lost[-8:] in found["bad"]["message"]
    assert main(["events", "verify", old]) == 15
    assert "put back to an older copy" in capsys.readouterr().out
    of_lost = harness("events", "verify", lost[-8:], exits=15)
    assert (of_lost["session_id"], of_lost["events"]) == (lost, 0)
    assert (of_lost["bad"]["code"], of_lost["bad"]["seq"]) == ("store.tail_missing", 1)
    harness("events", "verify", "nobody", exits=4)
    site.write("harness", {})
    assert harness("events", "verify", old)["equal"] is True, "nothing else tells"


@pytest.mark.inv("I-7")
def test_a_session_put_back_to_before_its_end_is_found(site: Site, harness: Command, tmp_path: Path) -> None:
    waiting = harness("run", "W-ASKS", "--on-ask", "suspend", exits=10)
    shutil.copytree(_data(site), tmp_path / "copy")
    harness("cancel", waiting["id"])
    ended = harness("events", "verify", waiting["id"])
    _put_back(site, tmp_path / "copy")
    found = harness("events", "verify", waiting["id"], exits=15)
    assert (found["bad"]["code"], found["bad"]["seq"]) == ("store.tail_missing", waiting["last_seq"] + 1)
    assert found["anchor"]["head"] == ended["head"]
    harness("cancel", waiting["id"])  # it ends once more, with other times and other hashes
    again = harness("events", "verify", waiting["id"], exits=15)
    assert again["bad"]["code"] in ("store.changed", "store.tail_missing")


def test_a_session_that_ended_before_is_not_in_the_anchor_and_verifies(
    bare: Site, harness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = harness("run", "before")["id"]
    assert harness("events", "verify", before)["anchor"] is None
    bare.write("harness", {"anchor": _anchor("file", tmp_path)})
    harness("run", "after")
    found = harness("events", "verify", before)
    assert (found["equal"], found["anchor"]["head"]) == (True, None)
    assert main(["events", "verify", before]) == 0
    assert "the anchor has no head of it" in capsys.readouterr().out


# -- an anchor that is not reached ---


def _no_folder(root: Path) -> str:
    return f"file:{root / 'gone' / 'heads.jsonl'}"


def _pipe(root: Path) -> str:
    os.mkfifo(root / "pipe")
    return f"file:{root / 'pipe'}"


def _no_repository(root: Path) -> str:
    (root / "empty").mkdir()
    return f"git:{root / 'empty'}"


UNREACHABLE: dict[str, Callable[[Path], str]] = {
    "a folder that is gone": _no_folder,
    "a pipe that nobody reads": _pipe,
    "a folder that is no repository": _no_repository,
    "a repository that is gone": lambda root: f"git:{root / 'gone'}",
}


@pytest.mark.parametrize("what", UNREACHABLE)
def test_an_anchor_that_is_not_reached_warns_at_the_end_and_proves_nothing(
    what: str, bare: Site, harness: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare.write("harness", {"anchor": UNREACHABLE[what](tmp_path)})
    assert main(["run", "x", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "completed"
    assert "harness: the anchor " in err
    assert "is not reached" in err
    assert not (tmp_path / "gone").exists()
    found = harness("events", "verify", exits=15)
    assert (found["bad"]["code"], found["bad"]["seq"]) == ("store.anchor_unreachable", found["events"] + 1)
    assert found["anchor"]["head"] is None
    assert main(["events", "verify"]) == 15
    assert f"seq {found['events'] + 1}" not in capsys.readouterr().out, "no event of this log is wrong"


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place that does not answer, a share of a network that is gone for example."""
    gone = Event()
    monkeypatch.setattr("harness_core.shell.anchor.TIMEOUT_SECONDS", 0.05)
    for name in ("add", "lines"):
        monkeypatch.setattr(f"harness_core.shell.anchor._File.{name}", lambda *_: gone.wait())
    yield
    gone.set()


def test_an_anchor_that_never_answers_holds_nobody_up(
    never: None, bare: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    bare.write("harness", {"anchor": "file:heads.jsonl"})
    assert main(["run", "x", "--json"]) == 0
    assert "no answer within 0.05 seconds" in capsys.readouterr().err
    assert harness("events", "verify", exits=15)["bad"]["code"] == "store.anchor_unreachable"


# -- the places themselves ---


def test_heads_that_are_kept_at_the_same_moment_are_all_there(kind: str, tmp_path: Path) -> None:
    ports = make_ports("threads")
    anchor = anchor_of(_anchor(kind, tmp_path), tmp_path, ports)
    assert anchor is not None
    with pytest.raises(StoreError) as caught:
        anchor.heads()
    assert caught.value.code == "store.anchor_unreachable"
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: anchor.put(f"s{number}", Head(number, bytes([number] * 32))), range(1, 4)))
    anchor.put("s1", Head(9, b"\x09" * 32))
    assert anchor.heads()["s1"] == (Head(1, b"\x01" * 32), Head(9, b"\x09" * 32))
    assert {name: heads[0].seq for name, heads in anchor.heads().items()} == {"s1": 1, "s2": 2, "s3": 3}
    ports.close()


def test_a_line_that_was_torn_off_costs_no_other(tmp_path: Path) -> None:
    ports = make_ports("threads")
    anchor = anchor_of("file:heads.jsonl", tmp_path, ports)
    assert anchor is not None
    anchor.put("s1", Head(1, b"\x01" * 32))
    with (tmp_path / "heads.jsonl").open("ab") as file:
        file.write(b'{"session": "s2", "se')
    anchor.put("s3", Head(3, b"\x03" * 32))
    assert set(anchor.heads()) == {"s1", "s3"}
    ports.close()


@pytest.mark.parametrize("said", ["heads.jsonl", "file:", "git:", "git:a#b", "git:a#refs/a b", "ftp:a", ""])
def test_an_anchor_that_is_none_is_a_mistake_in_the_configuration(said: str, bare: Site, harness: Command) -> None:
    (bare.project / ".harness" / "harness.yaml").write_text(json.dumps({"anchor": said}), encoding="utf-8")
    document = harness("config", "check", exits=3)
    [problem] = document["facts"]["problems"]
    assert problem["path"] == "anchor"
    assert "file:PATH, git:FOLDER" in problem["message"]
