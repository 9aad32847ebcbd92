"""The plug is pulled after every operation of a disk: what was acknowledged is there, and the file is never broken.

A workload runs on a disk that remembers what was written and what was synced. After each of its operations the disk is
made as it may be found after a power loss: of what was not synced none, all, some of the writes, or some of their
sectors are there. Each such image is opened by the store itself. A failure names its seed, operation and draw; the
same seed fails there again.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import OTHER, STREAM, draft, proved
from harness_hookspecs.errors import NotFound
from harness_hookspecs.store import Store
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

pytestmark = pytest.mark.gate("G2")
DEEP = os.environ.get("HARNESS_TEST_PROFILE") == "deep"
SEEDS = 110 if DEEP else 16
DRAWS = 10 if DEEP else 5
"""How many images are drawn at random after each operation, beside those with none and with all that was unsynced."""

WORKS = 12
SECTOR_BYTES = 512
Synchronous = Literal["FULL", "NORMAL"]
State = tuple[Any, ...]


# ------------------------------------------------------------------------------------------------- the workload


class Recorded(NamedTuple):
    """What one workload left behind."""

    trace: Sequence[Any]
    states: list[State]  # before the first work, and after each
    blobs: list[str]
    file: str


def recorded(disk: Any, folder: Path, seed: int, synchronous: Synchronous, patch: pytest.MonkeyPatch) -> Recorded:
    """Run the workload of a seed; the making of the file is part of it."""
    draw = random.Random(seed)
    disk.trace.clear()
    disk.checkpoint_pages = draw.choice([2, 6, 16, 1000])
    patch.setattr(os, "link", _noted_link(disk, os.link))
    patch.setattr(os, "fsync", lambda handle: disk.note("sync_folder"))
    host, settings = FakeHost(folder), Settings(synchronous=synchronous)
    blobs: list[str] = []
    store = open_store(settings, host, database=disk.database)
    disk.note("done")
    states, reading = [state_of(store, blobs)], None
    for _ in range(WORKS):
        work = draw.choice([_append, _append, _append, _batch, _content, _take, _snapshot, "open", "read"])
        if callable(work):
            work(store, draw, blobs)
        elif work == "open":
            store.close()
            store = open_store(settings, host, database=disk.database)
        else:  # a reader in the middle of a page keeps the write-ahead log from beginning anew
            reading = store._readers._connect().execute("SELECT seq FROM events") if reading is None else None
        disk.note("done")
        states.append(state_of(store, blobs))
    store.close()
    patch.undo()
    return Recorded(list(disk.trace), states, blobs, str(host.data_dir / "harness.db"))


def _noted_link(disk: Any, link: Callable[..., None]) -> Callable[..., None]:
    def noted(source: Path, target: Path) -> None:
        link(source, target)
        disk.note("link", str(source), data=os.fsencode(target))

    return noted


def _append(store: Store, draw: random.Random, blobs: list[str]) -> None:
    stream = draw.choice([STREAM, OTHER])
    store.append(stream, [draft(text="x" * draw.randrange(3000))], expected_seq=store.head(stream).seq)


def _batch(store: Store, draw: random.Random, blobs: list[str]) -> None:
    drafts = [draft(number) for number in range(draw.choice([2, 5, 70]))]
    store.append(STREAM, drafts, expected_seq=None, summary=b'{"batch":%d}' % len(drafts))


def _content(store: Store, draw: random.Random, blobs: list[str]) -> None:
    content = draw.randbytes(draw.choice([10, 5000, 20_000]))
    digest = sha256(content).hexdigest()
    store.append(OTHER, [draft(text=digest)], expected_seq=None, blobs={digest: content})
    blobs.append(digest)


def _take(store: Store, draw: random.Random, blobs: list[str]) -> None:
    waiting = store.take("session")
    if not waiting:
        store.post("session", f"c{store.head(STREAM).seq}", b"{}")
        return
    store.append(STREAM, [draft(), draft()], expected_seq=None, taken={waiting[0].command_id: 0})


def _snapshot(store: Store, draw: random.Random, blobs: list[str]) -> None:
    store.put_snapshot(STREAM, store.head(STREAM).seq, "maker", draw.randbytes(3000))


def state_of(store: Any, blobs: Sequence[str]) -> State:
    """What the store holds, its chains proved; of the blobs given, those that are there."""
    heads = tuple((stream, store.head(stream)) for stream in store.streams() if proved(store, stream))
    posted = tuple(map(tuple, store._readers.all("SELECT command_id, body, taken_seq FROM inbox")))
    return heads, tuple(sorted(store.summaries())), posted, tuple(digest for digest in blobs if _has(store, digest))


def _has(store: Store, digest: str) -> bool:
    try:
        return bool(store.blob(digest))
    except NotFound:
        return False


# ----------------------------------------------------------------------------------------------------- the disk


class Content:
    """One file's content: what a sync has made sure of, and what was written since."""

    def __init__(self) -> None:
        self.safe = b""
        self.unsynced: list[Any] = []

    def sync(self) -> None:
        """Everything so far is safe."""
        self.safe, self.unsynced = self.found(lambda step: step), []

    def found(self, kept: Callable[[Any], Any]) -> bytes:
        """What is found when ``kept`` says what is there of each unsynced step, ``None`` for nothing."""
        found = bytearray(self.safe)
        for step in self.unsynced:
            left = kept(step)
            if left is None:
                continue
            if left.kind == "truncate":
                del found[left.offset :]
                continue
            if len(found) < left.offset:
                found.extend(bytes(left.offset - len(found)))
            found[left.offset : left.offset + len(left.data)] = left.data
        return bytes(found)


