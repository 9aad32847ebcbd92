"""Goal 9: events and contents go into a log, its bytes beside what was put in come out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import STREAM, draft
from harness_hookspecs.store import Store
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from .measure import Figure, at_most

__all__ = ["NAME", "run"]

NAME = "disk"

TEXT_CHARACTERS = 274  # makes payloads of 300 bytes
FEW, MANY = 2_000, 20_000
MEBIBYTE = 1_048_576


def run() -> Iterator[Figure]:
    """Bytes per event, whether they stay the same, and a list that grows by one item a step."""
    payload_bytes = len(draft(10_000, text="x" * TEXT_CHARACTERS).payload)
    few, many = _size(lambda store: _events(store, FEW)), _size(lambda store: _events(store, MANY))
    must, aim = 1.6 * payload_bytes + 400, 1.2 * payload_bytes + 250
    yield at_most(f"disk.event_of_{payload_bytes}", many / MANY, "B/event", must=round(must), aim=round(aim))
    yield at_most("disk.linear", (many / MANY) / (few / FEW), f"{MANY} against {FEW} events", must=1.05, aim=1.0)
    yield at_most("disk.growing_list", _size(_growing_list) / MEBIBYTE, "MiB", must=1.0, aim=0.75)


def _size(fill: Callable[[Store], None]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        host = FakeHost(Path(folder))
        store = open_store(Settings(synchronous="NORMAL"), host)
        fill(store)
        store.close()
        return sum(file.stat().st_size for file in host.data_dir.iterdir())


def _events(store: Store, count: int) -> None:
    for number in range(0, count, 2):
        drafts = [draft(10_000 + number + index, text="x" * TEXT_CHARACTERS) for index in (0, 1)]
        store.append(STREAM, drafts, expected_seq=number)


def _growing_list(store: Store) -> None:
    """A thousand steps, each of which adds 300 bytes to what the next is given: content once, then digests."""
    for number in range(1000):
        item = f"{number:06d}{sha256(str(number).encode()).hexdigest() * 5}"[:300].encode()
        digest = sha256(item).hexdigest()
        store.append(STREAM, [draft(number, added=digest)], expected_seq=number, blobs={digest: item})
