"""Files below a root: exactly the named file, nothing outside, whole or not at all, and typed errors only."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import HarnessError, NotFound, Refused, StoreError
from harness_hookspecs.host import FileFacts, Files

ROOT = Path(__file__).resolve().parents[2]
CASES = {case["id"]: case for case in map(json.loads, (ROOT / "tests/cases/ports.jsonl").read_text().splitlines())}
VERBS: dict[str, Callable[[Files, str], object]] = {
    "read": lambda files, path: files.read_bytes(path),
    "write": lambda files, path: files.write_bytes(path, b"new"),
    "append": lambda files, path: files.append_bytes(path, b"new"),
    "remove": lambda files, path: files.remove(path),
    "facts": lambda files, path: files.facts(path),
    "walk": lambda files, path: list(files.walk(path)),
    "make": lambda files, path: files.make_directory(path),
    "lock": lambda files, path: files.try_lock(path),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root with something inside, beside something that is not its business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder/file").write_bytes(b"file")
    (root / "file").write_bytes(b"content")
    (root / "to-folder").symlink_to(tmp_path / "outside")
    (root / "to-file").symlink_to(tmp_path / "outside/secret")
    (root / "to-inside").symlink_to("folder")
    (root / "to-nothing").symlink_to("nothing")
    return tmp_path


@pytest.fixture(params=["threads", "simulated"])
def files(request: pytest.FixtureRequest, place: Path) -> Iterator[Files]:
    ports = make_ports(request.param)
    yield ports.files(place / "root")
    ports.close()


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder, as another program sees it."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


# ------------------------------------------------------------------------------------------------- confinement


OUTSIDE = {
    "the parent": "..",
    "a file of the parent": "../outside/secret",
    "the parent by a folder": "folder/../../outside/secret",
    "up and down again": "folder/../file",
    "an absolute path": "/etc/passwd",
    "the root as an absolute path": "{root}/file",
    "a folder that is a link": "to-folder/secret",
    "a folder that is a link to a place inside": "to-inside/file",
    "a new file behind a link": "to-folder/new",
    "a folder behind a link": "to-folder/inner/new",
    "a zero byte": "file\0",
    "a zero byte before the way out": "folder\0/../../outside",
    "half a surrogate pair": "file\ud800",
}
LINKS = {"a link to a file": "to-file", "a link to a folder": "to-folder", "a link to nothing": "to-nothing"}


@pytest.mark.inv("I-34")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("path", OUTSIDE.values(), ids=OUTSIDE)
def test_a_path_that_leaves_the_root_is_refused_and_nothing_happens(
    files: Files, place: Path, path: str, verb: str
) -> None:
    before = state(place)
    with pytest.raises(Refused) as caught:
        VERBS[verb](files, path.format(root=place / "root"))
    assert caught.value.code == "path.outside"
    json.dumps(caught.value.facts).encode("utf-8", "strict")
    assert state(place) == before


@pytest.mark.parametrize("verb", ["read", "write", "append", "walk", "make", "lock"])
@pytest.mark.parametrize("path", LINKS.values(), ids=LINKS)
def test_a_link_is_not_followed_at_the_end_either(files: Files, place: Path, path: str, verb: str) -> None:
    before = state(place)
    with pytest.raises(Refused) as caught:
        VERBS[verb](files, path)
    assert caught.value.code == "path.outside"
    assert state(place) == before


def test_a_link_itself_can_be_looked_at_listed_and_removed(files: Files, place: Path) -> None:
    facts = files.facts("to-file")
    assert facts is not None and facts.kind == "symlink"
    assert {name for name, found in files.walk() if found.kind == "symlink"} == {
        "to-file", "to-folder", "to-inside", "to-nothing",
    }  # fmt: skip
    for name in ("to-file", "to-folder", "to-nothing"):
        files.remove(name)
        assert files.facts(name) is None
    assert (place / "outside/secret").read_bytes() == b"secret"


@pytest.mark.parametrize("when", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(
    place: Path, verb: str, when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two steps of the call somebody puts a link to outside in the folder's place."""
    root, outside = place / "root", place / "outside"
    (outside / "file").write_bytes(b"theirs")
    files = make_ports("threads").files(root)
    before = state(outside)
    steps = [0]

    def swap() -> None:
        steps[0] += 1
        if steps[0] == when + 1:
            (root / "folder").rename(root / "moved")
            (root / "folder").symlink_to(outside)

    for name in ("open", "stat", "mkdir", "replace", "unlink", "scandir"):
        monkeypatch.setattr(os, name, _after(getattr(os, name), swap))
    found: Any = None
    with contextlib.suppress(Refused, NotFound):
        found = VERBS[verb](files, "folder" if verb in ("walk", "make") else "folder/file")
    monkeypatch.undo()
    assert found != b"theirs"
    assert verb != "walk" or not found or [name for name, _ in found] == ["folder/file"]
    assert state(outside) == before