class Folder:
    """Names of files: those that are safe, and those that a running program sees."""

    def __init__(self) -> None:
        self.safe: dict[str, Content] = {}
        self.seen: dict[str, Content] = {}

    def do(self, step: Any) -> None:
        """Do again what was done on the disk."""
        if step.kind in ("write", "truncate"):
            self.seen.setdefault(step.file, Content()).unsynced.append(step)
        elif step.kind == "sync" and step.file in self.seen:
            self.seen[step.file].sync()
            self.safe[step.file] = self.seen[step.file]  # SQLite syncs the folder as well after it made a log
        elif step.kind == "delete":
            self.seen.pop(step.file, None)
        elif step.kind == "link":
            self.seen[os.fsdecode(step.data)] = self.seen[step.file]
        elif step.kind == "sync_folder":
            self.safe = dict(self.seen)

    def image(self, file: str, draw: str) -> dict[str, bytes]:
        """The database and its log as they may be found, by the end of their names.

        Args:
            file: The database.
            draw: ``none`` or ``all`` of what is unsynced, else what the choice is drawn from.
        """
        keep = _KEEP.get(draw) or _Drawn(random.Random(draw))
        image = {}
        for end in ("", "-wal", "-journal"):
            name = file + end
            content = (self.seen if keep.name() else self.safe).get(name)
            if content is not None:
                image[end] = content.found(keep.step)
        return image


class _Drawn:
    """Keeps by lot: whole writes in one half of the images, single sectors in the other."""

    def __init__(self, lot: random.Random) -> None:
        self._lot = lot
        self._torn = lot.random() < 0.5
        self._share = lot.choice([0.1, 0.5, 0.5, 0.9])

    def name(self) -> bool:
        return self._lot.random() < 0.5

    def step(self, step: Any) -> Any:
        if not self._torn or step.kind == "truncate":
            return step if self._lot.random() < self._share else None
        return None if self._lot.random() > self._share else self._tear(step)

    def _tear(self, step: Any) -> Any:
        """From some sector on, or up to one, the write is not there."""
        edges = range(-step.offset % SECTOR_BYTES, len(step.data), SECTOR_BYTES)
        edge = self._lot.choice(edges) if edges else len(step.data)
        if self._lot.random() < 0.5:
            return step._replace(data=step.data[:edge])
        return step._replace(offset=step.offset + edge, data=step.data[edge:])


class _All:
    def name(self) -> bool:
        return True

    def step(self, step: Any) -> Any:
        return step


