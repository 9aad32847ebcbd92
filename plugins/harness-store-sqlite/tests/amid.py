"""A process that is about to say a statement as it opens a log: folder, statement and stream go in.

Without a stream it is killed then; otherwise a line comes out, it goes on, appends an event and closes the log.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from peewee import SqliteDatabase

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store_case import draft
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store


class _Connection:
    def __init__(self, own: Any, statement: str, stream: str) -> None:
        self.own, self.statement, self.stream = own, statement, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql == self.statement:
            if not self.stream:
                os.kill(os.getpid(), signal.SIGKILL)
            sys.stdout.write("now\n")
            sys.stdout.flush()
            self.statement = ""
        return self.own.execute(sql, *parameters)


def main(folder: str, statement: str, stream: str) -> None:
    class Database(SqliteDatabase):
        def _connect(self) -> Any:
            return _Connection(super()._connect(), statement, stream)  # type: ignore[misc]

    def database(uri: str) -> Any:
        return Database(uri, uri=True, thread_safe=False, check_same_thread=False)

    store = open_store(Settings(), FakeHost(Path(folder)), database=database)
    store.append(stream, [draft()], expected_seq=0)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
