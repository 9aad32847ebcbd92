"""Goal 1: events go into the store one by one and in batches of 100, rates beside bare INSERTs come out."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.store import Draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from .measure import Figure, at_least, microseconds, paired, turns

__all__ = ["NAME", "run"]

NAME = "append"

Mode = Literal["FULL", "NORMAL"]
Write = Callable[[], None]
STREAM = "session:019b76da-a800-7000-8000-000000000001"
TYPE = "harness.tool_call.started"
PAYLOAD = b'{"callId":"call_00000000000000000000000001","text":"' + b"x" * 246 + b'"}'  # 300 bytes
# mode, events per transaction, transactions per turn, must, aim
CASES: tuple[tuple[Mode, int, int, float, float], ...] = (
    ("NORMAL", 1, 400, 0.60, 0.70),
    ("FULL", 1, 5, 0.90, 1.00),
    ("NORMAL", 100, 20, 0.45, 0.60),
    ("FULL", 100, 5, 0.45, 0.60),
)
TRANSACTIONS: dict[Mode, int] = {"NORMAL": 2000, "FULL": 2000}  # short turns, since a disk changes its mind in no time


def run() -> Iterator[Figure]:
    """Measure each case against the same library with nothing around it."""
    for mode, batch, count, must, aim in CASES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-")))
            ours = stack.enter_context(_ours(folder, mode, batch))
            raw = stack.enter_context(_raw(folder, mode, batch))
            contestants = {"ours": _turn(ours, count, batch), "raw": _turn(raw, count, batch)}
            found = turns(contestants, rounds=TRANSACTIONS[mode] // count)
        rate, ratio = 1e6 / statistics.median(found["ours"]), paired(found, "raw", "ours")
        name = f"append.{'one' if batch == 1 else f'batch_{batch}'}.{mode.lower()}"
        yield at_least(name, rate, "events/s", of=("raw sqlite3", ratio), must=must, aim=aim)


def _turn(write: Write, count: int, batch: int) -> Callable[[], float]:
    def turn() -> None:
        for _ in range(count):
            write()

    return lambda: microseconds(turn, count * batch)


@contextmanager
def _raw(folder: Path, mode: Mode, batch: int) -> Iterator[Write]:
    """The least that is a log: stream, seq, type and payload, with the constraint that makes it one."""
    database = sqlite.connect(str(folder / "raw.db"), isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {mode}")
    database.execute(
        "CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL, seq INTEGER NOT NULL,"
        " type TEXT NOT NULL, payload BLOB NOT NULL, UNIQUE (stream, seq))"
    )
    insert = "INSERT INTO events (stream, seq, type, payload) VALUES (?, ?, ?, ?)"
    numbers = itertools.count(1)

    def one() -> None:
        database.execute(insert, (STREAM, next(numbers), TYPE, PAYLOAD))

    def many() -> None:
        rows = [(STREAM, next(numbers), TYPE, PAYLOAD) for _ in range(batch)]
        database.execute("BEGIN IMMEDIATE")
        database.executemany(insert, rows)
        database.execute("COMMIT")

    yield one if batch == 1 else many
    database.close()


@contextmanager
def _ours(folder: Path, mode: Mode, batch: int) -> Iterator[Write]:
    store = open_store(Settings(synchronous=mode), FakeHost(folder))
    identity = "019b76da-a800-7000-8000-000000000002"
    drafts = [Draft(identity, TYPE, 1, "kernel", "2026-01-01T00:00:00.000Z", b"{}", PAYLOAD)] * batch
    heads = itertools.count(0, batch)

    def write() -> None:
        store.append(STREAM, drafts, expected_seq=next(heads))

    yield write
    store.close()