class _None:
    def name(self) -> bool:
        return False

    def step(self, step: Any) -> Any:
        return None


_KEEP: dict[str, Any] = {"none": _None(), "all": _All()}


def images(run: Recorded, seed: int) -> Iterator[tuple[int, str, int, dict[str, bytes]]]:
    """After each operation: its number, how the image was drawn, how many works were done, and the image."""
    folder, done = Folder(), -1
    for cut, step in enumerate(run.trace):
        folder.do(step)
        done += step.kind == "done"
        for draw in ("none", "all", *(f"{seed} {cut} {number}" for number in range(DRAWS))):
            yield cut, draw, done, folder.image(run.file, draw)


# --------------------------------------------------------------------------------------------------- the promise


class Opened:
    """Opens images with the store and tells what it holds; the same image is opened once."""

    def __init__(self, disk: Any, folder: Path, run: Recorded, synchronous: Synchronous) -> None:
        self._disk, self._run = disk, run
        self._host, self._settings = FakeHost(folder), Settings(synchronous=synchronous)
        self._known: dict[bytes, State | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def state(self, image: dict[str, bytes]) -> State | None:
        """What the store finds; ``None`` where there is no file yet."""
        key = b"".join(end.encode() + sha256(content).digest() for end, content in image.items())
        if key not in self._known:
            self._known[key] = self._open(image) if "" in image else None
        return self._known[key]

    def _open(self, image: dict[str, bytes]) -> State:
        folder = self._host.data_dir
        for end, content in image.items():
            (folder / f"harness.db{end}").write_bytes(content)
        store = open_store(self._settings, self._host, database=self._disk.database)
        try:
            assert store._readers.first("PRAGMA integrity_check") == ("ok",)
            found = state_of(store, self._run.blobs)
            store.append("store:main", [draft()], expected_seq=0)  # it goes on
        finally:
            store.close()
            for left in folder.iterdir():
                left.unlink()
        return found


def judged(disk: Any, folder: Path, run: Recorded, seed: int, synchronous: Synchronous) -> tuple[int, int]:
    """Open all images of a run; how many there were, and different ones."""
    opened = Opened(disk, folder, run, synchronous)
    count = 0
    for cut, draw, done, image in images(run, seed):
        count += 1
        where = f"seed {seed}, {synchronous}, operation {cut} ({run.trace[cut].kind}), draw {draw!r}, {done} works done"
        try:
            found = opened.state(image)
        except Exception as error:
            raise AssertionError(f"{where}: {error!r}") from error
        first = done if synchronous == "FULL" else 0
        possible = [None, run.states[0]] if done < 0 else run.states[first : done + 2]
        assert found in possible, f"{where}: found {found}"
    return count, len(opened)


@pytest.mark.inv("I-1")
@pytest.mark.inv("I-2")
@pytest.mark.parametrize("synchronous", ["FULL", "NORMAL"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_power_loss_at_any_operation_breaks_nothing_and_at_full_loses_nothing_acknowledged(
    tmp_path: Path,
    disk: Any,
    seed: int,
    synchronous: Synchronous,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    run = recorded(disk, tmp_path / "recorded", seed, synchronous, monkeypatch)
    count, different = judged(disk, tmp_path / "image", run, seed, synchronous)
    request.node.user_properties += [("images", count), ("different images", different)]
    assert different > WORKS


@pytest.mark.parametrize("forgotten", ["sync", "sync_folder"])
def test_a_disk_that_forgets_to_sync_is_found_and_its_seed_fails_in_the_same_place(
    tmp_path: Path, disk: Any, forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for _ in range(2):
        run = recorded(disk, tmp_path / "recorded", 1, "FULL", monkeypatch)
        forgetful = run._replace(trace=[step for step in run.trace if step.kind != forgotten])
        with pytest.raises(AssertionError, match="seed 1, FULL, operation") as caught:
            judged(disk, tmp_path / "image", forgetful, 1, "FULL")
        said.append(str(caught.value))
        shutil.rmtree(tmp_path / "recorded")
    assert said[0] == said[1]
