"""Goal 1: events go into the store one by one and in batches of 100, rates beside bare INSERTs come out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.store import Draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from .measure import Figure, at_least, medians, microseconds

__all__ = ["NAME", "run"]

NAME = "append"

Mode = Literal["FULL", "NORMAL", "OFF"]
STREAM = "session:019b76da-a800-7000-8000-000000000001"
PAYLOAD = b'{"callId":"call_00000000000000000000000001","text":"' + b"x" * 246 + b'"}'  # 300 bytes
# mode, events per transaction, events per round, must, aim
CASES: tuple[tuple[Mode, int, int, float, float], ...] = (
    ("NORMAL", 1, 4000, 0.60, 0.70),
    ("FULL", 1, 1000, 0.90, 1.00),
    ("NORMAL", 100, 20000, 0.45, 0.60),
    ("FULL", 100, 10000, 0.45, 0.60),
    ("OFF", 100, 20000, 0.45, 0.60),
)


def run() -> Iterator[Figure]:
    """Measure each case against the same library with nothing around it."""
    for mode, batch, count, must, aim in CASES:
        found = medians({"ours": _in_folder(_ours, mode, batch, count), "raw": _in_folder(_raw, mode, batch, count)})
        rate, bare = 1e6 / found["ours"], 1e6 / found["raw"]
        name = f"append.{'one' if batch == 1 else f'batch_{batch}'}.{mode.lower()}"
        yield at_least(name, rate, "events/s", of=("raw sqlite3", bare), must=must, aim=aim)


def _in_folder(
    contestant: Callable[[Path, Mode, int, int], float], mode: Mode, batch: int, count: int
) -> Callable[[], float]:
    def measured() -> float:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
            return contestant(Path(folder), mode, batch, count)

    return measured


def _raw(folder: Path, mode: Mode, batch: int, count: int) -> float:
    """The least that is a log: stream, seq, type and payload, with the constraint that makes it one."""
    database = sqlite.connect(str(folder / "raw.db"), isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {mode}")
    database.execute(
        "CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL, seq INTEGER NOT NULL,"
        " type TEXT NOT NULL, payload BLOB NOT NULL, UNIQUE (stream, seq))"
    )
    insert = "INSERT INTO events (stream, seq, type, payload) VALUES (?, ?, ?, ?)"

    def write() -> None:
        for start in range(0, count, batch):
            rows = [(STREAM, start + index + 1, "harness.tool_call.started", PAYLOAD) for index in range(batch)]
            if batch == 1:
                database.execute(insert, rows[0])
            else:
                database.execute("BEGIN IMMEDIATE")
                database.executemany(insert, rows)
                database.execute("COMMIT")

    taken = microseconds(write, count)
    database.close()
    return taken


def _ours(folder: Path, mode: Mode, batch: int, count: int) -> float:
    store = open_store(Settings.model_construct(synchronous=mode), FakeHost(folder))
    identity = "019b76da-a800-7000-8000-000000000002"
    draft = Draft(identity, "harness.tool_call.started", 1, "kernel", "2026-01-01T00:00:00.000Z", b"{}", PAYLOAD)
    drafts = [draft] * batch

    def write() -> None:
        for start in range(0, count, batch):
            store.append(STREAM, drafts, expected_seq=start)

    taken = microseconds(write, count)
    store.close()
    return taken
