"""A count in; an aggregate of so many events is read from SQLite, and how many events a second of CPU that is out."""

from __future__ import annotations

import os
import sys
import tempfile
import time

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event


class Steps(Aggregate):
    def __init__(self) -> None:
        self.done = 0

    @event("Done")
    def take(self, text: str) -> None:
        self.done += 1


def main(count: int) -> float:
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        os.environ["PERSISTENCE_MODULE"] = "eventsourcing.sqlite"
        os.environ["SQLITE_DBNAME"] = f"{folder}/peer.db"
        application = Application()
        steps = Steps()
        for number in range(count - 1):
            steps.take("x" * 250)
            if number % 500 == 0:
                application.save(steps)
        application.save(steps)
        rates = []
        for _ in range(3):
            begin = time.process_time()
            assert application.repository.get(steps.id).done == count - 1
            rates.append(count / (time.process_time() - begin))
        application.close()
    return sorted(rates)[1]


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
