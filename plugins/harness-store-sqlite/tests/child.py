"""A process that appends: folder, stream, count and mode go in, a line for each acknowledged event comes out."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store


def main(folder: str, stream: str, count: str, mode: str) -> None:
    store = open_store(Settings.model_validate({"synchronous": mode}), FakeHost(Path(folder)))
    latencies = []
    for number in range(int(count)):
        begin = time.perf_counter()
        (event,) = store.append(stream, [draft(number)], expected_seq=None)
        latencies.append(time.perf_counter() - begin)
        sys.stdout.write(f"{event.seq}\n")
        sys.stdout.flush()
    store.close()
    latencies.sort()
    sys.stdout.write(json.dumps({"p99_seconds": latencies[len(latencies) * 99 // 100]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
