"""A number of sessions in, run one after another by one host in the folder this was started in; what it took out.

Without a number it goes on until its stdin ends. Each session is looked at by the checker, given all that was written
outside, and after each it is noted what the process holds. One JSON document is printed at the end.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import select
import sys
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from harness_core import Host
from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import NOTHING, Broken, Happened, History
from harness_core.shell.heads import copied_head
from harness_hookspecs.store import StoredEvent
from harness_store_sqlite.log import SqliteStore

TEXT = "Write the report."
EFFECTS = Path(os.environ["HARNESS_EFFECTS_FILE"])
BYTES_PER_MEBIBYTE = 2**20


class Serving:
    """One host, and notes of what it was told and what it holds."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []
        self.broken: list[Broken] = []
        self.held: dict[str, array[float]] = defaultdict(lambda: array("d"))  # notes must hardly take room themselves
        self.append_ms: Counter[int] = Counter()
        self.payload_bytes = 0
        self.process = psutil.Process()

    def serve(self, host: Host) -> None:
        """One session from its start over an approval to its end, judged."""
        self.told.clear()
        document = host.run(TEXT, on_ask="suspend")
        for item in host.approvals(document["id"]):
            host.answer(item["id"], "approve", digest=item["digest"])
        document = host.resume(document["id"], on_ask="suspend")
        assert document["status"] == "completed", document
        self.broken += self._judged(host, document)
        EFFECTS.write_bytes(b"")
        for name, value in self._holds(host).items():
            self.held[name].append(value)

    def _judged(self, host: Host, document: Mapping[str, Any]) -> tuple[Broken, ...]:
        stream = f"session:{document['id']}"
        events = list(host.store.read(stream))
        self.payload_bytes += sum(len(event.payload) for event in events)
        lines = [json.loads(line) for line in EFFECTS.read_text().splitlines()]
        return check(
            History(
                stream,
                events,
                host.store.head(stream),
                copied_head(host._ports.files(host._opened.data_dir), document["id"]) or NOTHING,
                host.store.blob,
                acknowledged=[*self.told],
                happened=[Happened(line["tool"], line["key"]) for line in lines],
                state_hash=document["state_hash"],
            )
        ).broken

    def _holds(self, host: Host) -> dict[str, float]:
        children = self.process.children(recursive=True)
        log = Path(host._opened.data_dir) / "harness.db-wal"
        return {
            "mebibytes": self.process.memory_info().rss / BYTES_PER_MEBIBYTE,
            "files": self.process.num_fds(),
            "threads": self.process.num_threads(),
            "children": len(children),
            "zombies": sum(child.status() == psutil.STATUS_ZOMBIE for child in children),
            "log_bytes": log.stat().st_size if log.exists() else 0,
        }

    def tell(self, event: StoredEvent) -> None:
        """An event was committed."""
        self.told.append((event.seq, event.id))

    def time_appends(self, append: Any) -> Any:
        """The store's own append, and how long each took."""

        def timed(*args: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return append(*args, **options)
            finally:
                self.append_ms[math.ceil((time.perf_counter() - begin) * 1000)] += 1

        return timed


def _turns(count: int) -> Iterator[int]:
    """So many, or as many as there are until stdin ends."""
    for number in range(count) if count else itertools.count():
        if not count and select.select([sys.stdin], [], [], 0)[0]:
            return
        yield number


def main(count: int) -> None:
    """Run the sessions, print what they took."""
    serving = Serving()
    setattr(SqliteStore, "append", serving.time_appends(SqliteStore.append))  # noqa: B010  # it is a method
    with Host.open(".", on_event=serving.tell) as host:
        for _ in _turns(count):
            serving.serve(host)
        stats = dict(host.store_stats())
    took_ms = sorted(serving.append_ms.elements())
    found = {
        "broken": serving.broken,
        "held": {name: list(values) for name, values in serving.held.items()},
        "append_p99_seconds": took_ms[len(took_ms) * 99 // 100] / 1000,
        "events": stats["persisted"]["events"],
        "payload_bytes": serving.payload_bytes + stats["content_bytes"],
        "file_bytes": Path(stats["file"]).stat().st_size,
    }
    sys.stdout.write(json.dumps(found, default=str))


if __name__ == "__main__":
    main(int(sys.argv[1]))
