"""A count in; so many steps of one DBOS workflow, each kept in SQLite, and their rate out."""

from __future__ import annotations

import sys
import tempfile
import time

from dbos import DBOS


@DBOS.step()
def step(done: int) -> int:
    return done + 1


@DBOS.workflow()
def flow(steps: int) -> float:
    begin = time.perf_counter()
    done = 0
    for _ in range(steps):
        done = step(done)
    assert done == steps
    return time.perf_counter() - begin


def main(steps: int) -> float:
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        config = {"name": "peer", "system_database_url": f"sqlite:///{folder}/peer.sqlite", "log_level": "CRITICAL"}
        DBOS(config={**config, "run_admin_server": False})
        DBOS.launch()
        seconds = flow(steps)
        DBOS.destroy()
    return steps / seconds


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