def _after(real: Callable[..., Any], action: Callable[[], None]) -> Callable[..., Any]:
    def called(*args: Any, **options: Any) -> Any:
        action()
        return real(*args, **options)

    return called


# ------------------------------------------------------------------------------------------------ exactly named


NAMES = {
    "a newline": "a\nb",
    "spaces around": " a ",
    "bytes that are not UTF-8": os.fsdecode(b"\xff\xfe"),
    "an accent, composed": "\u00e9",
    "an accent, decomposed": "e\u0301",
    "a star": "*",
    "dots": "...",
    "a dash": "-rf",
    "a backslash": "..\\file",
    "as long as a name may be": "\U0001f600" * 63,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_strange_name_is_a_name(files: Files, place: Path, name: str) -> None:
    try:
        (place / "root" / name).touch()
        (place / "root" / name).unlink()
    except OSError as error:
        pytest.skip(f"this file system has no such name: {error}")
    files.write_bytes(f"new/{name}", b"1")
    assert files.read_bytes(f"new/{name}") == b"1"
    assert [found for found, _ in files.walk("new")] == [f"new/{name}"]
    assert os.listdir(place / "root/new") == [name]
    files.remove(f"new/{name}")
    with pytest.raises(NotFound) as caught:
        files.read_bytes(f"new/{name}")
    json.dumps(caught.value.facts).encode("utf-8", "strict")


def test_exactly_the_named_file_is_written_beside_its_look_alike(files: Files) -> None:
    case = CASES["BR-086"]
    assert "I-34" in case["invariants"]
    plain, special = "9.41.05 AM.txt", "9.41.05\u202fAM.txt"
    files.write_bytes(plain, b"plain")
    files.write_bytes(special, b"special")
    files.write_bytes(plain, b"changed")
    assert (files.read_bytes(plain), files.read_bytes(special)) == (b"changed", b"special")


def test_paths_are_read_part_by_part(files: Files) -> None:
    assert files.read_bytes("./folder//file") == files.read_bytes("folder/./file") == b"file"
    facts = files.facts(".")
    assert facts is not None and facts.kind == "directory"
    assert files.facts("folder") == files.facts("folder/")


# ------------------------------------------------------------------------------------------------------ reading


def test_reading_stops_at_the_limit(files: Files) -> None:
    assert files.read_bytes("file", limit_bytes=3) == b"con"
    assert files.read_bytes("file", limit_bytes=0) == b""
    assert files.read_bytes("file", limit_bytes=100) == b"content"


NO_FILES: dict[str, tuple[str, type[HarnessError], str]] = {
    "nothing there": ("nothing", NotFound, "path.not_found"),
    "no folder there": ("nothing/file", NotFound, "path.not_found"),
    "a file as a folder": ("file/inner", NotFound, "path.not_a_folder"),
    "a folder": ("folder", Refused, "path.not_a_file"),
    "the root": (".", Refused, "path.not_a_file"),
    "the empty path": ("", Refused, "path.not_a_file"),
    "a pipe": ("pipe", Refused, "path.not_a_file"),
    "a name too long": ("x" * 300, Refused, "path.unusable"),
}


@pytest.mark.parametrize(("path", "kind", "code"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_cannot_be_read_and_says_why(
    files: Files, place: Path, path: str, kind: type[HarnessError], code: str
) -> None:
    os.mkfifo(place / "root/pipe")  # without a writer: opening it must not block
    with pytest.raises(kind) as caught:
        files.read_bytes(path)
    assert caught.value.code == code
    if path not in {"folder", ".", "", "pipe", "x" * 300}:
        assert files.facts(path) is None


def test_a_missing_root_is_a_missing_file_and_is_made_by_writing(tmp_path: Path) -> None:
    files = make_ports("threads").files(tmp_path / "not/yet")
    assert files.facts("a") is None
    for verb in ("read", "remove", "walk"):
        with pytest.raises(NotFound):
            VERBS[verb](files, "a")
    files.write_bytes("a/b", b"1")
    assert (tmp_path / "not/yet/a/b").read_bytes() == b"1"


def test_facts_are_of_the_path_itself(files: Files, place: Path) -> None:
    os.chmod(place / "root/file", 0o640)
    facts = files.facts("file")
    assert facts is not None
    assert facts == FileFacts("file", 7, facts.modified_ns, 0o640)
    os.mkfifo(place / "root/pipe")
    kinds = {name: found.kind for name, found in files.walk() if "/" not in name}
    assert kinds == {
        "file": "file", "folder": "directory", "pipe": "other",
        **dict.fromkeys(("to-file", "to-folder", "to-inside", "to-nothing"), "symlink"),
    }  # fmt: skip


def test_a_walk_goes_folder_by_folder_each_sorted(tmp_path: Path) -> None:
    for name in ("b/2/x", "b/1", "a", "b-", "c/deep/er/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = make_ports("threads").files(tmp_path)
    walked = [name for name, _ in files.walk()]
    assert walked == ["a", "b", "b-", "c", "b/1", "b/2", "b/2/x", "c/deep", "c/deep/er", "c/deep/er/y"]
    assert [name for name, _ in files.walk("c")] == ["c/deep", "c/deep/er", "c/deep/er/y"]
    for path in ("a", "nothing"):
        with pytest.raises(NotFound):
            list(files.walk(path))


# ------------------------------------------------------------------------------------------------------ writing


def test_a_write_keeps_the_mode_and_a_new_file_gets_the_umask(files: Files, place: Path) -> None:
    os.chmod(place / "root/file", 0o4751)
    before = os.umask(0o027)
    try:
        files.write_bytes("file", b"changed")
        files.write_bytes("made/by/the/way", b"new")
        assert os.umask(0o027) == 0o027  # it is the process's, and was not touched
    finally:
        os.umask(before)
    assert stat.S_IMODE((place / "root/file").stat().st_mode) == 0o4751
    assert stat.S_IMODE((place / "root/made/by/the/way").stat().st_mode) == 0o640
    assert stat.S_IMODE((place / "root/made").stat().st_mode) == 0o750


def test_a_write_replaces_the_file_in_one_step_and_leaves_nothing_else(files: Files, place: Path) -> None:
    with (place / "root/file").open("rb") as reader:
        files.write_bytes("file", b"x" * 1_000_000)
        assert reader.read() == b"content"  # who has it open keeps what was there
    assert files.read_bytes("file") == b"x" * 1_000_000
    assert sorted(os.listdir(place / "root")) == ["file", "folder", "to-file", "to-folder", "to-inside", "to-nothing"]


NO_TARGETS = {"folder": "path.not_a_file", ".": "path.not_a_file", "file/inner": "path.not_a_folder"}


@pytest.mark.parametrize(("path", "code"), NO_TARGETS.items())
def test_what_is_no_file_is_not_replaced(files: Files, place: Path, path: str, code: str) -> None:
    before = state(place)
    with pytest.raises(Refused) as caught:
        files.write_bytes(path, b"new")
    assert caught.value.code == code
    assert state(place) == before


FAULTS = {"write": errno.ENOSPC, "fsync": errno.EDQUOT, "replace": errno.EIO, "fchmod": errno.EPERM}


@pytest.mark.parametrize(("step", "number"), FAULTS.items())
def test_a_write_that_fails_at_any_step_is_typed_and_changes_nothing(
    files: Files, place: Path, step: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(place)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError if number in (errno.ENOSPC, errno.EDQUOT) else Refused) as caught:
        files.write_bytes("file", b"new")
    monkeypatch.undo()
    assert caught.value.code == ("store.full" if isinstance(caught.value, StoreError) else "path.unusable")
    assert state(place) == before


def test_a_file_larger_than_allowed_is_an_error_and_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    code = (
        "import sys, pathlib, resource\n"
        "from harness_core.shell.ports import make_ports\n"
        "from harness_hookspecs.errors import StoreError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    make_ports('threads').files(pathlib.Path(sys.argv[1])).write_bytes('file', b'x' * 100_000)\n"
        "except StoreError as error:\n    print(error.code)\n"
    )
    path = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "store.full", done.stderr
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_bytes() == b"old"


def test_what_is_added_stands_at_the_end_and_no_folder_is_made_for_it(files: Files, place: Path) -> None:
    files.append_bytes("file", b" and")
    files.append_bytes("file", b" more")
    files.append_bytes("folder/new", b"new")
    assert (files.read_bytes("file"), files.read_bytes("folder/new")) == (b"content and more", b"new")
    os.mkfifo(place / "root/pipe")  # without a reader: opening it must not block
    before = state(place)
    for path, kind in {"none/new": NotFound, "folder": Refused, "pipe": Refused}.items():
        with pytest.raises(kind):
            files.append_bytes(path, b"new")
    assert state(place) == before
    with pytest.raises(NotFound):
        make_ports("threads").files(place / "none").append_bytes("new", b"new")
    assert not (place / "none").exists()


def test_a_folder_is_made_with_its_parents_and_may_exist(files: Files, place: Path) -> None:
    files.make_directory("a/b/c")
    files.make_directory("a/b/c")
    assert (place / "root/a/b/c").is_dir()
    with pytest.raises(Refused) as caught:
        files.make_directory("file")
    assert caught.value.code == "path.not_a_folder"


# ------------------------------------------------------------------------------------------------------- locks


def test_a_file_lock_has_one_holder_and_is_free_when_given_back(files: Files, place: Path) -> None:
    held = files.try_lock("locks/one")
    assert held is not None
    assert files.try_lock("locks/one") is None
    other = files.try_lock("locks/two")
    assert other is not None
    held.release()
    held.release()
    again = files.try_lock("locks/one")
    assert again is not None
    again.release()
    other.release()
    assert sorted(os.listdir(place / "root/locks")) == ["one", "two"]
    with pytest.raises(Refused):
        files.try_lock("folder")


def test_a_file_lock_is_free_once_its_holder_is_dead(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom harness_core.shell.ports import make_ports\n"
        "held = make_ports('threads').files(pathlib.Path(sys.argv[1])).try_lock('lock')\n"
        "print('held' if held else 'not held', flush=True)\nsys.stdin.read()\n"
    )
    files = make_ports("threads").files(tmp_path)
    path = os.pathsep.join([str(ROOT), *sys.path])
    call = [sys.executable, "-c", code, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(call, env={**os.environ, "PYTHONPATH": path}, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "held"
        assert files.try_lock("lock") is None
        child.kill()
    held = files.try_lock("lock")
    assert held is not None
    held.release()
