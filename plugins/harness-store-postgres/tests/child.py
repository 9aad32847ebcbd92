"""A process that appends: schema, stream, count and mode go in, a line for each acknowledged event comes out."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import draft
from harness_store_postgres.settings import Settings
from harness_store_postgres.store import open_store


def main(schema: str, stream: str, count: str, mode: str) -> None:
    settings = Settings.model_validate({"schema_name": schema, "synchronous": mode})
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(settings, FakeHost(Path(folder)))
        for number in range(int(count)):
            (event,) = store.append(stream, [draft(number)], expected_seq=None)
            sys.stdout.write(f"{event.seq}\n")
            sys.stdout.flush()
        store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
